package worker

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// lists has worker i list the model m of that length; 0 = it states none.
func (p *Pool) lists(i, length int) {
	entry := json.RawMessage(`{"id":"m","max_model_len":` + strconv.Itoa(length) + `}`)
	p.Listed(p.fleet.workers[i].number, []string{"m"}, []json.RawMessage{entry})
}

// TestSnapshotByLength: a worker that is too short is skipped while a longer one can take the request.
func TestSnapshotByLength(t *testing.T) {
	p := New(Config{Workers: specs(3), MaxInFlight: 1}, start)
	for i := range 3 {
		p.heal(i, 0)
	}
	p.lists(0, 4096)
	p.lists(1, 32768)
	p.lists(2, 32768)
	f := func(q Query, standing Standing, ids ...string) {
		t.Helper()
		q.At = p.after(2)
		rows, ws, s := p.Snapshot(q, nil, nil)
		var got []string
		for _, w := range ws {
			got = append(got, w.ID())
		}
		if !slices.Equal(got, ids) || s != standing || len(rows) != len(ids) {
			t.Errorf("%+v: %v, %v; want %v, %v", q, got, s, ids, standing)
		}
	}
	f(Query{Model: "m", Need: 4096}, Ready, "w0", "w1", "w2")
	f(Query{Model: "m", Need: 4097}, Ready, "w1", "w2")
	f(Query{Model: "m"}, Ready, "w0", "w1", "w2")
	f(Query{Need: 9000}, Ready, "w0", "w1", "w2") // it names no model
	f(Query{Model: "m", Need: 99999}, Ready, "w0", "w1", "w2")
	f(Query{Model: "m", Need: 9000, Bound: "w0"}, Ready, "w1", "w2")
	f(Query{Model: "m", Need: 9000, Bound: "w0", Tied: true}, Ready, "w0", "w1", "w2")
	a, b := p.send(1, Dispatch{}, 1), p.send(2, Dispatch{}, 1)
	f(Query{Model: "m", Need: 9000}, Full) // a longer one will be free in a moment: 429, and no 400
	f(Query{Model: "m", Need: 100}, Ready, "w0")
	a.End(p.after(1), judge.Outcome{})
	b.End(p.after(1), judge.Outcome{})
	p.kill(1, 2)
	p.kill(2, 2)
	f(Query{Model: "m", Need: 9000}, Ready, "w0") // its own 400 is the honest answer
	p.kill(0, 2)
	f(Query{Model: "m", Need: 9000}, Down)
}

// TestCrowdedAndTooShort: workers that have just said that they are full are offered a request that is too long for all
// of them, as others are. A longer one that is full goes before a shorter one.
func TestCrowdedAndTooShort(t *testing.T) {
	p := upPool(t, 2)
	p.lists(0, 4096)
	p.lists(1, 4096)
	f := func(want string) {
		t.Helper()
		got := ""
		_, ws, s := p.Snapshot(Query{Model: "m", Need: 9000, At: p.after(1)}, nil, nil)
		for _, w := range ws {
			got += w.ID() + " "
		}
		if got != want || s != Ready {
			t.Errorf("%q, %v; want %q, %v", got, s, want, Ready)
		}
	}
	p.fail(0, 1, 1, judge.Busy)
	p.fail(1, 1, 1, judge.Busy)
	f("w0 w1 ")
	p.lists(1, 32768)
	f("w1 ")
}

// TestLengthsChange: a worker that starts again with another length is known by that, and equal lists are still one.
func TestLengthsChange(t *testing.T) {
	p := upPool(t, 2)
	p.lists(0, 4096)
	p.lists(1, 4096)
	a, b := p.fleet.workers[0], p.fleet.workers[1]
	if a.listing != b.listing {
		t.Error("equal listings are two")
	}
	p.lists(1, 8192)
	if p.Length(a, "m") != 4096 || p.Length(b, "m") != 8192 || p.Length(a, "other") != 0 {
		t.Errorf("%d and %d", p.Length(a, "m"), p.Length(b, "m"))
	}
	p.lists(1, 0)
	if p.Length(b, "m") != 0 || b.listing.IsShorter("m", 1<<20) {
		t.Error("a length that is not stated any more is believed")
	}
	if s := p.Stats(start)[0]; s.Lengths[0] != 4096 {
		t.Errorf("%+v", s)
	}
}
