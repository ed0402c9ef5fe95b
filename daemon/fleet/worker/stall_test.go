package worker

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// TestStalledAnswers: whether a worker's breaker counts an answer that paused for too long, by what else the worker
// shows at second 600. The breaker opens after five.
func TestStalledAnswers(t *testing.T) {
	f := func(what string, ejects bool, o judge.Outcome, show func(p *Pool)) {
		t.Helper()
		p := upPool(t, 2)
		var all []*Ticket
		for range 5 {
			k := p.send(0, Dispatch{}, 1)
			k.FirstByte(p.after(2))
			k.Flow(p.after(2))
			all = append(all, k)
		}
		show(p)
		for _, k := range all {
			k.End(p.after(600), o)
		}
		if s := p.Stats(p.after(600))[0]; (s.State == Ejected) != ejects {
			t.Errorf("%s: %v; want ejected %v", what, s.State, ejects)
		}
	}
	stalled := judge.Outcome{Kind: judge.Broken, Stalled: true, Err: "sent nothing"}
	scrapes := func(last float64) func(p *Pool) {
		return func(p *Pool) {
			for i := range 3 {
				p.scrape(0, Metrics{TokenTimes: float64(100 * i)}, last-2+float64(i))
			}
		}
	}
	f("nothing is known of it", true, stalled, func(*Pool) {})
	f("its metrics move", false, stalled, scrapes(599))
	f("they moved once, long ago", true, stalled, scrapes(30))
	f("its metrics are read and stand still", true, stalled, func(p *Pool) {
		p.scrape(0, Metrics{TokenTimes: 7}, 590)
		p.scrape(0, Metrics{TokenTimes: 7}, 599)
	})
	f("another answer flows", false, stalled, func(p *Pool) { p.send(0, Dispatch{}, 500).Flow(p.after(598)) })
	f("another answer flowed", true, stalled, func(p *Pool) { p.send(0, Dispatch{}, 500).Flow(p.after(510)) })
	f("the other worker's metrics move", true, stalled, func(p *Pool) {
		p.scrape(1, Metrics{TokenTimes: 1}, 590)
		p.scrape(1, Metrics{TokenTimes: 2}, 599)
	})
	f("its connections break although metrics move", true, judge.Outcome{Kind: judge.Broken, Err: "reset"}, scrapes(599))
}
