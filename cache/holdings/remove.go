package holdings

import "github.com/warmpath/warmpath/cache/parts/blocks"

// remove takes one copy of each hash out of a tier. What is not there is counted.
func (w *worker) remove(t blocks.Medium, hashes []uint64) {
	for len(hashes) > 0 {
		n := min(len(hashes), span64)
		w.unnote(t, hashes[:n])
		w.vacate(t)
		hashes = hashes[n:]
	}
	w.table.shrink()
}

// unnote takes one copy of each hash out of the table. w.drops has the places that are lost by it.
func (w *worker) unnote(t blocks.Medium, hashes []uint64) {
	w.drops = w.drops[:0]
	w.warm += w.table.touch(hashes)
	for _, hash := range hashes {
		at := w.table.find(hash)
		if at < 0 || w.table.buckets[at].copies(t) == 0 {
			if !w.parked.count(hash, t, -1) {
				w.tally.Unknown++
			}
			continue
		}
		w.tally.Removed++
		s := &w.table.buckets[at]
		if w.fewer(s, t) {
			continue
		}
		w.tally.Held[t]--
		w.drops = append(w.drops, drop{id: s.id, offset: s.offset()})
		if s.copies(1-t) == 0 {
			w.table.remove(at)
		}
	}
}

// vacate takes the places in w.drops out of a tier.
func (w *worker) vacate(t blocks.Medium) {
	var p *plane // locked
	for _, d := range w.drops {
		at := w.places[d.id]
		if at.p != p {
			if p != nil {
				w.dir.unlock(p)
			}
			p = at.p
			p.mu.Lock()
		}
		w.drop(at, t, d.offset)
	}
	if p != nil {
		w.dir.unlock(p)
	}
}

// fewer takes one copy and reports whether another is left.
func (w *worker) fewer(s *bucket, t blocks.Medium) bool {
	c := s.copies(t)
	if c == mostCopies && w.many != nil {
		key := copied{s.hash, t}
		if n := w.many[key]; n > 1 {
			w.many[key] = n - 1
			return true
		} else if n == 1 {
			delete(w.many, key)
			return true
		}
	}
	s.meta -= 1 << shift(t)
	return c > 1
}

// drop takes a block out of a tier unless the worker holds it under another hash.
func (w *worker) drop(at position, t blocks.Medium, offset int) {
	if len(w.twins) > 0 {
		key := twin{at.h.id, uint16(offset), t}
		if n := w.twins[key]; n > 1 {
			w.twins[key] = n - 1
			return
		} else if n == 1 {
			delete(w.twins, key)
			return
		}
	}
	at.h.drop(t, offset)
	if at.h.n == [2]uint16{} {
		w.places[at.h.id] = position{}
		w.free = append(w.free, at.h.id)
		at.h.id = 0
	}
	at.p.release(at.h)
}
