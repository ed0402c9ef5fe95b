package lmcache

// Held is what a worker's LMCache has of a prompt from its beginning, in tokens.
type Held struct {
	Local uint32 // in its own memory or on its disk, without a hole
	All   uint32 // the same with what it can fetch from the stores behind it
	Live  bool   // the view may be believed; if not, both are 0
}

// Query is one prompt and the scratch of its Match. The zero value is ready. One goroutine uses it at a time; used
// again it allocates nothing.
type Query struct {
	ids     []uint32
	salt    uint64
	hashers []*hasher
	rows    []row // by the number of an instance
	asked   []uint32
	group   []*row // of the walk under way: those that have every chunk so far
}

// row is how far an instance has come.
type row struct {
	instance   *instance // nil = not asked for
	variant    Variant
	model      uint64
	need       uint64
	local, all uint64 // the ranks that hold the chunk in hand
	near, far  int    // tokens held locally, in any tier
	walked     bool
}

// Reset makes q a query for the prompt ids under cache_salt salt. LMCache within a worker ignores the salt, and its
// server does not.
func (q *Query) Reset(salt string, ids []uint32) {
	q.ids, q.salt = ids, 0
	if salt != "" {
		q.salt = nameHash(salt)
	}
}

// Match finds for each slot what its instance holds of q's prompt; out has an element for each slot. The prompt is
// hashed once for each variant in use, and each chunk is looked up once for all instances. A walk ends where none holds
// the next chunk. At most len(ids)-1 tokens are reported, as an engine computes the last one always.
func (r *Roster) Match(q *Query, slots []uint32, out []Held) {
	clear(out[:len(slots)])
	r.fleet.asks.Add(1)
	r.learn.observe(q.ids)
	t := r.table.Load()
	if t == nil || len(t.bySlot) == 0 || len(q.ids) == 0 {
		return
	}
	q.choose(t, slots, int(r.fleet.numbers.Load()))
	for n := range q.asked {
		if first := &q.rows[q.asked[n]]; !first.walked {
			q.walk(r.fleet.dir, first, q.asked[n:])
		}
	}
	most := len(q.ids) - 1
	for n, slot := range slots {
		i := t.bySlot[slot]
		if i == nil || int(i.number) >= len(q.rows) {
			continue
		}
		if row := &q.rows[i.number]; row.instance == i {
			out[n] = Held{Local: uint32(min(row.near, most)), All: uint32(min(row.far, most)), Live: true}
		} else {
			out[n].Live = i.live.Load() && i.admits.Load() == 0 // it holds nothing, however it hashes
		}
	}
	for _, n := range q.asked {
		q.rows[n] = row{}
	}
}

// Live reports whether the view of some instance of the pool's workers may be believed: whether a Match is worth its
// while.
func (r *Roster) Live() bool {
	t := r.table.Load()
	if t == nil {
		return false
	}
	for _, i := range t.bySlot {
		if i.live.Load() {
			return true
		}
	}
	return false
}

// choose makes a row of each instance asked for whose view is believed and understood.
func (q *Query) choose(t *roll, slots []uint32, numbers int) {
	for len(q.rows) < numbers {
		q.rows = append(q.rows, row{})
	}
	q.asked = q.asked[:0]
	for _, slot := range slots {
		i := t.bySlot[slot]
		if i == nil || int(i.number) >= len(q.rows) || q.rows[i.number].instance != nil || !i.live.Load() {
			continue
		}
		v, need := i.variant.Load(), i.need.Load()
		if v == nil || need == 0 {
			continue
		}
		q.rows[i.number] = row{instance: i, variant: *v, model: i.model.Load(), need: need}
		q.asked = append(q.asked, i.number)
	}
}

// walk goes through the prompt chunk by chunk for all rows that hash as first does.
func (q *Query) walk(d *directory, first *row, asked []uint32) {
	q.group = q.group[:0]
	for _, n := range asked {
		if r := &q.rows[n]; !r.walked && r.variant == first.variant && r.model == first.model {
			r.walked = true
			q.group = append(q.group, r)
		}
	}
	h := q.hasher(first.variant)
	h.reset()
	size, partial := first.variant.Chunk, first.variant.hashesRest()
	for from := 0; len(q.group) > 0 && from < len(q.ids); from += size {
		to := min(from+size, len(q.ids))
		if to-from < size && !partial {
			return
		}
		key := h.next(q.ids[from:to])
		if first.model != 0 {
			key = spread(key, first.model, q.salt)
		}
		q.advance(q.look(d, key), to)
	}
}

// hashesRest reports whether LMCache keeps the rest of a prompt, which fills no chunk, as a chunk: up to 0.3.15.
func (v *Variant) hashesRest() bool {
	return v.Tail == NoTail && v.Algorithm != Blake3 && v.Root != RootSelf
}

// look notes in the rows which ranks hold key, and returns which hold it in a store that all share.
func (q *Query) look(d *directory, key uint64) (common uint64) {
	seats := *d.seats.Load()
	b := d.shard(key)
	b.mu.RLock()
	defer b.mu.RUnlock()
	h := b.keys[key]
	for n := range h.len() {
		p := h.at(n)
		if int(p.seat) >= len(seats) || !p.current(seats) {
			continue
		}
		s := seats[p.seat]
		if s.tier == shared {
			common |= 1 << s.rank
			continue
		}
		if int(s.instance.number) >= len(q.rows) {
			continue
		}
		if r := &q.rows[s.instance.number]; r.instance == s.instance {
			r.all |= 1 << s.rank
			if s.tier == local {
				r.local |= 1 << s.rank
			}
		}
	}
	return common
}

// advance looks at the chunk that ends at to. A row that holds the chunk moves on to that place. All other rows leave
// the group.
func (q *Query) advance(common uint64, to int) {
	before := q.group
	q.group = q.group[:0]
	for _, r := range before {
		whole := r.near == r.far // no chunk so far had to come from behind
		if whole && r.local&r.need == r.need {
			r.near = to
		}
		if (r.all|common)&r.need == r.need {
			r.far = to
			q.group = append(q.group, r)
		}
		r.local, r.all = 0, 0
	}
}

// hasher returns the hasher of a variant.
func (q *Query) hasher(v Variant) *hasher {
	for _, h := range q.hashers {
		if h.v == v {
			return h
		}
	}
	h, err := newHasher(v)
	if err != nil {
		panic("BUG: " + err.Error()) // no variant is learnt or configured without a hasher
	}
	if len(q.hashers) >= maxHashers {
		q.hashers = q.hashers[:0]
	}
	q.hashers = append(q.hashers, h)
	return h
}

// maxHashers bounds what a query keeps; a fleet has one variant, or two while it is upgraded.
const maxHashers = 8
