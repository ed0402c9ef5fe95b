package holdings

import (
	"fmt"
	"math/bits"
)

// checker proves all that the index promises, and that every counter is right.
type checker struct {
	x     *Index
	nodes int
	total int
	spans map[Ticket]int     // blocks of each prediction
	held  map[*worker][2]int // bits of each worker
	seen  map[*worker]int    // holders with an id
}

func (x *Index) check() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	c := checker{x: x, spans: map[Ticket]int{}, held: map[*worker][2]int{}, seen: map[*worker]int{}}
	planes := 0
	var err error
	x.dir.tree.Walk(func(key string, v any) bool {
		for _, p := range v.([]*plane) {
			planes++
			err = c.plane(key, p)
			if err != nil {
				err = fmt.Errorf("plane %q of %d: %w", key, p.size, err)
				return true
			}
		}
		return false
	})
	switch {
	case err != nil:
		return err
	case planes != x.dir.n:
		return fmt.Errorf("%d planes, counted as %d", planes, x.dir.n)
	case c.total != x.Chain():
		return fmt.Errorf("%d blocks, counted as %d", c.total, x.Chain())
	}
	if err := c.predictions(); err != nil {
		return err
	}
	for slot, w := range *x.workers.Load() {
		if w == nil {
			continue
		}
		if err := c.worker(w); err != nil {
			return fmt.Errorf("worker %d: %w", slot, err)
		}
	}
	if w := x.shared.Load(); w != nil {
		return c.worker(w)
	}
	return nil
}

func (c *checker) plane(key string, p *plane) error {
	if p.key != key || p.gone || p.nodes == 0 {
		return fmt.Errorf("key %q, gone %v, %d nodes", p.key, p.gone, p.nodes)
	}
	c.nodes = 0
	if err := c.node(&p.root, true); err != nil {
		return err
	}
	if c.nodes != p.nodes {
		return fmt.Errorf("%d nodes, counted as %d", c.nodes, p.nodes)
	}
	return nil
}

func (c *checker) node(n *node, root bool) error {
	var kids []*node
	n.kids.each(func(k *node) { kids = append(kids, k) })
	if len(n.kids.many) == 1 || n.kids.many != nil && n.kids.one != nil {
		return fmt.Errorf("kids: one %p, many %d", n.kids.one, len(n.kids.many))
	}
	top, tops, kidTop, kidTops := uint16(0), uint32(0), uint16(0), uint32(0)
	for _, k := range kids {
		if n.kids.get(k.run[0]) != k || k.parent != n || int(k.at) > len(n.run) {
			return fmt.Errorf("a child at %d of %d, or under another's hash", k.at, len(n.run))
		}
		kidTop = max(kidTop, k.at)
	}
	for _, k := range kids {
		if k.at == kidTop {
			kidTops++
		}
	}
	all := []*holder{}
	for i, e := range n.held {
		h := e.h
		if int(h.at) != i || e.slot != h.slot || e.gpu != h.gpu || e.both != h.both || e.slot == Shared {
			return fmt.Errorf("entry %+v of %+v", e, h)
		}
		all = append(all, h)
	}
	if n.shared != nil {
		all = append(all, n.shared)
	}
	for _, h := range all {
		top = max(top, h.top)
	}
	slots := map[uint32]bool{}
	for _, h := range all {
		if h.top == top {
			tops++
		}
		if slots[h.slot] || h.node != n {
			return fmt.Errorf("slot %d stands twice, or elsewhere", h.slot)
		}
		slots[h.slot] = true
		if err := c.holder(h); err != nil {
			return fmt.Errorf("holder of slot %d: %w", h.slot, err)
		}
	}
	if kidTop != n.kidTop || kidTops != n.kidTops || top != n.top || tops != n.tops {
		return fmt.Errorf("top %d of %d, kids %d of %d; counted %d of %d, %d of %d",
			top, tops, kidTop, kidTops, n.top, n.tops, n.kidTop, n.kidTops)
	}
	if !root {
		c.nodes++
		c.total += len(n.run)
		if len(n.run) == 0 || len(n.run) > maxRun || len(n.run) != int(max(top, kidTop)) || n.last != n.run[len(n.run)-1] {
			return fmt.Errorf("run of %d: held to %d, kids to %d", len(n.run), top, kidTop)
		}
		if cap(n.run) > 2*len(n.run)+64 {
			return fmt.Errorf("run of %d pins %d", len(n.run), cap(n.run))
		}
	}
	for _, k := range kids {
		if err := c.node(k, false); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) holder(h *holder) error {
	predicted := func(i int) bool {
		for _, s := range h.spans {
			if int(s.from) <= i && i < int(s.to) {
				return true
			}
		}
		return false
	}
	gpu, both, top := 0, 0, 0
	for predicted(gpu) || h.bits[GPU].has(gpu) {
		gpu++
	}
	for predicted(both) || h.bits[GPU].has(both) || h.bits[Local].has(both) {
		both++
	}
	for i := range maxRun {
		if predicted(i) || h.bits[GPU].has(i) || h.bits[Local].has(i) {
			top = i + 1
		}
	}
	if gpu != int(h.gpu) || both != int(h.both) || top != int(h.top) || top == 0 {
		return fmt.Errorf("leads %d and %d, top %d; counted %d, %d, %d", gpu, both, top, h.gpu, h.both, h.top)
	}
	w := c.x.worker(h.slot)
	for t := range h.bits {
		n := 0
		for _, word := range h.bits[t] {
			n += bits.OnesCount64(word)
		}
		if n != int(h.n[t]) {
			return fmt.Errorf("%d blocks in tier %d, counted as %d", n, t, h.n[t])
		}
		held := c.held[w]
		held[t] += n
		c.held[w] = held
	}
	if (h.id != 0) != (h.n != [2]uint16{}) {
		return fmt.Errorf("id %d with %v blocks", h.id, h.n)
	}
	if h.id != 0 {
		c.seen[w]++
		if w == nil || w.places[h.id].h != h {
			return fmt.Errorf("place %d is another's", h.id)
		}
	}
	for _, s := range h.spans {
		if s.from >= s.to {
			return fmt.Errorf("empty span %+v", s)
		}
		for i := s.from; i < s.to; i++ {
			if h.bits[GPU].has(int(i)) {
				return fmt.Errorf("block %d is predicted and held", i)
			}
		}
		c.spans[Ticket(s.ticket)] += int(s.to - s.from)
	}
	return nil
}

func (c *checker) predictions() error {
	f := &c.x.predicted
	sum := 0
	for i, p := range f.queue {
		sum += p.blocks
		t := f.first + Ticket(i)
		if c.spans[t] > p.blocks || p.parts == nil && p.blocks > 0 {
			return fmt.Errorf("prediction %d has %d blocks of %d", t, c.spans[t], p.blocks)
		}
		delete(c.spans, t)
	}
	if len(c.spans) > 0 || sum != f.blocks {
		return fmt.Errorf("%v predicted by nobody; %d blocks counted as %d", c.spans, sum, f.blocks)
	}
	if due := f.due.Load(); (due == never) != (len(f.queue) == 0) || len(f.queue) > 0 && due != f.queue[0].until {
		return fmt.Errorf("due at %d with %d predictions", due, len(f.queue))
	}
	return nil
}

func (c *checker) worker(w *worker) error {
	n, held := 0, [2]int{}
	for i := range w.table.buckets {
		s := &w.table.buckets[i]
		if s.id == 0 {
			continue
		}
		n++
		if w.table.find(s.hash) != i || int(s.id) >= len(w.places) || w.places[s.id].h == nil {
			return fmt.Errorf("bucket %d: hash %x, place %d of %d", i, s.hash, s.id, len(w.places))
		}
		h := w.places[s.id].h
		for t := GPU; t <= Local; t++ {
			if s.copies(t) > 0 {
				held[t]++
				if !h.bits[t].has(s.offset()) {
					return fmt.Errorf("hash %x has %d copies in tier %d, its place has none", s.hash, s.copies(t), t)
				}
			}
		}
		if s.copies(GPU) == 0 && s.copies(Local) == 0 {
			return fmt.Errorf("hash %x has no copies", s.hash)
		}
	}
	if n != w.table.n || n > w.capacity || held != w.tally.Held {
		return fmt.Errorf("%d hashes, %v; counted %d, %v, capacity %d", n, held, w.table.n, w.tally.Held, w.capacity)
	}
	for key, k := range w.twins {
		held[key.tier] -= int(k)
	}
	if held != c.held[w] {
		return fmt.Errorf("hashes for %v places; %v are held", held, c.held[w])
	}
	places := 0
	for _, at := range w.places {
		if at.h != nil {
			places++
		}
	}
	if places != c.seen[w] || len(w.places) > 0 && places+len(w.free)+1 != len(w.places) {
		return fmt.Errorf("%d places, %d holders, %d free of %d", places, c.seen[w], len(w.free), len(w.places))
	}
	return c.parked(&w.parked)
}

func (c *checker) parked(o *orphans) error {
	blocks, n, hung := 0, 0, 0
	for at := o.ages.First; at != nil; at = at.age.Next {
		n++
		left := 0
		for i, h := range at.s.Hashes {
			if at.copies[i] != [2]uint16{} {
				left++
				if o.byHash[h] != (berth{o: at, i: i}) {
					return fmt.Errorf("parked hash %x is counted elsewhere", h)
				}
			}
		}
		if left != at.left || left == 0 {
			return fmt.Errorf("orphan of %d, counted as %d", left, at.left)
		}
		blocks += left
	}
	for parent, at := range o.byParent {
		for ; at != nil; at = at.after {
			hung++
			if at.s.Parent != parent {
				return fmt.Errorf("orphan under another's parent")
			}
		}
	}
	if blocks != o.blocks || blocks != len(o.byHash) || n != hung || blocks > o.most {
		return fmt.Errorf("%d parked, counted %d and %d of %d; %d orphans, %d by parent",
			blocks, o.blocks, len(o.byHash), o.most, n, hung)
	}
	return nil
}
