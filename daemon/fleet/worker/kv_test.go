package worker

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/sdk/abi"
)

// A row has what requests in flight hold of the worker's KV with expected answers, whatever ends first. What several
// share counts once from the time when a request lacks room, until the worker has half of what it had then.
func TestHeldTokens(t *testing.T) {
	s := specs(1)
	s[0].KVTokens = 1000
	p := upPoolOf(Config{Workers: s})
	f := func(what string, at float64, want uint32) {
		t.Helper()
		if got := p.rows(at)[0].HeldTokens; got != want {
			t.Errorf("%s: %d tokens; want %d", what, got, want)
		}
	}
	begins := func(parts ...uint64) Beginning { return Beginning{Parts: parts, Tokens: 100} }
	a := p.send(0, Dispatch{PromptTokens: 350, Output: 20, Beginning: begins(1, 2, 3)}, 1)
	f("one request", 1, 370)
	b := p.send(0, Dispatch{PromptTokens: 260, Output: 20, Beginning: begins(1, 2)}, 2)
	f("another that shares 200", 2, 650)
	c := p.send(0, Dispatch{PromptTokens: 190}, 3)
	f("one without a beginning", 3, 840)
	held := uint32(840)
	shared := func(need float64, want uint32, parts ...uint64) {
		t.Helper()
		rows, workers, _ := p.Snapshot(Query{At: p.after(3)}, nil, nil)
		b := begins(parts...)
		p.FillShared(rows, workers, &b, need)
		if got := rows[0].HeldTokens; got != held {
			t.Errorf("%v: %d tokens are held; want %d", parts, got, held)
		}
		if got := rows[0].SharedTokens; got != want {
			t.Errorf("%v: shares %d tokens; want %d", parts, got, want)
		}
	}
	shared(60, 0, 1, 2, 3) // there is room for all of it
	held = 640
	shared(500, 300, 1, 2, 3, 4)
	shared(500, 200, 1, 2, 7, 3)
	shared(500, 0, 8, 2)
	shared(500, 0)
	shared(260, 0, 1, 2, 3) // there is room for all of it
	a.End(p.after(4), judge.Outcome{Kind: judge.Answered})
	f("the first has ended: the other holds what they shared", 4, 470)
	b.End(p.after(5), judge.Outcome{Kind: judge.Answered})
	f("the second too", 5, 190)
	c.End(p.after(6), judge.Outcome{Kind: judge.Broken})
	f("all", 6, 0)
	long := make([]uint64, 2*MaxParts)
	for i := range long {
		long[i] = uint64(i) + 1
	}
	d := p.send(0, Dispatch{PromptTokens: 100 * len(long), Beginning: begins(long...)}, 7)
	if p.fleet.workers[0].kv.parts != nil {
		t.Error("what is shared is still counted on an idle worker")
	}
	f("more parts than are kept", 7, uint32(100*len(long)))
	other := p.BeginForeign(p.fleet.workers[0].key, Dispatch{PromptTokens: 50}, true, p.after(8))
	f("and a request of another router", 8, uint32(100*len(long))+50)
	d.End(p.after(9), judge.Outcome{})
	other.End()
	f("all again", 9, 0)
}

// The room of a row ends at nine tenths of its KV, and is endless where that is not known.
func TestRoomOfARow(t *testing.T) {
	f := func(want float64, r abi.Row) {
		t.Helper()
		if got := r.Room(); got != want {
			t.Errorf("%+v has room for %v tokens; want %v", r, got, want)
		}
	}
	f(900, abi.Row{KVTokens: 1000})
	f(500, abi.Row{KVTokens: 1000, HeldTokens: 600, SharedTokens: 200})
	f(-300, abi.Row{KVTokens: 1000, HeldTokens: 1200})
	h := abi.Header{PromptTokens: 400, ExpectedOutput: 100}
	rows := []abi.Row{{KVTokens: 1000, HeldTokens: 450}, {KVTokens: 1000, HeldTokens: 401}}
	if got := h.Edge(rows); got >= -1e9 {
		t.Errorf("nobody has room, and the edge is %v", got)
	}
	rows[1].HeldTokens = 400
	if got := h.Edge(rows); got != 500 {
		t.Errorf("the edge is %v; want 500", got)
	}
	if got := h.Edge([]abi.Row{{HeldTokens: 9000}}); got != 500 {
		t.Errorf("an unknown KV: the edge is %v; want 500", got)
	}
}

// What an engine has put back before it was first read is not counted, and a new process counts from 0.
func TestPreempts(t *testing.T) {
	p := upPool(t, 1)
	f := func(what string, m Metrics, at float64, want uint64) {
		t.Helper()
		p.scrape(0, m, at)
		if got, all := p.Stats(p.after(at))[0].Preempts, p.Counts().Preempts; got != want || all != want {
			t.Errorf("%s: %d, %d of all workers; want %d", what, got, all, want)
		}
	}
	f("the first page", Metrics{Process: 1000, Preempts: 40}, 1, 0)
	f("three more", Metrics{Process: 1000, Preempts: 43}, 6, 3)
	f("none", Metrics{Process: 1000, Preempts: 43}, 11, 3)
	f("a new process", Metrics{Process: 1600, Preempts: 2}, 16, 3)
	f("one more", Metrics{Process: 1600, Preempts: 3}, 21, 4)
}
