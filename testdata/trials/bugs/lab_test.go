package bugs

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// lab is what one case works with.
type lab struct {
	t   *testing.T
	dir string
}

// router is a daemon that runs for one case.
type router struct {
	*rig.Proc
	lab *lab
}

// starting bounds how many daemons start at a time: each takes a tenth of a second of a processor.
var starting = make(chan struct{}, 2)

// engine starts a worker.
func (l *lab) engine(e *engine.Engine) *engine.Engine {
	l.t.Helper()
	if err := e.Start("127.0.0.1:0"); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(e.Close)
	return e
}

// engines starts n workers that answer POST so.
func (l *lab) engines(n int, post func(*wire.Call) bool) (all []*engine.Engine) {
	l.t.Helper()
	for range n {
		all = append(all, l.engine(&engine.Engine{Post: post}))
	}
	return all
}

// router starts a daemon with default settings in front of the workers.
func (l *lab) router(engines ...*engine.Engine) *router {
	l.t.Helper()
	return l.routerWith(rig.Router{}, engines...)
}

// routerWith starts a daemon with further lines in front of the workers. They are w0, w1 and so on.
func (l *lab) routerWith(r rig.Router, engines ...*engine.Engine) *router {
	l.t.Helper()
	for _, e := range engines {
		r.Workers = append(r.Workers, e.Addr())
	}
	starting <- struct{}{}
	p, err := r.Start(l.dir, built)
	<-starting
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { l.end(p) })
	return &router{Proc: p, lab: l}
}

// end stops a daemon. A panic in its log fails the case, whatever came of it.
func (l *lab) end(p *rig.Proc) {
	for _, word := range []string{"panic: ", "fatal error: ", "BUG:"} {
		if p.Logged(word) {
			l.t.Errorf("the log tells of %q: %s", word, p.Log(600))
		}
	}
	if p.Exited() {
		l.t.Errorf("the daemon has ended: %s", p.Log(600))
	}
	p.Stop()
}

const chatPath = "/v1/chat/completions"

// chat is the body of a chat, with further fields in JSON.
func chat(text string, fields ...string) string {
	return fmt.Sprintf(`{"model":"sim","messages":[{"role":"user","content":%q}]%s}`, text, more(fields))
}

// more is further fields of a JSON object.
func more(fields []string) string {
	if len(fields) == 0 {
		return ""
	}
	return "," + strings.Join(fields, ",")
}

const streamed = `"stream":true`

// post sends a body as JSON, with further fields of the head.
func (r *router) post(path, body string, fields ...string) wire.Answer {
	return wire.Once(r.Addr, wire.Request("POST", path, body, append(fields, "Content-Type: application/json")...))
}

// chat sends a chat.
func (r *router) chat(text string, fields ...string) wire.Answer {
	return r.post(chatPath, chat(text, fields...))
}

// served tells whether an answer came whole, with 200.
func served(a wire.Answer) bool { return a.Err == nil && a.Status == 200 }

// refused counts the answers that are not served.
func refused(all []wire.Answer) (n int) {
	for _, a := range all {
		if !served(a) {
			n++
		}
	}
	return n
}

// every sends a request each gap, n times, whether or not answers have come, and waits for all answers.
func every(gap time.Duration, n int, send func(i int) wire.Answer) []wire.Answer {
	all := make([]wire.Answer, n)
	var wait sync.WaitGroup
	began := time.Now()
	for i := range n {
		time.Sleep(time.Until(began.Add(time.Duration(i) * gap)))
		wait.Go(func() { all[i] = send(i) })
	}
	wait.Wait()
	return all
}

// clients has so many clients send each so many requests, one after the other.
func clients(n, each int, send func(client, i int) wire.Answer) []wire.Answer {
	all := make([]wire.Answer, n*each)
	var wait sync.WaitGroup
	for c := range n {
		wait.Go(func() {
			for i := range each {
				all[c*each+i] = send(c, i)
			}
		})
	}
	wait.Wait()
	return all
}

// warned counts the lines of the daemon's log, which has WARN and above, that hold all of these words.
func (r *router) warned(words ...string) (n int) {
	for line := range strings.Lines(r.Log(1 << 20)) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			n++
		}
	}
	return n
}
