package lmcache

import (
	"slices"
	"sync"
	"sync/atomic"
)

// copyAt is a chunk's entry for one seat.
type copyAt struct{ seat, gen uint32 }

// holders is who has a chunk: most are held by one or two seats.
type holders struct {
	few  [2]copyAt // the first n
	n    uint8
	more []copyAt // from the third on
}

func (h *holders) len() int { return int(h.n) + len(h.more) }

func (h *holders) at(i int) *copyAt {
	if i < len(h.few) {
		return &h.few[i]
	}
	return &h.more[i-len(h.few)]
}

func (h *holders) add(p copyAt) {
	if int(h.n) < len(h.few) {
		h.few[h.n] = p
		h.n++
		return
	}
	h.more = append(h.more, p)
}

// remove takes out entry i and moves the last one to where it was.
func (h *holders) remove(i int) {
	last := h.len() - 1
	*h.at(i) = *h.at(last)
	if last >= len(h.few) {
		h.more = h.more[:last-len(h.few)]
	} else {
		h.n--
	}
}

// directory finds for a chunk's key the seats that hold it. One look a chunk finds all instances, so that a prompt of
// 256 chunks costs 256 looks whether there is one worker or hundreds.
//
// A key of the map costs some 80 bytes, so the bound on entries bounds the memory: 4 M entries of one holder are 330
// MB.
type directory struct {
	shards  [shardCount]shard
	seats   atomic.Pointer[[]*seat] // by number
	free    []*seat                 // of instances that are gone; their numbers are given again
	entries atomic.Int64            // entries, cleared ones among them until they are swept
	stale   atomic.Int64            // how many of them are cleared
	max     int64
}

// shardCount keeps what a sweep holds a lock for at 1/64 of the map: some 1.5 ms of 4 M keys.
const shardCount = 64

type shard struct {
	mu   sync.RWMutex // guards keys
	keys map[uint64]holders
}

func newDirectory(maxEntries int) *directory {
	d := &directory{max: int64(maxEntries)}
	d.seats.Store(&[]*seat{})
	for i := range d.shards {
		d.shards[i].keys = map[uint64]holders{}
	}
	return d
}

// newSeat adds a seat, or gives the number of a freed one again, whose old entries are of older generations. The caller
// serialises newSeat and freeSeat.
func (d *directory) newSeat(of *instance, rank int, location string, t tier) *seat {
	all := slices.Clone(*d.seats.Load()) // readers have the old one
	s := &seat{number: uint32(len(all)), instance: of, rank: uint8(rank), tier: t, location: location}
	if n := len(d.free); n > 0 {
		s.number = d.free[n-1].number
		s.gen.Store(d.free[n-1].gen.Load())
		d.free = d.free[:n-1]
		all[s.number] = s
	} else {
		all = append(all, s)
	}
	d.seats.Store(&all)
	return s
}

// seatCount returns how many seats there are. The caller serialises it with newSeat and freeSeat.
func (d *directory) seatCount() int { return len(*d.seats.Load()) - len(d.free) }

// freeSeat forgets what s holds and s itself.
func (d *directory) freeSeat(s *seat) {
	d.clear(s)
	d.free = append(d.free, s)
}

// clear forgets what s holds.
func (d *directory) clear(s *seat) {
	d.stale.Add(s.keys.Load())
	s.clear()
}

func (d *directory) shard(key uint64) *shard { return &d.shards[key%shardCount] }

// current reports whether p is an entry of its seat's generation.
func (p copyAt) current(seats []*seat) bool { return seats[p.seat].gen.Load() == p.gen }

// admit enters key for s. It reports false, and enters nothing, if the directory is full.
func (d *directory) admit(s *seat, key uint64) bool {
	gen, seats := s.gen.Load(), *d.seats.Load()
	b := d.shard(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.keys[key]
	for i := 0; i < h.len(); i++ {
		p := h.at(i)
		switch {
		case p.seat == s.number && p.gen == gen:
			b.keys[key] = h // as stale ones may be gone from it
			return true
		case p.seat == s.number: // of before the seat was cleared
			p.gen = gen
			d.stale.Add(-1)
			s.keys.Add(1)
			b.keys[key] = h
			return true
		case !p.current(seats):
			h.remove(i)
			d.stale.Add(-1)
			d.entries.Add(-1)
			i--
		}
	}
	if d.entries.Load() >= d.max {
		b.put(key, h)
		return false
	}
	h.add(copyAt{seat: s.number, gen: gen})
	b.keys[key] = h
	d.entries.Add(1)
	s.keys.Add(1)
	return true
}

// put stores what is left of a key's holders.
func (b *shard) put(key uint64, h holders) {
	if h.len() == 0 {
		delete(b.keys, key)
		return
	}
	b.keys[key] = h
}

// evict takes key from s, if it has it.
func (d *directory) evict(s *seat, key uint64) {
	gen := s.gen.Load()
	b := d.shard(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	h, ok := b.keys[key]
	if !ok {
		return
	}
	for i := range h.len() {
		if p := h.at(i); p.seat == s.number {
			if p.gen == gen {
				s.keys.Add(-1)
			} else {
				d.stale.Add(-1)
			}
			h.remove(i)
			d.entries.Add(-1)
			b.put(key, h)
			return
		}
	}
}

// holds reports whether any seat of the instance has key.
func (d *directory) holds(key uint64, of *instance) bool {
	seats := *d.seats.Load()
	b := d.shard(key)
	b.mu.RLock()
	defer b.mu.RUnlock()
	h := b.keys[key]
	for i := range h.len() {
		if p := h.at(i); p.current(seats) && seats[p.seat].instance == of {
			return true
		}
	}
	return false
}

// seatsOf returns the seats that hold key.
func (d *directory) seatsOf(key uint64) (all []*seat) {
	seats := *d.seats.Load()
	b := d.shard(key)
	b.mu.RLock()
	defer b.mu.RUnlock()
	h := b.keys[key]
	for i := range h.len() {
		if p := h.at(i); p.current(seats) {
			all = append(all, seats[p.seat])
		}
	}
	return all
}

// run returns how many of the keys s holds before the first that it does not.
func (d *directory) run(s *seat, keys []uint64) int {
	for n, key := range keys {
		if !d.seated(s, key) {
			return n
		}
	}
	return len(keys)
}

func (d *directory) seated(s *seat, key uint64) bool {
	b := d.shard(key)
	b.mu.RLock()
	defer b.mu.RUnlock()
	h := b.keys[key]
	for i := range h.len() {
		if p := h.at(i); p.seat == s.number && p.gen == s.gen.Load() {
			return true
		}
	}
	return false
}

// sweep frees the entries that were cleared, if they are many, one shard after the other.
func (d *directory) sweep() {
	if n := d.stale.Load(); n == 0 || n < d.entries.Load()/8 && d.entries.Load() < d.max*3/4 {
		return
	}
	d.sweepAll()
}

func (d *directory) sweepAll() {
	for i := range d.shards {
		d.sweepShard(&d.shards[i])
	}
}

func (d *directory) sweepShard(b *shard) {
	seats := *d.seats.Load()
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, h := range b.keys {
		before := h.len()
		for i := 0; i < h.len(); i++ {
			if !h.at(i).current(seats) {
				h.remove(i)
				i--
			}
		}
		if gone := int64(before - h.len()); gone > 0 {
			d.stale.Add(-gone)
			d.entries.Add(-gone)
			b.put(key, h)
		}
	}
}
