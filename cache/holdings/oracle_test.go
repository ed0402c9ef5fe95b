package holdings

import (
	"slices"
	"time"

	"github.com/warmpath/warmpath/cache/parts/blocks"
)

// spot is a block by its content: all ids from the prompt's start to its end.
type spot struct {
	space string // adapter, NUL, salt
	size  int
	path  string // a byte for each id
}

// kept is what the oracle knows of one engine hash.
type kept struct {
	spot   spot
	copies [2]int
}

// waiting is a parked store of the oracle.
type waiting struct {
	s      blocks.Stored
	copies [][2]int
}

func (w *waiting) left() (n int) {
	for _, c := range w.copies {
		if c != [2]int{} {
			n++
		}
	}
	return n
}

// oracle is one worker by brute force: its hashes with the whole content of each. No trees, no chains, no bits.
type oracle struct {
	capacity, orphans int
	live              bool
	held              map[uint64]*kept
	parked            []*waiting // oldest first
	predicted         map[Ticket]*guess
	size              int
}

// guess is one prediction: its blocks that no event has confirmed.
type guess struct {
	until time.Time
	spots map[spot]bool
}

func newOracle(capacity, orphans int) *oracle {
	o := &oracle{capacity: capacity, orphans: orphans}
	o.clear()
	return o
}

func (o *oracle) clear() {
	o.held = map[uint64]*kept{}
	o.parked = nil
	o.predicted = map[Ticket]*guess{}
}

func pathOf(ids []uint32) string {
	b := make([]byte, len(ids))
	for i, id := range ids {
		b[i] = byte(id)
	}
	return string(b)
}

// berth is the parked place of a hash.
func (o *oracle) berth(hash uint64) *[2]int {
	for _, w := range o.parked {
		for i, h := range w.s.Hashes {
			if h == hash && w.copies[i] != [2]int{} {
				return &w.copies[i]
			}
		}
	}
	return nil
}

func (o *oracle) tidy() {
	o.parked = slices.DeleteFunc(o.parked, func(w *waiting) bool { return w.left() == 0 })
}

func (o *oracle) confirm(at spot) {
	for _, g := range o.predicted {
		delete(g.spots, at)
	}
}

// raise adds a copy of a hash whose content is known, and reports false if it is not.
func (o *oracle) raise(hash uint64, t blocks.Medium) bool {
	k := o.held[hash]
	if k == nil {
		return false
	}
	k.copies[t]++
	if t == GPU {
		o.confirm(k.spot)
	}
	return true
}

func (o *oracle) store(s *blocks.Stored) {
	if len(s.Tokens) == 0 {
		for _, h := range s.Hashes {
			if !o.raise(h, s.Medium) {
				if b := o.berth(h); b != nil {
					b[s.Medium]++
				}
			}
		}
		return
	}
	if len(s.Hashes) == 0 || len(s.Tokens) != len(s.Hashes)*s.BlockSize {
		return
	}
	if s.Medium == GPU {
		o.size = s.BlockSize
	}
	at := spot{space: s.Adapter + "\x00" + s.Salt, size: s.BlockSize}
	if s.HasParent {
		k := o.held[s.Parent]
		if k == nil {
			o.park(s)
			return
		}
		if k.spot.size != s.BlockSize {
			return
		}
		at = k.spot
	}
	ones := make([][2]int, len(s.Hashes))
	for i := range ones {
		ones[i][s.Medium] = 1
	}
	came, ok := o.enter(s, at, ones)
	for ok && len(came) > 0 {
		hash := came[0]
		came = came[1:]
		if b := o.berth(hash); b != nil {
			for t := GPU; t <= Local; t++ {
				for ; b[t] > 0; b[t]-- {
					o.raise(hash, t)
				}
			}
			o.tidy()
		}
		for ok {
			i := slices.IndexFunc(o.parked, func(w *waiting) bool { return w.s.Parent == hash })
			if i < 0 {
				break
			}
			w := o.parked[i]
			o.parked = slices.Delete(o.parked, i, i+1)
			if w.s.BlockSize != o.held[hash].spot.size {
				continue
			}
			var more []uint64
			more, ok = o.enter(&w.s, o.held[hash].spot, w.copies)
			came = append(came, more...)
		}
	}
	if !ok {
		o.clear()
		o.live = false
	}
}

// enter gives every hash its content and copies. It returns those that are new, and false if they are too many.
func (o *oracle) enter(s *blocks.Stored, at spot, copies [][2]int) (came []uint64, ok bool) {
	for i, h := range s.Hashes {
		at.path += pathOf(s.Tokens[i*s.BlockSize : (i+1)*s.BlockSize])
		if copies[i] == [2]int{} {
			continue
		}
		if o.held[h] == nil {
			o.held[h] = &kept{spot: at}
			came = append(came, h)
		}
		for t := GPU; t <= Local; t++ {
			for range copies[i][t] {
				o.raise(h, t)
			}
		}
	}
	return came, len(o.held) <= o.capacity
}

func (o *oracle) park(s *blocks.Stored) {
	if len(s.Hashes) > o.orphans {
		return
	}
	w := &waiting{s: *s, copies: make([][2]int, len(s.Hashes))}
	w.s.Hashes = slices.Clone(s.Hashes)
	w.s.Tokens = slices.Clone(s.Tokens)
	o.parked = append(o.parked, w)
	for i, h := range s.Hashes {
		if o.raise(h, s.Medium) {
			continue
		}
		if b := o.berth(h); b != nil {
			b[s.Medium]++
			continue
		}
		w.copies[i][s.Medium] = 1
	}
	o.tidy()
	for {
		n := 0
		for _, w := range o.parked {
			n += w.left()
		}
		if n <= o.orphans {
			return
		}
		o.parked = o.parked[1:]
	}
}

func (o *oracle) remove(t blocks.Medium, hashes []uint64) {
	for _, h := range hashes {
		if k := o.held[h]; k != nil {
			if k.copies[t] > 0 {
				k.copies[t]--
				if k.copies == [2]int{} {
					delete(o.held, h)
				}
				continue
			}
		}
		if b := o.berth(h); b != nil && b[t] > 0 {
			b[t]--
			o.tidy()
		}
	}
}

func (o *oracle) predict(t Ticket, until time.Time, space string, ids []uint32) {
	g := &guess{until: until, spots: map[spot]bool{}}
	held := o.view(GPU)
	for n := o.size; o.size > 0 && n <= len(ids); n += o.size {
		if at := (spot{space, o.size, pathOf(ids[:n])}); !held[at] {
			g.spots[at] = true
		}
	}
	if len(g.spots) > 0 {
		o.predicted[t] = g
	}
}

// view returns all that is held in a tier.
func (o *oracle) view(t blocks.Medium) map[spot]bool {
	all := map[spot]bool{}
	for _, k := range o.held {
		if k.copies[t] > 0 {
			all[k.spot] = true
		}
	}
	return all
}

// match counts what leads in each of the three views.
func (o *oracle) match(shared *oracle, now time.Time, space string, ids []uint32) (want Held) {
	want.Live = o.live
	gpu, local, l2 := o.view(GPU), o.view(Local), shared.view(GPU)
	for _, g := range o.predicted {
		for at := range g.spots {
			if now.Before(g.until) {
				gpu[at] = true
			}
		}
	}
	for _, size := range sizes {
		onGPU, near := true, true
		for n := size; n <= len(ids)-1; n += size {
			at := spot{space, size, pathOf(ids[:n])}
			onGPU = onGPU && gpu[at]
			near = near && (gpu[at] || local[at])
			if !gpu[at] && !local[at] && !l2[at] {
				break
			}
			if onGPU {
				want.GPU = max(want.GPU, uint32(n))
			}
			if near {
				want.Local = max(want.Local, uint32(n))
			}
			want.All = max(want.All, uint32(n))
		}
	}
	return want
}

var sizes = []int{2, 3}
