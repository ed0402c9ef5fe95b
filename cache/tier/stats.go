package tier

import "sync/atomic"

// Stats is what happened since the start, and what stands now.
type Stats struct {
	L1Hits, L2Hits, Misses uint64 // of Get: answered by L1 (fresh, or L2 lost), by L2, by neither
	Silent                 uint64 // those of Misses to which Redis gave no answer
	Entries, Bytes         int    // in L1 now; bytes of keys, values and overhead
	Evictions, Expirations uint64 // from L1
	Refused                uint64 // values too large, namespaces too many
	Namespaces             map[string]NamespaceStats
	L2                     L2Stats
}

// NamespaceStats is one namespace in L1.
type NamespaceStats struct {
	Entries, Bytes         int
	Evictions, Expirations uint64
}

// L2Stats is the state of Redis. It is zero where none is configured.
type L2Stats struct {
	Configured bool
	Open       bool   // the breaker: Redis is not asked
	Why        string // what the Redis said when it was lost, and what to do; "" while it is there
	Refuses    string // what it refuses while it takes the rest, and what to do; "" = nothing
	Opens      uint64 // how often it opened
	Calls      uint64
	Failures   uint64 // calls without an answer in time, or answered by an error
	Slow       uint64 // calls that took longer than Timeout, failed or not
	Garbage    uint64 // keys of ours that held what no router wrote
	Restored   uint64 // values that Redis had lost and took back
	Owing      int    // changes that Redis has yet to be given
	Lost       uint64 // such changes given up: evicted from L1 meanwhile
	Told       uint64 // such changes that Redis got later
}

// counters of reads and of the healer.
type counters struct {
	l1Hits, l2Hits, misses, silent, paid atomic.Uint64
}

// countRead counts a read that L1 could not answer by itself.
func (n *counters) countRead(had, live, shared bool) {
	switch {
	case !live:
		n.misses.Add(1)
	case shared:
		n.l2Hits.Add(1)
	case had:
		n.l1Hits.Add(1)
	}
}

func (n *counters) stats() Stats {
	return Stats{
		L1Hits: n.l1Hits.Load(), L2Hits: n.l2Hits.Load(), Misses: n.misses.Load(), Silent: n.silent.Load(),
		L2: L2Stats{Told: n.paid.Load()},
	}
}
