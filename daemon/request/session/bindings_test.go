package session

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func opened(id string) Name  { return Name{Kind: Opened, ID: id} }
func keyed(id string) Name   { return Name{Kind: Key, ID: id} }
func answers(id string) Name { return Name{Kind: Response, ID: id} }

// where is the worker of a live session, or the reason why there is none.
func where(b *Bindings, n Name) string {
	found, s := b.Find(n, time.Now())
	if s != Found {
		return s.String()
	}
	return found.Worker
}

func TestOpenUseClose(t *testing.T) {
	b := On(newMemory(), Config{Pool: "p"})
	f := func(what, want string) {
		t.Helper()
		if got := where(b, opened("id")); got != want {
			t.Fatalf("%s: %s; want %s", what, got, want)
		}
	}
	f("before", "unknown")
	now := time.Now()
	as, err := b.Open(opened("id"), Binding{Worker: "w1", Minted: true, WorkerSession: "at-w1"}, now)
	if err != nil || as.Expires.Nanosecond() != 0 || as.Expires.After(now.Add(1200*time.Second)) || as.Expires.Before(now.Add(1199*time.Second)) {
		t.Fatalf("opened as %+v, %v; want 1200 s in whole seconds", as, err)
	}
	f("open", "w1")
	f("again", "w1")
	if found, _ := b.Peek(opened("id"), now); found.Upstream("id") != "at-w1" || !found.Minted || !found.Expires.Equal(as.Expires) {
		t.Fatalf("found %+v", found)
	}
	if !b.Close(opened("id"), now) || b.Close(opened("id"), now) {
		t.Fatal("want one close to close")
	}
	f("closed", "closed")
	c := b.Counts()
	if c.Opened[Opened] != 1 || c.Used[Opened] != 2 || c.Closed[Opened] != 1 || c.Refused[Unknown] != 1 || c.Refused[Closed] != 1 {
		t.Fatalf("counts %+v", c)
	}
	if _, err := b.Open(opened("id"), Binding{Worker: "w2"}, now); err != nil {
		t.Fatalf("an id whose session was closed is free again: %v", err)
	}
	f("opened again", "w2")
}

func TestForeignIDsAreUnknown(t *testing.T) {
	store := newMemory()
	mine, other := On(store, Config{Pool: "p"}), On(store, Config{Pool: "q"})
	own := Name{Kind: Opened, Tenant: "a", ID: "bc"}
	if _, err := mine.Open(own, Binding{Worker: "w"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	f := func(what string, b *Bindings, n Name, want string) {
		t.Helper()
		if got := where(b, n); got != want {
			t.Errorf("%s: %s; want %s", what, got, want)
		}
	}
	f("its own", mine, own, "w")
	f("a second router with the same store", On(store, Config{Pool: "p"}), own, "w")
	f("another pool", other, own, "unknown")
	f("another tenant", mine, Name{Kind: Opened, Tenant: "x", ID: "bc"}, "unknown")
	f("no tenant", mine, opened("bc"), "unknown")
	f("the border moved", mine, Name{Kind: Opened, Tenant: "ab", ID: "c"}, "unknown")
	f("another kind", mine, Name{Kind: Key, Tenant: "a", ID: "bc"}, "unknown")
	f("a kind that is none", mine, Name{Kind: kinds, Tenant: "a", ID: "bc"}, "unknown")
	f("its beginning", mine, Name{Kind: Opened, Tenant: "a", ID: "b"}, "unknown")
	f("in another case", mine, Name{Kind: Opened, Tenant: "a", ID: "BC"}, "unknown")
	f("the empty id", mine, Name{Kind: Opened, Tenant: "a"}, "unknown")
	for k := range store.values {
		if strings.Contains(k[1], "bc") || len(k[1]) != 43 {
			t.Errorf("the store's key %q shows the id, or has a client's size", k)
		}
	}
}

func TestTheEndIsFixedAndExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(700 * time.Millisecond) // not on a whole second
		b := On(newMemory(), Config{})
		began := time.Now()
		as, err := b.Open(opened("id"), Binding{Worker: "w"}, began)
		if err != nil {
			t.Fatal(err)
		}
		f := func(at time.Time, want string) {
			t.Helper()
			time.Sleep(time.Until(at))
			if got := where(b, opened("id")); got != want {
				t.Fatalf("after %v: %s; want %s", time.Since(began), got, want)
			}
		}
		f(began.Add(10*time.Minute), "w") // a use does not prolong it
		f(as.Expires.Add(-time.Millisecond), "w")
		f(as.Expires, "expired")
		if early := began.Add(1200 * time.Second).Sub(as.Expires); early < 0 || early >= time.Second {
			t.Fatalf("ends %v before its 1,200 s", early)
		}
		if b.Close(opened("id"), time.Now()) || b.Lose(opened("id"), time.Now()) {
			t.Fatal("an expired session was closed")
		}
		f(as.Expires.Add(grace-time.Millisecond), "expired")
		f(as.Expires.Add(grace+time.Second), "unknown")
	})
}

func TestTheWorkersEnd(t *testing.T) {
	b := On(newMemory(), Config{Life: time.Hour})
	now := time.Unix(1_800_000_000, 0).UTC()
	f := func(expires, want time.Time) {
		t.Helper()
		as, err := b.Open(opened(fmt.Sprint(expires.UnixNano())), Binding{Worker: "w", Minted: true, Expires: expires}, now)
		if want.IsZero() != (err != nil) || err == nil && !as.Expires.Equal(want) {
			t.Errorf("%v: %v, %v; want %v", expires, as.Expires, err, want)
		}
	}
	f(time.Time{}, now.Add(time.Hour))
	f(now.Add(time.Minute), now.Add(time.Minute))
	f(now.Add(1500*time.Millisecond), now.Add(time.Second))
	f(now.AddDate(100, 0, 0), now.Add(24*time.Hour))
	f(now, time.Time{})
	f(now.Add(-time.Hour), time.Time{})
	for _, n := range []Name{opened(""), opened("no-worker")} {
		if _, err := b.Open(n, Binding{}, now); err == nil {
			t.Errorf("%+v was opened", n)
		}
	}
}

func TestAnIDThatLivesIsNotTakenOver(t *testing.T) {
	b := On(newMemory(), Config{})
	now := time.Now()
	first, _ := b.Open(opened("id"), Binding{Worker: "w1", Minted: true}, now)
	if _, err := b.Open(opened("id"), Binding{Worker: "w2", Minted: true}, now); err == nil || where(b, opened("id")) != "w1" {
		t.Fatalf("a second worker took the session over: %v", err)
	}
	again, err := b.Open(opened("id"), Binding{Worker: "w1", Minted: true, Expires: now.Add(time.Hour)}, now)
	if err != nil || !again.Expires.Equal(first.Expires) {
		t.Fatalf("the same worker's repeat: %+v, %v; want the first", again, err)
	}
}

func TestKeysLastFromTheirLastUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := On(newMemory(), Config{TTL: time.Minute})
		for _, n := range []Name{keyed("k"), answers("k")} {
			if got, _ := b.Bind(n, "w1", time.Now()); got != "w1" {
				t.Fatal(got)
			}
		}
		f := func(after time.Duration, n Name, want string) {
			t.Helper()
			time.Sleep(after)
			if got := where(b, n); got != want {
				t.Fatalf("%v: %s; want %s", n, got, want)
			}
		}
		f(59*time.Second, keyed("k"), "w1")
		f(59*time.Second, keyed("k"), "w1")
		b.Peek(keyed("k"), time.Now())
		f(time.Minute, keyed("k"), "unknown")
		f(0, answers("k"), "unknown")
		b.Bind(answers("l"), "w1", time.Now())
		f(time.Minute-time.Second, answers("l"), "w1")
		f(time.Minute-time.Second, answers("l"), "w1")
		f(time.Minute, answers("l"), "unknown")
	})
}

var guesses = 1_000_000 // fewer under the race detector

func TestAMillionGuessesGiveNothing(t *testing.T) {
	if testing.Short() {
		guesses = 20_000
	}
	store := newMemory()
	b := On(store, Config{})
	now := time.Now()
	for i := range 1000 {
		if _, err := b.Open(opened(fmt.Sprintf("%026d", i*1_000_003)), Binding{Worker: "w"}, now); err != nil {
			t.Fatal(err)
		}
	}
	writes := store.writes
	for i := range guesses {
		if _, s := b.Find(opened(fmt.Sprintf("%025d", i)), now); s != Unknown {
			t.Fatalf("guess %d is %v", i, s)
		}
	}
	if store.writes != writes || len(store.values) != 1000 {
		t.Fatalf("the guesses made %d writes; the store has %d values", store.writes-writes, len(store.values))
	}
	if n := b.Counts().Refused[Unknown]; n != uint64(guesses) {
		t.Fatalf("%d refusals were counted", n)
	}
}
