package account

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/limit"
)

func limited(l limit.Limits) *limit.Key {
	return (&limit.Book{}).Configure(map[string]limit.Limits{"team": l}, time.Now())["team"]
}

// The key's place is taken until the last work ends, whichever that is.
func TestThePlaceOfTheKeyFollowsTheWork(t *testing.T) {
	f := func(about string, end func(a *Account, leg *Work)) {
		t.Helper()
		var books Books
		key, now := limited(limit.Limits{InFlight: 1}), time.Now()
		a := books.Open()
		if r := a.Enter(key, now); r != nil {
			t.Fatalf("%s: %+v", about, r)
		}
		var leg Work
		a.Begin(&leg, false)
		full := func(want bool) {
			t.Helper()
			other := books.Open()
			defer other.End(now)
			if r := other.Enter(key, now); (r != nil) != want {
				t.Errorf("%s: another request of the key: refused %v; want %v", about, r != nil, want)
			}
		}
		full(true)
		end(a, &leg)
		full(true)
		a.End(now)
		leg.End(now)
		full(false)
		if s := books.Sums(); s != (Sums{}) {
			t.Errorf("%s: %+v at rest", about, s)
		}
	}
	now := time.Now()
	f("the client leaves first", func(a *Account, _ *Work) { a.End(now); a.End(now) })
	f("the prefill ends first", func(_ *Account, leg *Work) { leg.End(now); leg.End(now) })
}

type body struct{ freed int }

func (b *body) Free() { b.freed++ }

// The memory of a body is freed once, when the request does not need it and no work reads it.
func TestTheBodyIsFreedOnce(t *testing.T) {
	f := func(want string, do func(a *Account, b *body, reader, other *Work) (freed []int)) {
		t.Helper()
		var books Books
		a, b := books.Open(), new(body)
		var reader, other Work
		a.Begin(&reader, true)
		a.Begin(&other, false)
		for i, n := range do(a, b, &reader, &other) {
			if n != int(want[i]-'0') {
				t.Errorf("freed %d times after step %d; want %c", n, i, want[i])
			}
		}
	}
	now := time.Now()
	f("0011", func(a *Account, b *body, reader, other *Work) (freed []int) {
		for _, step := range []func(){func() { a.Keep(b) }, func() { other.End(now) }, func() { reader.End(now) }, func() { a.End(now) }} {
			step()
			freed = append(freed, b.freed)
		}
		return freed
	})
	f("001", func(a *Account, b *body, reader, other *Work) (freed []int) { // the client leaves before the body is left here
		for _, step := range []func(){func() { a.End(now) }, func() { a.Keep(b) }, func() { reader.End(now) }} {
			step()
			freed = append(freed, b.freed)
		}
		return freed
	})
	f("01", func(a *Account, b *body, reader, other *Work) (freed []int) { // another work that reads nothing keeps it from nobody
		for _, step := range []func(){func() { reader.End(now) }, func() { a.Keep(b) }} {
			step()
			freed = append(freed, b.freed)
		}
		return freed
	})
	b := new(body)
	if (*Account)(nil).Keep(b); b.freed != 1 {
		t.Errorf("without an account it was freed %d times", b.freed)
	}
}

// What an account still holds at its end is a leak: it is counted, and the sums are right again.
func TestLeaksAreCounted(t *testing.T) {
	var books Books
	a, now := books.Open(), time.Now()
	var lost, kept Hold
	a.Take(&lost, Memory, 7)
	a.Take(&kept, Worker, 1)
	kept.Release()
	if got := books.Sums().Held[Memory]; got != 7 {
		t.Errorf("%d bytes held; want 7", got)
	}
	a.End(now)
	if s := books.Sums(); s.Leaks != 1 || s.Held != [kinds]int64{} {
		t.Errorf("%+v; want one leak, and nothing held", s)
	}
	lost.Release()
	if s := books.Sums(); s.Held != [kinds]int64{} {
		t.Errorf("a release after the end changes the sums: %+v", s)
	}
}

// TestTogether ends and releases everything twice, from several goroutines: no sum is below zero on the way, and all are
// zero at the end.
func TestTogether(t *testing.T) {
	var books Books
	key := limited(limit.Limits{InFlight: 1 << 20})
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			r := rand.New(rand.NewPCG(rand.Uint64(), 1))
			for range 2000 {
				a := books.Open()
				_ = a.Enter(key, time.Now())
				var works [3]Work
				var holds [3]Hold
				for i := range works {
					a.Begin(&works[i], r.IntN(2) == 0)
					a.Take(&holds[i], What(r.IntN(kinds)), int64(1+r.IntN(9)))
				}
				var parts sync.WaitGroup
				for range 2 {
					parts.Go(func() {
						for i := range works {
							holds[i].Release()
							works[i].End(time.Now())
						}
						a.Sent()
						a.End(time.Now())
					})
				}
				a.Keep(new(body))
				parts.Wait()
				for what, n := range books.Sums().Held {
					if n < 0 {
						t.Errorf("%s: %d", What(what), n)
					}
				}
			}
		})
	}
	running.Wait()
	if s := books.Sums(); s.Open != 0 || s.Held != [kinds]int64{} {
		t.Errorf("at the end: %+v", s)
	}
}
