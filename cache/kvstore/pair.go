package kvstore

import "github.com/warmpath/warmpath/cache/kvstore/chunks"

// LMCache keeps a chunk of redis:// under two keys, ...metadata and ...kv_bytes, and looks up the first one alone. So
// the two are promised together, evicted together, and a look-up of one finds nothing if the other is gone.

// marry joins a value that has just come with its other half.
func (m *memory) marry(e *entry) {
	other, ok := chunks.Mate(e.key)
	if !ok {
		return
	}
	if mate := m.entries[other]; mate != nil {
		e.mate, mate.mate = mate, e
	}
}

// part parts a value that leaves the index from its other half.
func (e *entry) part() {
	if e.mate != nil {
		e.mate.mate = nil
		e.mate = nil
	}
}
