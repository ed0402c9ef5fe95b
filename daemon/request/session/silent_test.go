package session

import (
	"slices"
	"testing"
	"time"
)

// A silent store is asked in no other way than a change needs: what it gets later must fit what it may hold.
func TestASilentStore(t *testing.T) {
	store := newMemory()
	b := On(store, Config{})
	now := time.Now()
	_, _ = b.Open(opened("held"), Binding{Worker: "w1"}, now)
	b.Bind(keyed("held"), "w1", now)
	store.silent = true
	f := func(what string, want ...string) {
		t.Helper()
		if !slices.Equal(store.calls, want) {
			t.Errorf("%s: %v; want %v", what, store.calls, want)
		}
		store.calls = nil
	}
	f("open and bind", "SetIfAbsent", "Settle", "SetIfAbsent")
	if !b.Alone() {
		t.Error("not alone")
	}
	for _, n := range []Name{opened("other"), keyed("other"), answers("other")} {
		if _, s := b.Find(n, now); s != Silent {
			t.Errorf("%v: %v; want silent", n, s)
		}
		if _, s := b.Peek(n, now); s != Silent {
			t.Errorf("%v: %v; want silent", n, s)
		}
		if b.Close(n, now) || b.Lose(n, now) || b.Rebind(n, "w1", "w2", now) != "" {
			t.Errorf("%v: changed, and nobody knows it", n)
		}
	}
	f("nothing is held")
	if got := where(b, opened("held")) + where(b, keyed("held")); got != "w1w1" {
		t.Errorf("what is held is at %s", got)
	}
	if at, bound := b.Keep(keyed("new"), "w2", now); at != "w2" || !bound {
		t.Errorf("kept at %s, %v", at, bound)
	}
	if at, bound := b.Keep(keyed("new"), "w3", now); at != "w2" || bound {
		t.Errorf("kept twice: at %s, %v", at, bound)
	}
	f("a new key", "Keep", "Keep")
	b.Rebind(keyed("held"), "w1", "w2", now)
	f("a move gives way", "Replace")
	b.Close(opened("held"), now)
	f("an end does not", "CompareAndSwap")
	if c := b.Counts(); c.Refused[Silent] != 3 || c.Opened[Key] != 2 {
		t.Errorf("counts %+v", c)
	}
	if Silent.String() != "silent" {
		t.Error(Silent)
	}
}

// Who came second has bound nothing, and has nothing to take back.
func TestOnlyTheFirstBinds(t *testing.T) {
	b := On(newMemory(), Config{})
	if at, bound := b.Bind(keyed("k"), "w1", time.Now()); at != "w1" || !bound {
		t.Errorf("%s, %v", at, bound)
	}
	if at, bound := b.Bind(keyed("k"), "w2", time.Now()); at != "w1" || bound {
		t.Errorf("%s, %v", at, bound)
	}
}

func TestWhoHeardOfTheOpening(t *testing.T) {
	b := On(newMemory(), Config{})
	now := time.Now()
	for i, want := range []Binding{{Worker: "w"}, {Worker: "w", Heard: true}, {Worker: "w", Minted: true}, {Worker: "w", Minted: true, Heard: true}} {
		n := opened(string(rune('a' + i)))
		_, _ = b.Open(n, want, now)
		if got, _ := b.Find(n, now); got.Heard != want.Heard || got.Minted != want.Minted {
			t.Errorf("%+v was stored as %+v", want, got)
		}
		b.Rebind(n, "w", "w2", now)
		if got, _ := b.Find(n, now); got.Worker != "w2" || got.Heard || got.Minted {
			t.Errorf("the new worker has heard nothing: %+v", got)
		}
	}
	silent := Binding{Worker: "w", state: Silent}
	if _, err := decode(silent.encode()); err == nil {
		t.Error("Silent is no state that is stored")
	}
}
