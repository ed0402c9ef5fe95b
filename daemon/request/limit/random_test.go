package limit

import (
	"sync"
	"testing"
	"time"
)

// FuzzAnyOrder: whatever happens to the requests of a key, in any order, with any counts and a clock that steps, no
// place and no unit is lost or made: at the end nothing is in flight, and a minute later nothing is taken.
func FuzzAnyOrder(f *testing.F) {
	f.Add([]byte("enter reserve end"), 2, 30, 1000)
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 255, 254, 0, 0, 4, 4, 3, 3}, 1, 1, 1)
	f.Add([]byte{8, 0, 0, 0, 3, 3, 7, 5, 5, 5, 1, 1, 1}, 0, 5, 0)
	f.Fuzz(func(t *testing.T, steps []byte, inFlight, requests, tokens int) {
		l := Limits{InFlight: inFlight & 0xff, Requests: requests & 0xffff, Tokens: tokens & 0xffffff}
		b := &Book{}
		k := b.Configure(map[string]Limits{"team": l}, began)["team"]
		var running [8]*Spending
		at := began
		for round, step := range steps {
			i := int(step>>4) % len(running)
			s := running[i]
			n := Tokens{Prompt: round * 37 % 900, Cached: round * 11 % 500, Output: round*13%300 - 20}
			switch step % 9 {
			case 0, 1:
				if s.Limited() {
					break
				}
				var refused *Refusal
				running[i], refused = k.Enter(at)
				if refused == nil && step%2 == 0 {
					ask := askOf(n, round%2 == 0)
					ask.Whole = round%3 == 0
					running[i].Reserve(ask, at)
				}
			case 2:
				s.Grow(round*int(step), at)
				s.Left(at)
			case 3:
				s.Sent()
				s.Use(n)
			case 4, 5:
				s.End(at)
			case 6:
				at = at.Add(time.Duration(step) * 300 * time.Millisecond)
			case 7:
				at = at.Add(-time.Duration(step) * time.Millisecond)
				s.Learn(n, at)
			case 8:
				b.Share(int(step % 5))
				for _, m := range b.Messages(nil, at) {
					m.Lent(Amounts{float64(step % 3), float64(step), -1}, Amounts{0, float64(step % 7), float64(step)}, at)
				}
			}
			checkSums(t, k)
		}
		for i := range running {
			running[i].End(at)
		}
		for _, m := range b.Messages(nil, at) {
			m.Lent(Amounts{}, Amounts{}, at)
		}
		for range 5 { // until what is too much for the longest debt is forgotten
			at = at.Add(time.Minute)
			checkSums(t, k)
			b.Messages(nil, at)
		}
		late := at.Add((mostDebt + 3) * time.Minute)
		if k != nil {
			k.requests.pass(late)
			k.tokens.pass(late)
			if k.inFlight != 0 || k.requests.minute.sum != 0 || k.tokens.minute.sum != 0 || k.tokens.minute.debt() > 1e-3 {
				t.Errorf("%d in flight, %v requests and %v tokens taken, debt %v", k.inFlight, k.requests.minute.sum,
					k.tokens.minute.sum, k.tokens.minute.debt())
			}
		}
	})
}

// checkSums compares the sums of the last minute with their slots.
func checkSums(t *testing.T, k *Key) {
	t.Helper()
	if k == nil {
		return
	}
	for _, m := range []*minute{&k.requests.minute, &k.tokens.minute} {
		sum := 0.
		for n := m.first; n <= m.now; n++ {
			sum += m.cells[n%slots].units
		}
		if diff := sum - m.sum; diff > 1e-6 || diff < -1e-6 {
			t.Fatalf("the slots have %v, and their sum is %v", sum, m.sum)
		}
	}
	if k.inFlight < 0 || k.tokens.risk < 0 || k.tokens.theirs < 0 || k.tokens.minute.debt() < 0 || k.requests.minute.debt() < 0 {
		t.Fatalf("%d in flight, debts %v and %v", k.inFlight, k.requests.minute.debt(), k.tokens.minute.debt())
	}
}

// TestLimitsUnderLoad: many goroutines take of one key while its limits change and are shared. No more than the limit
// is in flight at a time, and nothing is in the end.
func TestLimitsUnderLoad(t *testing.T) {
	b := &Book{}
	configure := func(n int) *Key {
		return b.Configure(map[string]Limits{"team": {InFlight: 5, Requests: 1e9, Tokens: 1e9 + n}}, time.Now())["team"]
	}
	k := configure(0)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 2000 {
				now := time.Now()
				s, refused := k.Enter(now)
				if refused != nil {
					continue
				}
				ask := askOf(Tokens{Prompt: n, Output: i}, true)
				ask.Whole = n%2 == 0
				if s.Reserve(ask, now) == nil && n%3 > 0 {
					s.Sent()
					s.Grow(n%100, now)
					s.Use(Tokens{Prompt: n})
				}
				s.End(time.Now())
			}
		})
	}
	all.Go(func() {
		for n := range 500 {
			configure(n)
			for _, m := range b.Messages(nil, time.Now()) {
				if m.Taken[ByInFlight] > 5 {
					t.Errorf("%v in flight", m.Taken[ByInFlight])
				}
				m.Lent(m.Limits, Amounts{}, time.Now())
			}
			b.Stats(time.Now())
		}
	})
	all.Wait()
	if s := b.Stats(time.Now())[0]; s.InFlight != 0 || s.Used.Requests == 0 {
		t.Errorf("in the end: %+v", s)
	}
}

// BenchmarkLimited is what a request of a key with all three limits costs; BenchmarkUnlimited one of a key without.
func BenchmarkLimited(b *testing.B) {
	benchmark(b, newKey(Limits{InFlight: 10, Requests: 1 << 40, Tokens: 1 << 50}))
}

func BenchmarkUnlimited(b *testing.B) { benchmark(b, nil) }

func benchmark(b *testing.B, k *Key) {
	b.ReportAllocs()
	at := time.Now()
	for b.Loop() {
		at = at.Add(time.Microsecond)
		s, refused := k.Enter(at)
		if refused != nil || s.Reserve(askOf(Tokens{Prompt: 1000, Output: 100}, true), at) != nil {
			b.Fatal("refused")
		}
		s.Sent()
		s.Use(Tokens{Prompt: 1000, Output: 100})
		s.End(at)
	}
}
