package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// leaving is a worker that hangs while it shuts down: its port and its idle connections are closed, and on the others
// it is silent.
type leaving struct {
	http.Server
	addr   string
	silent atomic.Bool  // it no longer answers
	held   atomic.Int64 // requests that wait for it
	begun  atomic.Int64 // of them, those with their first event
}

func newLeaving() (*leaving, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &leaving{addr: l.Addr().String()}
	w.Handler = http.HandlerFunc(w.serve)
	w.ReadHeaderTimeout = wire.Timeout
	go func() { _ = w.Serve(l) }() // its error is that it was closed
	return w, nil
}

func (w *leaving) serve(rw http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	q := r.URL.Query()
	switch {
	case r.URL.Path == "/v1/models":
		_, _ = io.WriteString(rw, `{"object":"list","data":[{"id":"sim","object":"model"}]}`)
		return
	case r.Method != http.MethodPost:
		return
	case !w.silent.Load():
		fmt.Fprintf(rw, `{"id":%q,"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant",`+
			`"content":"a"},"finish_reason":"stop"}]}`, q.Get("mark"))
		return
	}
	w.held.Add(1)
	if q.Get("chunks") != "" {
		rw.Header().Set("Content-Type", "text/event-stream")
		if q.Get("begun") != "" {
			w.begun.Add(1)
			fmt.Fprintf(rw, `data: {"id":%q,"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`+"\n\n",
				q.Get("mark"))
		}
		rw.(http.Flusher).Flush()
	}
	<-r.Context().Done()
}

// checkLeaving has 60 requests under way, half of them at a worker that leaves: a third plain, a third streams with a
// head alone, a third begun.
func checkLeaving(l *lab) (verdict, error) {
	w, err := newLeaving()
	if err != nil {
		return verdict{}, err
	}
	defer w.Close()
	other, err := l.startNode(&node{})
	if err != nil {
		return verdict{}, err
	}
	r, err := l.serve(rig.Router{Pool: "strategy = \"roundrobin\"\ndown_grace = \"1s\"\n",
		Workers: []string{w.addr, other.addr}})
	if err != nil {
		return verdict{}, err
	}
	w.silent.Store(true)
	var all sync.WaitGroup
	var mu sync.Mutex // guards why, told, slowest
	var why []string
	told := int64(0)
	var slowest time.Duration
	var left atomic.Int64 // when the worker left, unix ns
	ended := func(ok bool, what string) {
		mu.Lock()
		defer mu.Unlock()
		if !ok {
			why = append(why, what)
		}
		if at := left.Load(); at > 0 {
			slowest = max(slowest, time.Since(time.Unix(0, at)))
		}
	}
	const each = 20
	for range each {
		all.Go(func() {
			mark := newMark()
			a := wire.Once(r.Addr, plain(mark, ""))
			ended(good(a, mark), fmt.Sprintf("plain: %d %v", a.Status, a.Err))
		})
		for _, query := range []string{"", "&begun=1"} {
			all.Go(func() {
				mark := newMark()
				s := watch(r.Addr, streaming(mark, 3, 0, query), mark, nil)
				if query != "" && s.told() {
					mu.Lock()
					told++
					mu.Unlock()
				}
				ended(s.fine() || query != "" && s.told(), query+" "+s.String())
			})
		}
	}
	if !rig.Eventually(10*time.Second, func() bool { return w.held.Load() >= 3*each/2 }) {
		return verdict{}, fmt.Errorf("only %d requests came to the worker that is to leave", w.held.Load())
	}
	ctx, stop := context.WithCancel(l.ctx)
	defer stop()
	left.Store(time.Now().UnixNano())
	go func() { _ = w.Shutdown(ctx) }() // closes the port and idle connections, then waits for the others
	all.Wait()
	return say(len(why) == 0 && told == w.begun.Load() && slowest < 10*time.Second,
		"%d requests hung at it: %d of %d begun streams told, %d of %d others not answered; the last one %s after it left %s",
		w.held.Load(), told, w.begun.Load(), len(why), 3*each-int(w.begun.Load()), ms(slowest), some(why))
}
