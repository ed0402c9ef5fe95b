package kvstore

// Stats has counts since the start, and the present state.
type Stats struct {
	Hits, Misses           uint64 // of Get: from memory, from no tier
	FromDisk, FromFar      uint64 // of Get
	BytesRead              uint64 // of values leased
	Puts                   uint64
	BytesWritten           uint64
	Evictions, Expirations uint64
	LoadErrors             uint64 // of the tiers behind
	Refused                map[string]uint64
	Broken                 uint64 // promises to clients of values that were lost

	Entries       int
	ValueBytes    int64 // of values that can be read
	ReservedBytes int64 // of the arena: values, with what rounding costs, and those being written
	ArenaBytes    int64
	RecordBytes   int64 // keys and records
	Leases, Pins  int   // values being read; values promised
	Fillings      int   // values being written
	Wanted        int   // values promised that are on their way from a tier behind
}

// counts are guarded by Store.mu.
type counts struct {
	hits, fromDisk, fromFar, misses, read uint64
	puts, written, loadErrors             uint64
	refused                               map[error]uint64
}

// reasons are the labels of refused values.
var reasons = map[error]string{
	ErrTooLarge: "too_large", ErrKey: "key", ErrFull: "full", ErrWriting: "writing",
	ErrQuiet: "quiet", ErrTorn: "torn", ErrClosed: "closed",
}

func (s *Store) count(add func(*counts)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts.refused == nil {
		s.counts.refused = map[error]uint64{}
	}
	add(&s.counts)
}

// Stats returns the counts.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, m := &s.counts, &s.memory
	refused := make(map[string]uint64, len(reasons))
	for err, reason := range reasons {
		refused[reason] = n.refused[err]
	}
	return Stats{
		Hits: n.hits, FromDisk: n.fromDisk, FromFar: n.fromFar, Misses: n.misses,
		BytesRead: n.read, Puts: n.puts, BytesWritten: n.written,
		Evictions: m.evictions, Expirations: m.expirations, LoadErrors: n.loadErrors, Refused: refused, Broken: m.broken,
		Entries: len(m.entries), ValueBytes: m.values, ReservedBytes: m.reserved, ArenaBytes: m.arena.Space.Size(),
		RecordBytes: m.records, Leases: m.leases, Pins: len(m.pinned), Fillings: m.fillings, Wanted: len(m.wanted),
	}
}
