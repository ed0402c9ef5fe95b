package bugs

import (
	"fmt"
	"sync"
	"time"

	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// A worker that says that it is full is alive and busy. Another one is asked, and it keeps its place in the fleet.
var fullness = []wallCase{
	{"a-429-of-a-full-worker-is-tried-at-the-free-one", full(1, 429)},
	{"a-503-of-a-full-worker-is-tried-at-the-free-one", full(1, 503)},
	{"a-529-of-a-full-worker-is-tried-at-the-free-one", full(1, 529)},
	{"a-408-of-a-full-worker-is-tried-at-the-free-one", full(1, 408)},
	{"a-425-of-a-full-worker-is-tried-at-the-free-one", full(1, 425)},
	{"the-429-of-three-of-four-is-tried-at-the-free-one", full(3, 429)},
	{"the-429-of-all-reaches-the-client-as-written", fullAlone},
	{"overload-by-503-keeps-both-workers-busy", overload(503, 12, "Retry-After: 1")},
	{"overload-by-503-of-24-clients-keeps-both-workers-busy", overload(503, 24, "Retry-After: 1")},
	{"overload-by-429-and-retry-after-30-keeps-both-workers-busy", overload(429, 24, "Retry-After: 30")},
	{"overload-by-503-without-retry-after-keeps-both-workers-busy", overload(503, 24)},
	{"overload-by-529-keeps-both-workers-busy", overload(529, 24, "Retry-After: 1")},
}

// full sends 40 requests of 4 clients to so many full workers and a free one. Where several are full, the first requests
// may meet three of them: two may fail.
func full(n, code int) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		engines := l.engines(n, func(c *wire.Call) bool { return engine.Refuse(c, code, "full", "Retry-After: 1") })
		r := l.router(append(engines, l.engines(1, func(c *wire.Call) bool {
			if c.Wait(50 * time.Millisecond) {
				return false
			}
			return engine.Echo(c)
		})...)...)
		all := clients(4, 10, func(k, i int) wire.Answer { return r.chat(fmt.Sprintf("%d %d question", k, i)) })
		return fmt.Sprintf("%d of 40 refused", refused(all)), refused(all) <= n-1
	}
}

// fullAlone: when nobody else can take it, the client gets the worker's own words, status and time.
func fullAlone(l *lab) (string, bool) {
	r := l.router(l.engines(2, func(c *wire.Call) bool {
		return engine.Refuse(c, 429, "the queue of 256 requests is full", "Retry-After: 7")
	})...)
	a := r.chat("question")
	ok := a.Status == 429 && unlike([]wire.Answer{{Head: wire.Head{Status: 200}, Body: a.Body}}, "queue of 256") == 0 &&
		field(a, "retry-after") == "7"
	return fmt.Sprintf("%d with Retry-After %q, the worker's words: %v", a.Status, field(a, "retry-after"), ok), ok
}

// limited is a worker that takes four requests of 0.2 s at a time and refuses more.
type limited struct {
	mu   sync.Mutex
	n    int
	done int
	no   func(*wire.Call) bool
}

func (w *limited) post(c *wire.Call) bool {
	w.mu.Lock()
	fits := w.n < 4
	if fits {
		w.n++
	}
	w.mu.Unlock()
	if !fits {
		return w.no(c)
	}
	gone := c.Wait(200 * time.Millisecond)
	w.mu.Lock()
	w.n--
	w.done++
	w.mu.Unlock()
	return !gone && engine.Echo(c)
}

// overload has clients that try again after 0.1 s press on two such workers for 5 s. Each can do 20 answers a second;
// right is at least 70 % of both, which a busy machine leaves.
func overload(code, n int, fields ...string) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		var all [2]limited
		var engines []*engine.Engine
		for i := range all {
			all[i].no = func(c *wire.Call) bool { return engine.Refuse(c, code, "queue full", fields...) }
			engines = append(engines, l.engines(1, all[i].post)...)
		}
		r := l.router(engines...)
		const seconds = 5
		end := time.Now().Add(seconds * time.Second)
		clients(n, 1, func(k, _ int) (a wire.Answer) {
			for i := 0; time.Now().Before(end); i++ {
				a = r.chat(fmt.Sprintf("%d %d question", k, i))
				if !served(a) {
					time.Sleep(100 * time.Millisecond)
				}
			}
			return a
		})
		rate := [2]float64{float64(all[0].done) / seconds, float64(all[1].done) / seconds}
		return fmt.Sprintf("%.1f and %.1f answers a second, where each can do 20", rate[0], rate[1]), rate[0]+rate[1] >= 28
	}
}
