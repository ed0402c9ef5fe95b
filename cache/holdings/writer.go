package holdings

import (
	"math/rand/v2"
	"sync/atomic"

	"github.com/warmpath/warmpath/cache/parts/blocks"
)

// Writer enters the events of one worker, in their order. Use one at a time; those of different workers go side by
// side.
type Writer struct {
	x *Index
	w *worker
}

// Writer returns a Writer for the events of one worker. Two of the same slot write to the same view. After Forget a
// Writer no longer changes anything: ask for a new one.
func (x *Index) Writer(slot uint32) *Writer {
	x.mu.Lock()
	defer x.mu.Unlock()
	w := x.worker(slot)
	if w == nil {
		w = &worker{slot: slot, dir: &x.dir, seed: x.seed, capacity: x.capacity}
		w.parked.most = x.orphans
		w.table.flip = rand.Uint64()
		w.table.odd = rand.Uint64() | 1
		if int64(slot) < int64(x.most) {
			w.live = &x.live[slot]
		} else {
			w.live = new(atomic.Bool)
			w.gone = slot != Shared
		}
		if w.gone {
			return &Writer{x: x, w: w}
		}
		x.set(slot, w)
	}
	return &Writer{x: x, w: w}
}

// SetLive sets whether the rows may believe this worker's view. It begins as not live.
func (w *Writer) SetLive(live bool) {
	w.w.mu.Lock()
	defer w.w.mu.Unlock()
	if !w.w.gone { // the slot may be another's
		w.w.live.Store(live)
	}
}

// Clear forgets all that the worker holds, in every tier. It also forgets parked stores and predictions. It does not
// change whether the worker is live.
func (w *Writer) Clear() {
	w.w.mu.Lock()
	defer w.w.mu.Unlock()
	w.w.clear()
	w.w.tally.Clears++
	w.x.predicted.forget(w.w.slot)
}

// Store enters blocks. It keeps no part of s. What cannot be placed is counted in Stats, not reported: an event of a
// worker cannot be refused.
func (w *Writer) Store(s *blocks.Stored) {
	in := *s
	in.Medium = w.tier(s.Medium)
	w.w.mu.Lock()
	over := !w.w.gone && !w.w.store(&in)
	if over {
		w.w.overflow()
	}
	w.w.mu.Unlock()
	if over {
		w.x.predicted.forget(w.w.slot)
	}
	if w.x.dir.total.Load() > int64(w.x.chain) {
		relieve(w.x)
	}
}

// Remove takes one copy of each block out of its tier. What is not there is counted in Stats, and harmless.
func (w *Writer) Remove(m blocks.Medium, hashes []uint64) {
	t := w.tier(m)
	w.w.mu.Lock()
	defer w.w.mu.Unlock()
	if t <= Local && !w.w.gone {
		w.w.remove(t, hashes)
	}
}

// tier returns the tier of a medium: what a worker has on its disk counts as in its memory, and the shared tier is one.
// It is above Local for a medium that no view has.
func (w *Writer) tier(m blocks.Medium) blocks.Medium {
	switch {
	case w.w.slot == Shared:
		return GPU
	case m == blocks.Disk:
		return Local
	}
	return m
}
