package holdings

import "github.com/warmpath/warmpath/cache/parts/blocks"

// store enters an event's blocks where they belong. It returns false when the worker reports more than it may hold. Its
// view cannot be right any more: the caller clears it.
func (w *worker) store(s *blocks.Stored) bool {
	switch {
	case s.Medium > Local || len(s.Hashes) == 0:
		return true
	case len(s.Tokens) == 0:
		w.storeKnown(s)
		return true
	case s.BlockSize <= 0 || len(s.Tokens)/s.BlockSize != len(s.Hashes) || len(s.Tokens)%s.BlockSize != 0:
		w.tally.Mismatched += uint64(len(s.Hashes))
		return true
	}
	if s.Medium == GPU {
		w.size.Store(int64(s.BlockSize))
	}
	if !s.HasParent {
		return w.settle(s, nil, 0)
	}
	parent := w.table.find(s.Parent)
	if parent < 0 {
		w.tally.Dropped += uint64(w.parked.park(s, w.counted(s.Medium)))
		return true
	}
	b := &w.table.buckets[parent]
	at := w.places[b.id]
	if at.p.size != s.BlockSize {
		w.tally.Mismatched += uint64(len(s.Hashes))
		return true
	}
	return w.settle(s, &at, b.offset()+1)
}

// counted returns a function that counts a copy more of a hash that has a place.
func (w *worker) counted(t blocks.Medium) func(uint64) bool {
	return func(hash uint64) bool {
		at := w.table.find(hash)
		if at >= 0 {
			w.again(at, t)
		}
		return at >= 0
	}
}

// storeKnown enters blocks that come without their tokens.
func (w *worker) storeKnown(s *blocks.Stored) {
	counted := w.counted(s.Medium)
	for _, h := range s.Hashes {
		if !counted(h) && !w.parked.count(h, s.Medium, 1) {
			w.tally.Unplaced++
		}
	}
}

// settle enters blocks whose place is known, and then those that waited for one of them.
func (w *worker) settle(s *blocks.Stored, at *position, off int) bool {
	if !w.add(s, at, off, nil) {
		return false
	}
	return w.parked.blocks == 0 || w.unpark(append([]uint64(nil), w.fresh...))
}

// unpark enters the blocks that waited for one of the hashes, which have arrived, and then those that waited for these.
func (w *worker) unpark(came []uint64) bool {
	for ; len(came) > 0; came = came[1:] {
		hash := came[0]
		w.copy(hash, w.parked.take(hash))
		for o := w.parked.byParent[hash]; o != nil; o = w.parked.byParent[hash] {
			w.parked.unpark(o)
			more, ok := w.attach(o, w.table.find(hash))
			if !ok {
				return false
			}
			came = append(came, more...)
		}
	}
	return true
}

// attach enters an orphan whose parent has come, with the copies that it has now, and returns the hashes that are new.
func (w *worker) attach(o *orphan, parent int) (came []uint64, ok bool) {
	b := w.table.buckets[parent]
	at := w.places[b.id]
	if at.p.size != o.s.BlockSize {
		w.tally.Mismatched += uint64(len(o.s.Hashes))
		return nil, true
	}
	skip := make([]bool, len(o.copies))
	for t := GPU; t <= Local; t++ {
		some := false
		for i, c := range o.copies {
			skip[i] = c[t] == 0
			some = some || c[t] > 0
		}
		if !some {
			continue
		}
		o.s.Medium = t
		if !w.add(&o.s, &at, b.offset()+1, skip) {
			return nil, false
		}
		came = append(came, w.fresh...)
	}
	for i, c := range o.copies { // add entered one of each
		c[GPU] -= min(c[GPU], 1)
		c[Local] -= min(c[Local], 1)
		w.copy(o.s.Hashes[i], c)
	}
	return came, true
}

// copy adds copies of a hash that has a place.
func (w *worker) copy(hash uint64, more [2]uint16) {
	for t := GPU; t <= Local; t++ {
		for range more[t] {
			if at := w.table.find(hash); at >= 0 {
				w.again(at, t)
			}
		}
	}
}
