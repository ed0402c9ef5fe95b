package worker

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// Each bound makes a worker full for rows, for Begin, for sessions bound to it and for pages; a worker without requests
// takes any.
func TestBoundsOfAWorker(t *testing.T) {
	big := Dispatch{PromptTokens: 15000, Est: 1}
	f := func(what string, c Config, first Dispatch, next Dispatch, at float64, want bool) {
		t.Helper()
		c.Workers = specs(1)
		c.Workers[0].KVTokens = 20000
		p := upPoolOf(c)
		w := p.fleet.workers[0]
		if _, ok := p.TryBegin(w, Dispatch{PromptTokens: 1 << 20}, p.after(1)); !ok {
			t.Errorf("%s: an idle worker takes no request", what)
		}
		p = upPoolOf(c)
		w = p.fleet.workers[0]
		p.send(0, first, 1)
		q := Query{At: p.after(at), Holds: next.PromptTokens + next.Output, Beginning: next.Beginning}
		rows, _, standing := p.Snapshot(q, nil, nil)
		if got := len(rows) == 0; got != want || want && standing != Full {
			t.Errorf("%s: %d rows, %v; want full: %v", what, len(rows), standing, want)
		}
		if q.Full = true; true {
			if rows, _, _ := p.Snapshot(q, nil, nil); len(rows) != 1 {
				t.Errorf("%s: no row for one who asks for full workers too", what)
			}
		}
		next.Holds = q.Holds
		if _, ok := p.TryBegin(w, next, p.after(at)); ok == want {
			t.Errorf("%s: Begin took it: %v", what, ok)
		}
	}
	begins := func(parts ...uint64) Beginning { return Beginning{Parts: parts, Tokens: 4000} }
	f("no bound", Config{}, big, big, 1, false)
	f("prefill queued", Config{MaxWait: .5}, big, big, 1, true)
	f("prefill queued below the bound", Config{MaxWait: 1.5}, big, big, 1, false)
	f("prefill that is mostly done", Config{MaxWait: .5}, big, big, 1.9, false)
	f("an answer in one piece whose prefill is over", Config{MaxWait: .5}, Dispatch{PromptTokens: 15000, Est: 1, Whole: true},
		big, 3, false)
	f("KV held", Config{MaxKVUse: .9}, big, Dispatch{PromptTokens: 3001}, 1, true)
	f("KV held, and room", Config{MaxKVUse: .9}, big, Dispatch{PromptTokens: 3000}, 1, false)
	f("KV that an answer takes", Config{MaxKVUse: .9}, big, Dispatch{PromptTokens: 2000, Output: 1001}, 1, true)
	shared := Dispatch{PromptTokens: 15000, Beginning: begins(1, 2, 3)}
	f("KV that another prompt has too", Config{MaxKVUse: .9}, shared, shared, 1, false)
	f("KV of which another prompt has a part", Config{MaxKVUse: .9}, shared,
		Dispatch{PromptTokens: 15000, Beginning: begins(1, 7)}, 1, true)
}

// The size of a KV cache that nobody knows bounds nothing, and neither do metrics that no longer come.
func TestUnknownKVBoundsNothing(t *testing.T) {
	p := upPoolOf(Config{Workers: specs(1), MaxKVUse: .5, MaxWait: 9})
	p.send(0, Dispatch{PromptTokens: 1 << 20, Est: 1}, 1)
	if rows := p.rows(1); len(rows) != 1 {
		t.Error("no row, though nobody knows how much KV the worker has")
	}
	p.scrape(0, Metrics{Capacity: 4096}, 2)
	if rows := p.rows(2); len(rows) != 0 {
		t.Error("a row, though its KV is taken many times over")
	}
	p.Unscraped(p.fleet.workers[0].number, "silent", p.after(400))
	if rows := p.rows(400); len(rows) != 0 {
		t.Error("the silence of the metrics made room")
	}
}

// heard counts the calls of a Room, and calls the pool back: the lock must be free.
type heard struct {
	n    atomic.Int64
	pool *Pool
}

func (h *heard) MayHaveCome() {
	h.n.Add(1)
	if h.pool != nil {
		h.pool.Up(time.Time{})
	}
}

// What may make room is told, and what cannot is not.
func TestRoomIsTold(t *testing.T) {
	h := new(heard)
	c := Config{Workers: specs(2), MaxInFlight: 1, Room: h}
	p := upPoolOf(c)
	h.pool = p
	f := func(what string, told bool, do func()) {
		t.Helper()
		before := h.n.Load()
		do()
		if got := h.n.Load() > before; got != told {
			t.Errorf("%s: told: %v; want %v", what, got, told)
		}
	}
	w := p.fleet.workers[0]
	var k *Ticket
	f("a request begins", false, func() { k, _ = p.TryBegin(w, Dispatch{PromptTokens: 9}, p.after(1)) })
	f("one that finds no room", false, func() { p.TryBegin(w, Dispatch{PromptTokens: 9}, p.after(1)) })
	f("a first byte", true, func() { k.FirstByte(p.after(2)) })
	f("its end", true, func() { k.End(p.after(3), judge.Outcome{Kind: judge.Answered}) })
	var o *Foreign
	f("another router's request", false, func() { o = p.BeginForeign(w.key, Dispatch{PromptTokens: 9}, true, p.after(4)) })
	f("its first byte", true, func() { o.FirstByte(p.after(5)) })
	f("its end", true, o.End)
	f("a page of metrics with another size", true, func() { p.scrape(0, Metrics{Capacity: 4096}, 5) })
	f("one without", false, func() { p.scrape(0, Metrics{Capacity: 4096}, 6) })
	f("a worker goes down", true, func() { p.kill(1, 6) })
	f("it is up again", true, func() { p.heal(1, 7) })
	f("a worker is added", true, func() { p.Update(specs(3), p.after(8)) })
	f("the end of a drain", true, func() { p.Drain("w0", true, p.after(9)); p.Drain("w0", false, p.after(9)) })
	f("another configuration", true, func() { p.Configure(c) })
	f("one without a Room", true, func() { c.Room = nil; p.Configure(c) })
	f("a request's end after that", false, func() {
		k, _ = p.TryBegin(w, Dispatch{PromptTokens: 9}, p.after(10))
		k.End(p.after(11), judge.Outcome{})
	})
}

// A moved request counts what its beginning shares at the other worker.
func TestARequestMovesWhereItsKVFits(t *testing.T) {
	c := Config{Workers: specs(2), MaxKVUse: .5}
	for i := range c.Workers {
		c.Workers[i].KVTokens = 1000
	}
	for i, parts := range [][]uint64{{1}, {2}} {
		p := upPoolOf(c)
		p.send(1, Dispatch{PromptTokens: 400, Beginning: Beginning{Parts: []uint64{1}, Tokens: 400}}, 1)
		k := p.send(0, Dispatch{PromptTokens: 400, Beginning: Beginning{Parts: parts, Tokens: 400}}, 1)
		if got := k.Elsewhere(p.after(2)); got != (i == 0) {
			t.Error(fmt.Sprint("parts ", parts, ": takes it elsewhere: ", got))
		}
	}
}

// TestBacklogged: a worker with more prefill queued than max_wait_seconds is offered while another has room, so that a
// prompt whose beginning it holds can wait there. One that does not know of the backlog gets no place, and neither does
// a session that can go nowhere else.
func TestBacklogged(t *testing.T) {
	p := upPoolOf(Config{Workers: specs(2), MaxWait: .5})
	busy := p.fleet.workers[0]
	p.send(0, Dispatch{PromptTokens: 15000, Est: 1}, 1)
	rows := func(q Query) (ids string, s Standing) {
		q.At = p.after(1)
		_, ws, s := p.Snapshot(q, nil, nil)
		for _, w := range ws {
			ids += w.ID()
		}
		return ids, s
	}
	if ids, _ := rows(Query{}); ids != "w0w1" {
		t.Errorf("%q are offered while one has room; want both", ids)
	}
	if ids, _ := rows(Query{Bound: "w0", Tied: true}); ids != "w1" {
		t.Errorf("%q are offered to a session that is tied to the first; want the other, which cannot serve it", ids)
	}
	if _, ok := p.TryBegin(busy, Dispatch{PromptTokens: 9}, p.after(1)); ok {
		t.Error("it takes a request that knows of no backlog")
	}
	if _, ok := p.TryBegin(busy, Dispatch{PromptTokens: 9, Backlogged: true}, p.after(1)); !ok {
		t.Error("it does not take a request that knows of its backlog")
	}
	p.send(1, Dispatch{PromptTokens: 15000, Est: 1}, 1)
	if ids, s := rows(Query{}); ids != "" || s != Full {
		t.Errorf("%q are offered, %v, while both have too much; want none, as full", ids, s)
	}
}
