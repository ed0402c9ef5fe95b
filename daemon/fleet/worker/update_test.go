package worker

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

func TestUpdateKeepsState(t *testing.T) {
	p := upPool(t, 3)
	w0, w1, w2 := p.fleet.workers[0], p.fleet.workers[1], p.fleet.workers[2]
	k := p.force(w1, Dispatch{PromptTokens: 10}, 1)
	next := specs(3)
	next[0].Weight = 3
	next = append(next[:1], next[2], Spec{ID: "w3", URL: "http://127.0.0.1:9100"})
	p.Update(next, start)
	if p.fleet.workers[0] != w0 || p.fleet.workers[1] != w2 || w0.weight != 3 || w2.slot != 2 || !w0.isUp() {
		t.Fatalf("kept workers changed: %+v", p.Stats(p.after(1)))
	}
	if s := p.fleet.workers[2].slot; s != 3 {
		t.Errorf("w3 has slot %d; want 3, as a request of the removed one is in flight", s)
	}
	k.FirstByte(p.after(2))
	k.End(p.after(2), judge.Outcome{Kind: judge.Answered})
	k.End(p.after(2), judge.Outcome{Kind: judge.Failed})
	if w1.flight.n != 0 || w1.queue.pend != 0 || p.fleet.up != 2 {
		t.Errorf("removed worker: %d in flight, pend %v, %d up; want 0, 0, 2", w1.flight.n, w1.queue.pend, p.fleet.up)
	}
	p.Update(append(next, Spec{ID: "w4", URL: "http://127.0.0.1:9101"}), start)
	if s := p.fleet.workers[1]; s.slot != 1 || s.id != "w4" {
		t.Errorf("slot %d is %s; want slot 1 given to w4", s.slot, s.id)
	}
	late := p.force(w1, Dispatch{}, 3) // chosen before it was removed
	late.End(p.after(3), judge.Outcome{Kind: judge.Refused})
	if p.fleet.taken[1] == nil {
		t.Error("a late ticket of a removed worker freed its slot a second time")
	}
}

func TestUpdateNewURLIsNewWorker(t *testing.T) {
	p := upPool(t, 1)
	was := p.fleet.workers[0]
	p.Update([]Spec{{ID: "w0", URL: "http://127.0.0.1:9999"}}, start)
	w := p.fleet.workers[0]
	if w == was || w.slot != 0 || w.health.State() != judge.Starting {
		t.Errorf("same id, other url: %+v; want a new worker, starting", p.Stats(p.after(1)))
	}
}

func TestUpdateBadSpecs(t *testing.T) {
	var log bytes.Buffer
	p := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Workers: []Spec{
		{URL: "http://user:hunter2@10.0.0.1:8000/base/"},
		{ID: "10.0.0.1:8000", URL: "http://10.0.0.2:8000"},
		{ID: "x", URL: "ftp://user:hunter2@10.0.0.1"},
		{ID: "y", URL: "http://user:hunter2@10.0.0.1:port"},
	}}, start)
	if len(p.fleet.workers) != 1 || p.fleet.workers[0].id != "10.0.0.1:8000" {
		t.Fatalf("workers: %+v", p.Stats(p.fleet.began))
	}
	w := p.fleet.workers[0]
	if base := "http://user:hunter2@10.0.0.1:8000/base"; w.metrics != base+"/metrics" || w.URL() != base {
		t.Errorf("urls: %s, %s", w.URL(), w.metrics)
	}
	if n := strings.Count(log.String(), "worker rejected"); n != 3 {
		t.Errorf("%d of 3 bad specs are logged:\n%s", n, log.String())
	}
	if !strings.Contains(log.String(), `msg="worker registered" worker=10.0.0.1:8000 url=http://10.0.0.1:8000/base`) {
		t.Errorf("no line for the good one:\n%s", log.String())
	}
	for _, s := range []string{log.String(), fmt.Sprintf("%+v", p.Stats(p.fleet.began))} {
		if strings.Contains(s, "hunter2") || strings.Contains(s, "user") {
			t.Errorf("credentials are shown: %s", s)
		}
	}
}

// hooks are Caches of functions, any of which may be nil.
type hooks struct {
	down, restarted, outdated func(uint32)
	resized                   func(uint32, int)
}

func (h hooks) Down(slot uint32) {
	if h.down != nil {
		h.down(slot)
	}
}

func (h hooks) Restarted(slot uint32) {
	if h.restarted != nil {
		h.restarted(slot)
	}
}

func (h hooks) Outdated(slot uint32) {
	if h.outdated != nil {
		h.outdated(slot)
	}
}

func (h hooks) Resized(slot uint32, tokens int) {
	if h.resized != nil {
		h.resized(slot, tokens)
	}
}

func TestHooks(t *testing.T) {
	var got []string
	hook := func(name string) func(uint32) {
		return func(slot uint32) { got = append(got, fmt.Sprintf("%s %d", name, slot)) }
	}
	s := specs(2)
	s[0].KVTokens = 5000
	p := New(Config{Workers: s, Caches: hooks{down: hook("down"), restarted: hook("restart"),
		resized: func(slot uint32, n int) { got = append(got, fmt.Sprintf("capacity %d=%d", slot, n)) }}}, start)
	expect := func(want ...string) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("hooks: %q; want %q", got, want)
		}
		got = nil
	}
	expect("capacity 0=5000", "capacity 1=0")
	a, b := p.fleet.workers[0], p.fleet.workers[1]
	p.heal(int(a.slot), 1)
	p.heal(int(a.slot), 1)
	expect()
	p.scrape(int(a.slot), Metrics{Capacity: 3072, Process: 100}, 2)
	p.scrape(int(b.slot), Metrics{Capacity: 3072, Process: 100}, 2)
	expect("capacity 1=3072") // what is configured wins
	p.scrape(int(b.slot), Metrics{Capacity: 4096, Process: 100.5}, 3)
	p.scrape(int(b.slot), Metrics{}, 4) // a page that does not say it
	expect("capacity 1=4096")
	p.scrape(int(b.slot), Metrics{Capacity: 4096, Process: 160}, 5)
	expect("restart 1")
	p.kill(int(a.slot), 6)
	p.kill(int(a.slot), 7)
	expect("down 0")
	k := p.force(a, Dispatch{}, 8)
	p.Update(s[1:], start)
	expect("down 0")
	k.End(p.after(9), judge.Outcome{Kind: judge.Answered}) // the index may have learnt from it
	expect("down 0")
	s[1].KVTokens = 6000
	p.Update(append(s[1:], Spec{ID: "w2", URL: "http://127.0.0.1:9100"}), start)
	expect("capacity 0=0", "capacity 1=6000")
}

func TestDrain(t *testing.T) {
	p := upPool(t, 2)
	if !p.Drain("w0", true, start) || p.Drain("nobody", true, start) {
		t.Error("Drain reports wrongly which workers there are")
	}
	if got := snap(p, "", 1); got != "w1" || p.Stats(p.fleet.began)[0].State != Draining || p.Up(p.fleet.began) != 1 {
		t.Errorf("draining w0: %s, %+v", got, p.Stats(p.fleet.began)[0])
	}
	p.Drain("w0", false, start)
	if got := snap(p, "", 1); got != "w0 w1" {
		t.Errorf("no longer draining: %s", got)
	}
}
