package worker

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/sdk/abi"
)

func TestSilentIsNotDeadWhileTokensFlow(t *testing.T) {
	p := upPool(t, 1)
	w := p.fleet.workers[0]
	k := p.force(w, Dispatch{PromptTokens: 10}, 100)
	for s := 100.0; s < 160; s += 2 { // a minute without an answer to /health
		k.Flow(p.after(s))
		p.hush(int(w.slot), s)
	}
	if got := snap(p, "", 160); got != "w0" {
		t.Fatalf("while tokens flow: %s; want w0", got)
	}
	p.hush(int(w.slot), 162)
	if got := snap(p, "", 162); got != "w0" {
		t.Errorf("4 s after the last token: %s; want w0", got)
	}
	p.hush(int(w.slot), 164)
	if got := p.Stats(p.after(164))[0].State; got != Silent {
		t.Errorf("6 s after the last token: %v; want silent", got)
	}
	p.heal(int(w.slot), 166)
	if got := snap(p, "", 166); got != "w0" {
		t.Errorf("healthy again: %s; want w0", got)
	}
}

func TestSilenceWithoutFlow(t *testing.T) {
	p := upPool(t, 1)
	w := p.fleet.workers[0]
	p.hush(int(w.slot), 2)
	if got := snap(p, "", 2); got != "w0" {
		t.Errorf("after one silent check: %s; want w0", got)
	}
	p.heal(int(w.slot), 4)
	p.hush(int(w.slot), 6)
	if got := snap(p, "", 6); got != "w0" {
		t.Errorf("silent, good, silent: %s; want w0", got)
	}
	p.hush(int(w.slot), 8)
	if got := p.Stats(p.after(8))[0].State; got != Silent {
		t.Errorf("after two in a row: %v; want silent", got)
	}
	if got := snap(p, "", 8); got != "w0" {
		t.Errorf("the last worker: %s; want w0, though it is silent", got)
	}
}

func TestSlowStart(t *testing.T) {
	p := upPool(t, 1)
	slow := func(at float64, want bool) {
		t.Helper()
		rows := p.rows(at)
		if got := rows[0].State&abi.RowSlowStart != 0; got != want {
			t.Errorf("slow start at %v s: %v; want %v", at, got, want)
		}
	}
	slow(1, false) // the start of the fleet is no slow start
	p.kill(0, 2)
	p.heal(0, 4)
	slow(4, false) // its turn
	p.send(0, Dispatch{}, 4).End(p.after(4), judge.Outcome{Kind: judge.Answered})
	slow(4, true) // no other worker is there
	slow(13.9, true)
	slow(14.1, false)
}

func TestRefusedIsDownAtOnce(t *testing.T) {
	watcher := new(watcher)
	p := upPoolOf(Config{Workers: specs(2), Watcher: watcher})
	watcher.want(t, "watch 1", "watch 2")
	p.send(0, Dispatch{}, 1).End(p.after(1), judge.Outcome{Kind: judge.Refused})
	if got := snap(p, "", 1); got != "w1" {
		t.Errorf("after a refused dial: %s; want w1", got)
	}
	watcher.want(t, "check 1")
	if s := p.Stats(p.after(1))[0]; s.LastError != "connection refused" || s.Refused != 1 || s.State != Down {
		t.Errorf("stats: %+v", s)
	}
}
