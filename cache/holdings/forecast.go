package holdings

import (
	"math"
	"sync"
	"sync/atomic"
)

// Ticket names one prediction. The zero Ticket is none.
type Ticket uint64

// prediction is a dispatch whose blocks no event has confirmed yet, as far as is known.
type prediction struct {
	slot   uint32
	until  int64
	blocks int
	plane  *plane
	parts  []*holder // which may have nothing of it left, and be out of the tree
}

// forecast is the queue of predictions, oldest first. They all last as long, so they run out in this order.
type forecast struct {
	dir    *directory
	lasts  int64        // nanoseconds
	most   int          // blocks
	due    atomic.Int64 // when the oldest runs out; never, if there is none
	mu     sync.Mutex   // guards all below. It is taken before a plane's
	queue  []prediction
	first  Ticket // of queue[0]
	blocks int
}

const never = math.MaxInt64

func (f *forecast) init(dir *directory, lasts int64, most int) {
	f.dir = dir
	f.lasts = lasts
	f.most = most
	f.first = 1
	f.due.Store(never)
}

// expire ends what has run out.
func (f *forecast) expire(now func() int64) {
	due := f.due.Load()
	if due == never {
		return
	}
	at := now()
	if at < due {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until(at)
}

// until ends what has run out. f.mu is held.
func (f *forecast) until(now int64) {
	for len(f.queue) > 0 && (f.queue[0].until <= now || f.queue[0].parts == nil) {
		f.pop()
	}
	f.setDue()
}

// pop ends the oldest prediction.
func (f *forecast) pop() {
	f.end(&f.queue[0], f.first)
	f.queue = f.queue[1:]
	f.first++
}

func (f *forecast) setDue() {
	if len(f.queue) == 0 {
		f.queue = nil
		f.due.Store(never)
		return
	}
	f.due.Store(f.queue[0].until)
}

// end takes a prediction out of the tree. f.mu is held.
func (f *forecast) end(p *prediction, t Ticket) {
	if p.parts == nil {
		return
	}
	p.plane.mu.Lock()
	for _, h := range p.parts {
		if h.withdraw(uint64(t)) {
			p.plane.release(h)
		}
	}
	f.dir.unlock(p.plane)
	f.blocks -= p.blocks
	*p = prediction{until: p.until}
}

// forget ends all of one worker.
func (f *forecast) forget(slot uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.queue {
		if f.queue[i].slot == slot {
			f.end(&f.queue[i], f.first+Ticket(i))
		}
	}
	f.until(math.MinInt64)
}

// add enters the blocks of chain that the worker does not hold on its GPU. The plane's lock is held.
func (f *forecast) add(p prediction, chain []uint64) Ticket {
	t := f.first + Ticket(len(f.queue))
	n, off := &p.plane.root, 0
	for len(chain) > 0 {
		var from, to int
		n, from, to = p.plane.step(n, off, chain)
		chain = chain[to-from:]
		off = to
		h := n.holder(p.slot)
		if h == nil {
			h = n.join(p.slot)
		}
		if k := h.predict(uint64(t), from, to); k > 0 {
			p.parts = append(p.parts, h)
			p.blocks += k
		}
	}
	p.plane.prune(n)
	f.dir.unlock(p.plane)
	if p.parts == nil {
		return 0
	}
	f.queue = append(f.queue, p)
	f.blocks += p.blocks
	for f.blocks > f.most {
		f.pop()
	}
	f.setDue()
	return t
}
