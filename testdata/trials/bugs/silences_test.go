package bugs

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// A /health that is late, or bad once, is no death. health_interval and down_grace are shortened, and the engines are
// busy for 12 s instead of 45: two checks of 2 s pass within that, and the grace.
var silences = []wallCase{
	{"one-503-of-health-refuses-nobody-at-a-lone-worker", flap(func(c *wire.Call) bool { return c.Plain(503, "text/plain", "") })},
	{"one-500-of-health-refuses-nobody-at-a-lone-worker", flap(func(c *wire.Call) bool { return c.Plain(500, "text/plain", "") })},
	{"one-late-health-refuses-nobody-at-a-lone-worker", flap(func(c *wire.Call) bool {
		return !c.Wait(2500*time.Millisecond) && c.Plain(200, "text/plain", "")
	})},
	{"one-reset-of-health-refuses-nobody-at-a-lone-worker", flap(engine.Reset)},
	{"one-503-of-health-does-not-cut-a-stream", flapInStream},
	{"health-503-for-good-takes-the-worker-out", illForGood},
	{"a-lone-busy-worker-is-waited-for", busyAlone(chatPath, "")},
	{"a-lone-busy-worker-is-waited-for-by-a-stream", busyAlone(chatPath, streamed)},
	{"a-lone-busy-worker-is-waited-for-by-messages", busyAlone("/v1/messages", "")},
	{"a-new-request-waits-for-a-lone-busy-worker", busyNew},
	{"a-new-request-avoids-a-busy-worker", busyBeside},
	{"a-begun-stream-outlives-a-busy-lone-worker", busyStream(1, chatPath)},
	{"a-begun-stream-outlives-a-busy-worker-of-two", busyStream(2, chatPath)},
	{"a-begun-stream-of-completions-outlives-a-busy-worker", busyStream(2, "/v1/completions")},
	{"a-blocking-request-stays-at-one-worker-and-cuts-no-stream", cascade(3, 1, "")},
	{"a-blocking-stream-stays-at-one-worker-and-cuts-no-stream", cascade(3, 1, streamed)},
	{"two-blocking-requests-cut-no-stream", cascade(3, 2, "")},
	{"a-blocking-request-cuts-no-stream-of-two-workers", cascade(2, 1, "")},
}

const soon = "health_interval = \"300ms\"\ndown_grace = \"5s\"\nslow_start = \"0s\"\n"

// flap has a lone worker fail three single checks of its health while it answers 50 requests a second.
func flap(bad func(*wire.Call) bool) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		var ill atomic.Bool
		e := l.engine(&engine.Engine{Health: func(c *wire.Call) bool {
			if ill.CompareAndSwap(true, false) {
				return bad(c)
			}
			return c.Plain(200, "text/plain", "")
		}})
		r := l.routerWith(rig.Router{Pool: soon}, e)
		all := every(20*time.Millisecond, 250, func(i int) wire.Answer {
			if i%80 == 0 {
				ill.Store(true)
			}
			return r.chat("question")
		})
		return fmt.Sprintf("%d of 250 requests refused, three bad checks apart", refused(all)), refused(all) == 0
	}
}

// flapInStream has one of two workers answer one check with 503 while a stream of 3 s comes from it.
func flapInStream(l *lab) (string, bool) {
	var ill [2]atomic.Bool
	var engines []*engine.Engine
	for n := range ill {
		engines = append(engines, l.engine(&engine.Engine{Post: trickle, Health: func(c *wire.Call) bool {
			if ill[n].CompareAndSwap(true, false) {
				return c.Plain(503, "text/plain", "")
			}
			return c.Plain(200, "text/plain", "")
		}}))
	}
	r := l.routerWith(rig.Router{Pool: soon}, engines...)
	time.AfterFunc(time.Second, func() { ill[0].Store(true); ill[1].Store(true) })
	all := every(0, 6, func(int) wire.Answer { return r.chat("question", streamed) })
	return fmt.Sprintf("%d of 6 streams cut", unlike(all, "[DONE]")), unlike(all, "[DONE]") == 0
}

// trickle answers with a stream of 3 s.
func trickle(c *wire.Call) bool {
	_ = c.StreamHead()
	_ = c.Chunk(engine.Role)
	for range 30 {
		if c.Wait(100*time.Millisecond) || c.Chunk(engine.Delta(`{"content":"word "}`, "null")) != nil {
			return false
		}
	}
	return c.Chunk(engine.Stop+engine.Done) == nil && engine.End(c)
}

// illForGood is a control: a worker whose /health stays 503 gets no requests after some checks.
func illForGood(l *lab) (string, bool) {
	var asked atomic.Int64
	ill := l.engine(&engine.Engine{
		Health: func(c *wire.Call) bool {
			if asked.Load() > 0 {
				return c.Plain(503, "text/plain", "")
			}
			return c.Plain(200, "text/plain", "")
		},
		Post: func(c *wire.Call) bool { asked.Add(1); return engine.Echo(c) },
	})
	r := l.routerWith(rig.Router{Pool: soon + "strategy = \"roundrobin\"\n"}, ill, l.engine(&engine.Engine{}))
	clients(1, 4, func(_, i int) wire.Answer { return r.chat(fmt.Sprintf("%d", i)) })
	time.Sleep(1500 * time.Millisecond)
	before := asked.Load()
	all := clients(1, 20, func(_, i int) wire.Answer { return r.chat(fmt.Sprintf("%d", i)) })
	return fmt.Sprintf("%d of 20 requests went to it, %d refused", asked.Load()-before, refused(all)),
		before > 0 && asked.Load() == before && refused(all) == 0
}

// blocking is an engine whose whole process is busy at times: nothing is answered then.
type blocking struct {
	*engine.Engine
	busy  atomic.Int64
	asked atomic.Int64 // heavy requests
}

const busyFor = 12 * time.Second

func (b *blocking) wait() {
	for b.busy.Load() > 0 {
		time.Sleep(20 * time.Millisecond)
	}
}

// blocking starts an engine that a request which says "heavy" keeps busy. other answers the others.
func (l *lab) blocking(other func(*blocking, *wire.Call) bool) *blocking {
	b := &blocking{Engine: &engine.Engine{}}
	b.Health = func(c *wire.Call) bool { b.wait(); return c.Plain(200, "text/plain", "") }
	b.Page = func(*wire.Call) (bool, bool) { b.wait(); return false, false }
	b.Post = func(c *wire.Call) bool {
		if !strings.Contains(string(c.Text), "heavy") {
			return other(b, c)
		}
		b.asked.Add(1)
		b.busy.Add(1)
		time.Sleep(busyFor)
		b.busy.Add(-1)
		return engine.Echo(c)
	}
	l.engine(b.Engine)
	return b
}

// patient answers a request that is not heavy when the engine has time.
func patient(b *blocking, c *wire.Call) bool {
	b.wait()
	return engine.Echo(c)
}

func busyAlone(path, stream string) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		b := l.blocking(patient)
		r := l.routerWith(rig.Router{Pool: soon}, b.Engine)
		a := r.post(path, heavy(stream))
		return fmt.Sprintf("answered %d after %.0f s", a.Status, a.Took.Seconds()), served(a) && b.asked.Load() == 1
	}
}

// heavy is a request that blocks its engine.
func heavy(stream string) string {
	if stream != "" {
		return chat("heavy", stream)
	}
	return chat("heavy", `"max_tokens":9`)
}

// busyNew sends requests to a lone worker while it is busy.
func busyNew(l *lab) (string, bool) {
	b := l.blocking(patient)
	r := l.routerWith(rig.Router{Pool: soon}, b.Engine)
	all := every(2*time.Second, 6, func(i int) wire.Answer {
		if i == 0 {
			return r.post(chatPath, heavy(""))
		}
		return r.chat(fmt.Sprintf("light %d", i))
	})
	return fmt.Sprintf("%d of 6 requests refused while it was busy", refused(all)), refused(all) == 0
}

// busyBeside is a control: while one of two workers is silent, new requests are answered by the other one.
func busyBeside(l *lab) (string, bool) {
	b := l.blocking(patient)
	r := l.routerWith(rig.Router{Pool: soon}, b.Engine, l.engine(&engine.Engine{}))
	var wait sync.WaitGroup
	wait.Go(func() {
		for b.asked.Load() == 0 {
			// It may have gone to the other one, which answers it.
			r.post(chatPath, heavy(""))
		}
	})
	rig.Eventually(5*time.Second, func() bool { return b.asked.Load() > 0 })
	time.Sleep(6 * time.Second)
	late := 0
	for _, a := range every(100*time.Millisecond, 20, func(i int) wire.Answer { return r.chat(fmt.Sprintf("light %d", i)) }) {
		if !served(a) || a.Took > time.Second {
			late++
		}
	}
	wait.Wait()
	return fmt.Sprintf("%d of 20 new requests late or refused", late), late == 0
}

// busyStream has a stream begin at one of n workers, which is then busy.
func busyStream(n int, path string) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		var engines []*engine.Engine
		for range n {
			b := l.blocking(patient)
			b.Post = func(c *wire.Call) bool {
				_ = c.StreamHead()
				_ = c.Chunk(engine.Role + engine.Delta(`{"content":"first half "}`, "null"))
				b.busy.Add(1)
				time.Sleep(busyFor)
				b.busy.Add(-1)
				return c.Chunk(engine.Delta(`{"content":"second half"}`, "null")+engine.Stop+engine.Done) == nil && engine.End(c)
			}
			engines = append(engines, b.Engine)
		}
		r := l.routerWith(rig.Router{Pool: soon}, engines...)
		a := r.post(path, chat("question", streamed, `"prompt":"question"`))
		whole := unlike([]wire.Answer{a}, "second half") == 0
		return fmt.Sprintf("ends after %.0f s, whole: %v", a.Took.Seconds(), whole), whole
	}
}

// cascade has two streams under way at each worker, and sends heavy requests. Nobody else is to suffer, and no heavy
// request goes to a second worker.
func cascade(workers, requests int, stream string) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		var all []*blocking
		var engines []*engine.Engine
		for range workers {
			b := l.blocking(func(b *blocking, c *wire.Call) bool { return talk(b, c, 40) })
			all, engines = append(all, b), append(engines, b.Engine)
		}
		r := l.routerWith(rig.Router{Pool: soon}, engines...)
		var wait sync.WaitGroup
		answers := make([]wire.Answer, requests)
		wait.Go(func() {
			time.Sleep(time.Second)
			answers = every(100*time.Millisecond, requests, func(int) wire.Answer { return r.post(chatPath, heavy(stream)) })
		})
		streams := every(0, 2*workers, func(i int) wire.Answer {
			return r.post(chatPath, chat(fmt.Sprintf("%d stream", i), streamed), fmt.Sprintf("X-Session-Id: s%d", i))
		})
		wait.Wait()
		asked := int64(0)
		for _, b := range all {
			asked += b.asked.Load()
		}
		cut := unlike(streams, "[DONE]")
		return fmt.Sprintf("%d heavy: sent %d times, %d refused; %d of %d streams cut", requests, asked, refused(answers), cut,
			2*workers), cut == 0 && asked == int64(requests) && refused(answers) == 0
	}
}

// talk streams n words, one each 0.3 s while the engine has time.
func talk(b *blocking, c *wire.Call, n int) bool {
	_ = c.StreamHead()
	_ = c.Chunk(engine.Role)
	for range n {
		b.wait()
		if c.Chunk(engine.Delta(`{"content":"word "}`, "null")) != nil || c.Wait(300*time.Millisecond) {
			return false
		}
	}
	return c.Chunk(engine.Stop+engine.Done) == nil && engine.End(c)
}
