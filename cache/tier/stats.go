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

// L2Stats is how Redis does. It is zero where none is configured.
type L2Stats struct {
	Configured bool
	Open       bool   // the breaker: Redis is not asked
	Opens      uint64 // how often it opened
	Calls      uint64
	Failures   uint64 // calls without an answer in time, or with an error
	Slow       uint64 // calls that took longer than Timeout, failed or not
	Garbage    uint64 // keys of ours that held what no router wrote
	Restored   uint64 // values that Redis had lost and took back
	Owing      int    // changes that Redis has not been told yet
	Lost       uint64 // such changes given up: evicted from L1 meanwhile
	Told       uint64 // such changes told later
}

// counters of Get and of the healer.
type counters struct {
	l1Hits, l2Hits, misses, silent, told atomic.Uint64
}

// got counts a Get that L1 could not answer by itself.
func (n *counters) got(had, live, shared bool) {
	switch {
	case !live:
		n.misses.Add(1)
	case shared:
		n.l2Hits.Add(1)
	case had:
		n.l1Hits.Add(1)
	}
}

// Stats returns the figures of this moment.
func (s *Store) Stats() Stats {
	st := Stats{L1Hits: s.n.l1Hits.Load(), L2Hits: s.n.l2Hits.Load(), Misses: s.n.misses.Load(),
		Silent: s.n.silent.Load()}
	s.l1.stats(&st)
	if r := s.l2; r != nil {
		st.L2.Configured, st.L2.Open = true, r.open.Load()
		st.L2.Calls, st.L2.Failures, st.L2.Slow = r.calls.Load(), r.failed.Load(), r.slow.Load()
		st.L2.Garbage, st.L2.Restored, st.L2.Told = r.garbage.Load(), r.restored.Load(), s.n.told.Load()
		r.mu.Lock()
		st.L2.Opens = r.opens
		r.mu.Unlock()
	}
	return st
}

func (m *memory) stats(st *Stats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	st.Entries, st.Bytes, st.Refused = m.entries, m.bytes, m.refused
	st.L2.Owing, st.L2.Lost = len(m.owing), m.lost
	st.Evictions, st.Expirations = m.evicted, m.expired
	st.Namespaces = make(map[string]NamespaceStats, len(m.spaces))
	for name, s := range m.spaces {
		st.Namespaces[name] = NamespaceStats{len(s.entries), s.bytes, s.evicted, s.expired}
	}
}
