package bugs

import (
	"fmt"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// A connection that is accepted late, as by a full accept queue or after one lost SYN, is no death either.
var connects = []wallCase{
	{"a-full-accept-queue-of-one-of-two-refuses-nobody", lateAccept(1, 1, 2500*time.Millisecond)},
	{"a-full-accept-queue-of-a-lone-worker-refuses-nobody", lateAccept(1, 0, 2500*time.Millisecond)},
	{"a-lone-worker-that-accepts-nothing-for-9-s-is-waited-for", lateAccept(1, 0, 9*time.Second)},
	{"two-workers-that-accept-nothing-for-6-s-are-waited-for", lateAccept(2, 0, 6*time.Second)},
	{"a-worker-that-accepts-nothing-for-good-is-left-alone", lateAccept(1, 2, 0)},
	{"a-full-accept-queue-cuts-no-stream", lateAcceptInStream},
	{"a-port-that-is-closed-for-50-ms-is-used-again-soon", closedFor},
	{"a-port-that-is-closed-for-good-is-given-up-at-once", closedForGood},
}

// gate starts a gate in front of an engine.
func (l *lab) gate(to string) *engine.Gate {
	l.t.Helper()
	g, err := engine.NewGate(to)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(g.Close)
	return g
}

// lateAccept has some workers accept nothing for a time, beside others, or for good (0). Answers take 0.3 s, so that
// connections are needed meanwhile.
func lateAccept(late, others int, shut time.Duration) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		sluggish := func(c *wire.Call) bool { return !c.Wait(300*time.Millisecond) && engine.Echo(c) }
		var at []string
		for _, e := range l.engines(late, sluggish) {
			g := l.gate(e.Addr())
			at = append(at, g.Addr)
			time.AfterFunc(3*time.Second, g.Shut)
			if shut > 0 {
				time.AfterFunc(3*time.Second+shut, g.Open)
			}
		}
		for _, e := range l.engines(others, sluggish) {
			at = append(at, e.Addr())
		}
		r := l.routerWith(rig.Router{Workers: at})
		clients(1, 4, func(_, i int) wire.Answer { return r.chat(fmt.Sprintf("warm %d", i)) })
		time.Sleep(2 * time.Second)
		all := every(100*time.Millisecond, 50, func(i int) wire.Answer { return r.chat(fmt.Sprintf("%d question", i)) })
		slow := 0
		for _, a := range all[len(all)/2:] {
			if others > 0 && a.Took > 900*time.Millisecond {
				slow++
			}
		}
		return fmt.Sprintf("%d of 50 refused, %d late beside others", refused(all), slow), refused(all) == 0 && slow <= 3
	}
}

// lateAcceptInStream has streams of 3 s under way while the worker accepts nothing for 2 s.
func lateAcceptInStream(l *lab) (string, bool) {
	g := l.gate(l.engines(1, trickle)[0].Addr())
	r := l.routerWith(rig.Router{Pool: soon, Workers: []string{g.Addr, l.engines(1, trickle)[0].Addr()}})
	time.AfterFunc(500*time.Millisecond, g.Shut)
	time.AfterFunc(2500*time.Millisecond, g.Open)
	all := every(0, 6, func(i int) wire.Answer { return r.chat(fmt.Sprintf("%d question", i), streamed) })
	return fmt.Sprintf("%d of 6 streams cut", unlike(all, "[DONE]")), unlike(all, "[DONE]") == 0
}

// closedFor closes the port of a lone worker for 50 ms, twice. A refused connection is proof of death; the worker is
// used again at the next check, half a second later at most, so 30 of the requests may fail each time.
func closedFor(l *lab) (string, bool) {
	e := l.engine(&engine.Engine{})
	at := e.Addr()
	r := l.router(e)
	all := every(20*time.Millisecond, 200, func(i int) wire.Answer {
		if i%100 == 50 {
			e.Close()
			time.AfterFunc(50*time.Millisecond, func() { _ = e.Start(at) })
		}
		return r.chat("question")
	})
	return fmt.Sprintf("%d of 200 requests at 50 a second refused, two closures", refused(all)), refused(all) <= 60
}

// closedForGood is a control: a port that refuses is proof, and nobody waits for it.
func closedForGood(l *lab) (string, bool) {
	engines := l.engines(2, nil)
	r := l.router(engines...)
	clients(1, 4, func(_, i int) wire.Answer { return r.chat(fmt.Sprintf("warm %d", i)) })
	engines[0].Close()
	bad := 0
	for _, a := range every(20*time.Millisecond, 50, func(i int) wire.Answer { return r.chat(fmt.Sprintf("%d question", i)) }) {
		if !served(a) || a.Took > time.Second {
			bad++
		}
	}
	return fmt.Sprintf("%d of 50 late or refused", bad), bad == 0
}
