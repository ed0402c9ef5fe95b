package worker

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// A sample moves the fleet's speed for all workers: no row shows the speed of before it.
func TestRowsShowOneFleetSpeed(t *testing.T) {
	p := upPool(t, 3)
	k := p.send(2, Dispatch{PromptTokens: 4000}, 1)
	k.FirstByte(p.after(9)) // 30 times slower than estimated: a sample as soon as its group is complete
	rows := p.rows(10)
	if p.fleet.speed.Samples != 1 {
		t.Fatalf("%d samples; want 1", p.fleet.speed.Samples)
	}
	if m := p.fleet.speed.Value; rows[0].Slow != m || rows[1].Slow != m {
		t.Errorf("slowness %v and %v of two unknown workers; want the fleet's, %v", rows[0].Slow, rows[1].Slow, m)
	}
}

// lambda does not wait for its 30 s: from the 16th request a worker on it is at least half of the newest rate.
func TestLambdaStartsWarm(t *testing.T) {
	p := upPool(t, 4)
	send := func(at float64) {
		p.send(0, Dispatch{PromptTokens: 10}, at).End(p.after(at), judge.Outcome{})
	}
	for i := range 63 {
		send(1 + float64(i)/640)
	}
	near(t, "lambda after 63 of 640 a second", p.Lambda(p.after(1.0985)), 63./30/4, .01)
	send(1 + 63./640)
	near(t, "lambda after 64, as the next one comes", p.Lambda(p.after(1.1)), .5*160, 1e-6)
	near(t, "lambda a second later", p.Lambda(p.after(2.1)), .5*16/1.1, 1e-6)
	near(t, "lambda half a minute later", p.Lambda(p.after(31.1)), max(64./30/4*.3679, .5*16/30.1), .01)
	for range 64 { // a clock that stands still
		send(40)
	}
	near(t, "lambda of 64 in no time", p.Lambda(p.after(40)), .5*16/1e-3, 1e-6)
	p.Update(specs(6), start) // a larger fleet needs more of them
	if got := p.Lambda(p.after(40)); got > 10 {
		t.Errorf("lambda of a fleet that has grown = %v; want the average until enough were sent", got)
	}
}

// A row has the numbers that break near ties, and a worker that comes back from death is not the first choice by them.
func TestSentLatelyAndPending(t *testing.T) {
	p := upPool(t, 2)
	for range 10 {
		p.send(0, Dispatch{Est: .5}, 1)
	}
	rows := p.rows(31)
	near(t, "Lately", float64(rows[0].Lately), 10*.36788, 1e-3)
	near(t, "Pending", float64(rows[0].Pending), 5, 1e-6)
	near(t, "the other's Lately", float64(rows[1].Lately), 0, 0)
	p.mu.Lock()
	p.fleet.drop(p.fleet.workers[1].endpoint, sec(31), "gone")
	p.mu.Unlock()
	p.heal(1, 31)
	rows = p.rows(31)
	near(t, "Lately of the one that is back", float64(rows[1].Lately), float64(rows[0].Lately), 1e-3)
}
