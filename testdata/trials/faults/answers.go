package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

func checkAcceptOnly(l *lab) (verdict, error) {
	r, nodes, err := l.inFront(2, "", "first_byte_retry = \"300ms\"\n")
	if err != nil {
		return verdict{}, err
	}
	nodes[0].set("accept-only")
	var mu sync.Mutex // guards all below
	var slowest time.Duration
	var failed, twice int
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			mark := newMark()
			a := wire.Once(r.Addr, plain(mark, ""))
			mu.Lock()
			defer mu.Unlock()
			slowest = max(slowest, a.Took)
			if !good(a, mark) {
				failed++
			}
			if nodes[0].times(mark)+nodes[1].times(mark) > 2 {
				twice++
			}
		})
	}
	all.Wait()
	return say(failed == 0 && twice == 0 && slowest < 10*time.Second,
		"%d of 40 failed, %d sent more than twice, slowest %s", failed, twice, ms(slowest))
}

func checkSilent(l *lab) (verdict, error) {
	r, nodes, err := l.inFront(1, "", "stream_timeout = \"500ms\"\n")
	if err != nil {
		return verdict{}, err
	}
	nodes[0].set("silent")
	var told, wrong atomic.Int64
	var why atomic.Pointer[string]
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			mark := newMark()
			s := watch(r.Addr, streaming(mark, 10, 10*time.Millisecond, ""), mark, nil)
			if s.told() && s.end.Sub(s.first) < 3*time.Second {
				told.Add(1)
				return
			}
			text := s.String()
			why.Store(&text)
			wrong.Add(1)
		})
	}
	all.Wait()
	ended := time.Now()
	free := rig.Eventually(time.Second, func() bool {
		n, err := r.metric("warmpath_worker_in_flight")
		return err == nil && n == 0
	})
	text := ""
	if w := why.Load(); w != nil {
		text = "; one of the others: " + *w
	}
	return say(told.Load() == 20 && free, "%d of 20 told, all slots free %v after %s%s", told.Load(), free,
		ms(time.Since(ended)), text)
}

func checkStall(l *lab) (verdict, error) {
	var at []string
	var victim *rig.Proc
	for range 4 {
		w, err := l.workerProc()
		if err != nil {
			return verdict{}, err
		}
		victim, at = w, append(at, w.Addr)
	}
	r, err := l.serve(rig.Router{Pool: poolKeys + "first_byte_retry = \"300ms\"\n", Workers: at})
	if err != nil {
		return verdict{}, err
	}
	d := pick(l, 6*time.Second, 20*time.Second)
	var n, slow, failed atomic.Int64
	time.AfterFunc(d/4, func() { victim.Signal(syscall.SIGSTOP) })
	time.AfterFunc(d/4*3, func() { victim.Signal(syscall.SIGCONT) })
	wire.Open(l.ctx, r.Addr, 200, 256, d, func(c *wire.Client, _ int, due time.Time) {
		mark := newMark()
		n.Add(1)
		if a := c.Do(plain(mark, "&hold=20"), true); !good(a, mark) {
			failed.Add(1)
		}
		if time.Since(due) > time.Second {
			slow.Add(1)
		}
	})
	victim.Signal(syscall.SIGCONT)
	share := float64(slow.Load()) / float64(n.Load())
	return say(share <= 0.002 && failed.Load() == 0, "%d of %d over 1 s (%.2f %%), %d failed", slow.Load(), n.Load(),
		share*100, failed.Load())
}

func checkBroken(l *lab) (verdict, error) {
	r, nodes, err := l.inFront(2, "", "stream_timeout = \"2s\"\n")
	if err != nil {
		return verdict{}, err
	}
	n := pick(l, 400, 1000)
	var lies, hung atomic.Int64
	var why atomic.Pointer[string]
	for _, f := range brokenAnswers {
		nodes[0].set(f)
		nodes[1].set(f)
		wire.Open(l.ctx, r.Addr, 400, 32, time.Duration(n/len(brokenAnswers))*time.Second/400,
			func(_ *wire.Client, i int, due time.Time) {
				mark := newMark()
				lie := ""
				if i%2 == 0 {
					// Garbage that is framed well and ends well is the worker's word: passed on.
					if s := watch(r.Addr, streaming(mark, 10, 0, ""), mark, nil); s.done || s.foreign != "" || s.whole &&
						s.status == 200 && !s.errored && f != "garbage" {
						lie = f + ": " + s.String()
					}
				} else if a := wire.Once(r.Addr, plain(mark, "")); a.Err == nil && a.Status == 200 && f != "garbage" {
					lie = fmt.Sprintf("%s: plain answer %.200q", f, a.Body)
				}
				if lie != "" {
					why.Store(&lie)
					lies.Add(1)
				}
				if time.Since(due) > 10*time.Second {
					hung.Add(1)
				}
			})
	}
	for _, d := range nodes {
		d.set("")
	}
	healed := rig.Eventually(10*time.Second, func() bool {
		m := newMark()
		return good(wire.Once(r.Addr, plain(m, "")), m)
	})
	text := ""
	if w := why.Load(); w != nil {
		text = "; one: " + *w
	}
	return say(lies.Load() == 0 && hung.Load() == 0 && healed,
		"%d of %d passed off as good, %d hung over 10 s, serves again %v%s", lies.Load(), n, hung.Load(), healed, text)
}

func checkHidden(l *lab) (verdict, error) {
	figure, ok := "", true
	for _, fault := range []string{"drain", "error-first", "abort-late", "error-late"} {
		r, nodes, err := l.inFront(2, "", "")
		if err != nil {
			return verdict{}, err
		}
		ill := nodes[0]
		ill.set(fault)
		failed, tried := 0, 0
		for i := 0; i < 60 && l.ctx.Err() == nil; i++ {
			mark, before := newMark(), ill.posts.Load()
			if i%2 == 1 && fault == "drain" {
				tried++
				if a := wire.Once(r.Addr, plain(mark, "")); !good(a, mark) || containsAll(string(a.Body), []string{"abort"}) {
					failed++
				}
				continue
			}
			s := watch(r.Addr, streaming(mark, 3, 0, ""), mark, nil)
			tried++
			late := ill.posts.Load() > before && (fault == "abort-late" || fault == "error-late")
			if !late && !s.fine() || late && (!s.errored || s.done != (fault == "error-late")) {
				failed++
			}
		}
		ok = ok && failed == 0
		figure += fmt.Sprintf("%s: %d of %d wrong, asked %d times; ", fault, failed, tried, ill.posts.Load())
	}
	return say(ok, "%s", figure)
}
