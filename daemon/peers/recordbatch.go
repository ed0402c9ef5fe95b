package peers

import (
	"time"

	"github.com/warmpath/warmpath/daemon/request/route"
)

// recordBatch collects the records of requests in a frame. The receiver first reads them and then applies them
// together, so that the processor waits for the memory of many chains at once.
type recordBatch struct {
	records []record
	chains  []receivedChain // of all records, in their order
	hashes  []uint64        // the memory behind them
	keys    []uint64        // the hashes by which chains are looked up and entered
	coming  []route.Coming
}

// record is one record about a request: it was sent, its first byte came, it was answered or it ended.
type record struct {
	kind   kind
	id     uint64
	sent   route.Sent  // an answer fills worker and space only
	story  route.Story // a record other than sent fills the time only
	chains int
}

// receivedChain is a chain as a record has it, and as a whole. whole is nil if the beginning is unknown.
type receivedChain struct {
	parent      uint64
	depth       int
	rest, whole []uint64
}

// clear drops the records that were entered.
func (b *recordBatch) clear() {
	b.records, b.chains, b.hashes = b.records[:0], b.chains[:0], b.hashes[:0]
	b.keys, b.coming = b.keys[:0], b.coming[:0]
}

// full reports whether the batch holds as many chains as are entered together.
func (b *recordBatch) full() bool { return len(b.chains) >= route.Together }

// add appends a chain, and the hashes by which it is looked up and entered.
func (b *recordBatch) add(c receivedChain) {
	b.chains = append(b.chains, c)
	if c.depth > 0 {
		b.keys = append(b.keys, c.parent)
	}
	end := len(c.rest)
	for at := anchorEvery - c.depth%anchorEvery; at < end; at += anchorEvery {
		b.keys = append(b.keys, c.rest[at-1])
	}
	if end > 0 {
		b.keys = append(b.keys, c.rest[end-1])
	}
}

// readRequestRecord reads a record of a request.
func (r *Receiver) readRequestRecord(k kind) {
	in, rec, from := &r.in, record{kind: k}, len(r.batch.chains)
	switch k {
	case kindSent:
		var flags byte
		var at time.Time
		rec.id, rec.sent, flags, at = in.request()
		rec.chains = in.count(2)
		blocks := 0
		for range rec.chains {
			blocks = r.readChain()
		}
		rec.story = in.story(flags, rec.chains, blocks)
		rec.story.At = at
	case kindAnswer:
		rec.id = in.uint()
		rec.sent.Worker, rec.sent.Space = in.known(&in.workers), in.known(&in.spaces)
		rec.story.At = in.time()
		rec.chains = 1
		r.readChain()
	default:
		rec.id = in.uint()
		rec.story.At = in.time()
	}
	if in.bad {
		r.batch.chains = r.batch.chains[:from]
		return
	}
	r.batch.records = append(r.batch.records, rec)
}

// readChain reads a chain, and returns the number of its blocks, beginning included.
func (r *Receiver) readChain() int {
	b := &r.batch
	from := len(b.hashes)
	var c receivedChain
	c.parent, c.depth, b.hashes = r.in.chain(b.hashes)
	c.rest = b.hashes[from:len(b.hashes):len(b.hashes)]
	b.add(c)
	return c.depth + len(c.rest)
}

// applyBatch applies the collected records to the books.
func (r *Receiver) applyBatch(p *peer, now time.Time) {
	b := &r.batch
	several := len(b.chains) > 1
	if several {
		r.chains.warm(b.keys)
	}
	for i := range b.chains {
		r.joinChain(&b.chains[i])
	}
	if several {
		r.warmBatch()
	}
	rest := b.chains
	for i := range b.records {
		rec := &b.records[i]
		r.applyRequestRecord(p, rec, rest[:rec.chains], now)
		rest = rest[rec.chains:]
	}
	b.clear()
}

// joinChain puts a chain together from its beginning and its rest.
func (r *Receiver) joinChain(c *receivedChain) {
	chain, ok := r.chains.enterReceived(c.parent, c.depth, c.rest)
	if !ok {
		r.counts.Unlinked++
		r.unlinked = true
		return
	}
	b := &r.batch
	from := len(b.hashes)
	b.hashes = append(b.hashes, chain...)
	c.whole = b.hashes[from:len(b.hashes):len(b.hashes)]
}

// warmBatch makes the pool read the memory in which the records' chains will be looked up.
func (r *Receiver) warmBatch() {
	b := &r.batch
	rest := b.chains
	for i := range b.records {
		rec := &b.records[i]
		for _, c := range rest[:rec.chains] {
			asked := c.whole
			switch {
			case rec.kind == kindAnswer || rec.sent.Again:
				asked = nil
			case !rec.story.Answered.IsZero() && c.whole != nil:
				asked = c.whole[:rec.story.Prompt]
			}
			b.coming = append(b.coming,
				route.Coming{Worker: rec.sent.Worker, Space: rec.sent.Space, Chain: c.whole, Asked: asked})
		}
		rest = rest[rec.chains:]
	}
	r.pool.Warm(b.coming)
}

// applyRequestRecord enters one record with its chains.
func (r *Receiver) applyRequestRecord(p *peer, rec *record, chains []receivedChain, now time.Time) {
	switch rec.kind {
	case kindSent:
		r.applySent(p, rec, chains, now)
	case kindFirst:
		if o := p.open[rec.id]; o != nil {
			o.FirstByte(rec.story.At)
		}
	case kindAnswer:
		if whole := chains[0].whole; whole != nil && !p.others[rec.sent.Worker] {
			r.pool.Recall(rec.sent.Worker, rec.sent.Space, whole, rec.story.At, now)
		}
	case kindEnded:
		if o := p.open[rec.id]; o != nil {
			o.End()
			delete(p.open, rec.id)
		}
	}
}

// applySent enters a request that was sent. It skips a request whose worker's key names another worker here.
func (r *Receiver) applySent(p *peer, rec *record, chains []receivedChain, now time.Time) {
	if p.others[rec.sent.Worker] {
		return
	}
	all := r.all[:0]
	for i := range chains {
		if whole := chains[i].whole; whole != nil {
			all = append(all, whole)
		}
	}
	r.all = all
	if r.late {
		r.pool.Hear(&rec.sent, &rec.story, all, false, now)
		return
	}
	if o := p.open[rec.id]; o != nil {
		o.End()
		delete(p.open, rec.id)
	}
	if len(p.open) >= maxOpen {
		r.counts.Flooded++
		return
	}
	if o := r.pool.Hear(&rec.sent, &rec.story, all, !r.replay, now); o != nil {
		p.open[rec.id] = o
	}
}
