package session

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

func TestBoundStays(t *testing.T) {
	f := sdktest.NewFrame(4)
	f.Header.Session, f.Header.Bound, f.Rows[2].InFlight = 7, 2, 1000
	if got := f.Run(t, New()); got.Row != 2 || got.Reason != sdk.ReasonSession {
		t.Errorf("row %d, %v; want the bound one, 2", got.Row, got.Reason)
	}
}

func TestNoSessionGoesToFewestInFlight(t *testing.T) {
	f := sdktest.NewFrame(4)
	for i, n := range []uint32{3, 1, 1, 2} {
		f.Rows[i].InFlight, f.Rows[i].Sent = n, uint64(9-i)
	}
	got := f.Run(t, New())
	if got.Row != 2 || got.Bind || got.Reason != sdk.ReasonLeast || !slices.Equal(got.Order, []int{1, 3, 0}) {
		t.Errorf("%+v; want row 2, then 1, 3, 0, unbound", got)
	}
}

// Of workers that have as much in flight the one that got the fewest lately is first, as in the host's order.
func TestTiesGoToTheFewestLately(t *testing.T) {
	f := sdktest.NewFrame(4)
	for i, n := range []float32{3, 1, .5, 2} {
		f.Rows[i].Lately, f.Rows[i].Sent = n, uint64(i)
	}
	f.Rows[2].InFlight = 1
	if got := f.Run(t, New()); got.Row != 1 || !slices.Equal(got.Order, []int{3, 0, 2}) {
		t.Errorf("%+v; want row 1, then 3, 0, 2", got)
	}
}

// While the KV of all workers that the host shows as the least busy may be full, the strategy asks for the others.
func TestAsksForTheOthersAtTheEdgeOfKV(t *testing.T) {
	f := sdktest.NewFrame(20)
	f.Header.LeftOut = 80
	for i := range least {
		if got := f.Run(t, New()).Row; got < i || i > 0 && got == i-1 {
			t.Fatalf("%d are full: row %d", i, got)
		}
		f.Rows[i].HeldTokens = 450_000
	}
	if d := f.Run(t, New()); d.Row != int(abi.Decline) {
		t.Errorf("%+v; want none, while %d workers are full", d, least)
	}
	f.Header.LeftOut = 0
	if got := f.Run(t, New()).Row; got != least {
		t.Errorf("row %d, with the rows of all; want %d", got, least)
	}
}

// A worker whose KV is full gets neither a new session nor a request without one, while another has room.
func TestTheEdgeOfKV(t *testing.T) {
	for _, session := range []uint64{0, 7} {
		f := sdktest.NewFrame(4)
		f.Header.Session = session
		first := f.Run(t, New()).Row
		f.Rows[first].HeldTokens = 449_001 // of 450,000, and the prompt has 1,000
		got := f.Run(t, New())
		if got.Row == first || got.Order[2] != first {
			t.Errorf("session %d: row %d, then %v; row %d is full", session, got.Row, got.Order, first)
		}
		for i := range f.Rows {
			f.Rows[i].HeldTokens = 449_001
		}
		if got := f.Run(t, New()).Row; got != first {
			t.Errorf("session %d, all are full: row %d; want %d", session, got, first)
		}
	}
}

// On an idle fleet a session's place depends on the workers' ids alone: neither on the order of the rows, nor, unless
// its own worker leaves, on who else is there.
func TestRendezvous(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	const n, sessions = 10, 4000
	counts := make([]int, n)
	for range sessions {
		f := sdktest.NewFrame(n)
		f.Header.Session = rng.Uint64() | 1
		got := f.Run(t, New())
		if !got.Bind || got.Reason != sdk.ReasonHash {
			t.Fatalf("%+v; want a bind by hash", got)
		}
		key := f.Rows[got.Row].Key
		counts[got.Row]++
		gone := rng.IntN(n)
		second := f.Rows[got.Order[0]].Key
		rng.Shuffle(n, func(i, j int) { f.Rows[i], f.Rows[j] = f.Rows[j], f.Rows[i] })
		if f.Rows[gone].Key == key {
			key = second
		}
		f.Rows = slices.Delete(f.Rows, gone, gone+1)
		if again := f.Rows[f.Run(t, New()).Row].Key; again != key {
			t.Fatalf("session %d moved to %x; want %x", f.Header.Session, again, key)
		}
	}
	if low, high := slices.Min(counts), slices.Max(counts); low < sessions/n*8/10 || high > sessions/n*12/10 {
		t.Errorf("sessions a worker %v; want about %d", counts, sessions/n)
	}
}

// New sessions never make a worker exceed 1.25 times the mean plus one, however they hash.
func TestBoundedLoad(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	f, total := sdktest.NewFrame(8), 0
	f.Rows[7].Weight = 2
	spilt := 0
	for range 3000 {
		f.Header.Session = rng.Uint64() | 1
		got := f.Run(t, New())
		if got.Reason == sdk.ReasonSpill {
			spilt++
		}
		f.Rows[got.Row].InFlight++
		total++
		for i := range f.Rows {
			w := float64(f.Rows[i].Weight)
			if limit := (bound*float64(total)/9+1)*w + 1; float64(f.Rows[i].InFlight) > limit {
				t.Fatalf("worker %d has %d of %d in flight; the bound is %v", i, f.Rows[i].InFlight, total, limit)
			}
		}
	}
	if spilt == 0 || spilt > 1500 {
		t.Errorf("%d of 3000 sessions were spilt", spilt)
	}
}

func TestSlowStartTakesFewNewSessions(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	f := sdktest.NewFrame(4)
	f.Rows[0].State = abi.RowSlowStart
	for range 400 {
		f.Header.Session = rng.Uint64() | 1
		f.Rows[f.Run(t, New()).Row].InFlight++
	}
	if n := f.Rows[0].InFlight; n == 0 || n > 50 {
		t.Errorf("%d of 400 went to the worker in slow start; want some, and fewer than half its share of 100", n)
	}
}

// A worker that has more than its share of the sessions that live gets no new ones, busy or not.
func TestLiveSessionsAreShared(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const n = 7
	var live [n]uint32
	for i := range n - 1 { // the last one has just joined
		live[i] = 1000
	}
	for range 3000 {
		f := sdktest.NewFrame(n)
		f.Header.Session = rng.Uint64() | 1
		for i := range live {
			f.Rows[i].Sessions = live[i]
		}
		live[f.Run(t, New()).Row]++
	}
	mean := float64(6000+3000) / n
	if most := float64(slices.Max(live[:])); most > 1.06*mean {
		t.Errorf("live sessions %v; want none over %.0f", live, 1.06*mean)
	}
}
