package lmcache

import (
	"fmt"
	"time"
)

// fullSync is a worker sending all its keys again. The worker freezes its cache for that time.
type fullSync struct {
	id       string
	location string
	batches  int
	got      map[int]bool
	ended    bool // the worker has sent all
	began    time.Time
}

// The limits of a full sync. 2,000 keys a batch is LMCache's default, so 1<<12 batches are 8 M keys.
const (
	maxBatches   = 1 << 12
	maxMissing   = 256 // that one answer names; the worker sends them again and asks again
	syncPatience = 5 * time.Minute
)

func newFullSync(m *message, now time.Time) (*fullSync, error) {
	if m.batches < 1 || m.batches > maxBatches {
		return nil, fmt.Errorf("batch_count %d; want 1 to %d: raise full_sync_batch_size of the worker", m.batches,
			maxBatches)
	}
	return &fullSync{id: m.sync, location: m.location, batches: m.batches, got: map[int]bool{}, began: now}, nil
}

// take notes a batch and reports whether it belongs to the sync.
func (f *fullSync) take(m *message) bool {
	if f == nil || f.id != m.sync || m.batch >= f.batches {
		return false
	}
	f.got[m.batch] = true
	return true
}

func (f *fullSync) complete() bool { return len(f.got) == f.batches }

// progress is the answer to the worker's question. A sync that this controller does not know is over: the worker must
// not stay frozen because the daemon was restarted in between.
func (f *fullSync) progress(id string) progress {
	if f == nil || f.id != id {
		return progress{complete: true, share: 1}
	}
	p := progress{complete: f.complete(), share: float64(len(f.got)) / float64(f.batches)}
	for n := 0; f.ended && !p.complete && n < f.batches && len(p.missing) < maxMissing; n++ {
		if !f.got[n] {
			p.missing = append(p.missing, n)
		}
	}
	return p
}
