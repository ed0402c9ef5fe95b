package worker

import "testing"

// TestInUse: of a worker's prefill, its KV and its requests the one that is used most counts.
func TestInUse(t *testing.T) {
	f := func(s Stats, want float64) {
		t.Helper()
		if got := s.inUse(); got != want {
			t.Errorf("%+v: %v; want %v", s, got, want)
		}
	}
	f(Stats{}, 0)
	f(Stats{Load: 1.25, KVUsage: .5, InFlight: 9}, 1.25)
	f(Stats{Load: .25, KVUsage: .5, InFlight: 9}, .5)
	f(Stats{Load: .25, KVUsage: .5, InFlight: 5, Theirs: 1, Limit: 8, Ranks: 1}, .75)
	f(Stats{KVUsage: .5, Running: 4, Waiting: 4}, 1)
	f(Stats{KVUsage: .5, Waiting: 4}, .5)
	f(Stats{InFlight: 3, Limit: 8, Ranks: 2}, .75) // the limit is that of both ranks together
}
