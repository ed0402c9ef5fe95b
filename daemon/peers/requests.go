package peers

import (
	"time"

	"github.com/warmpath/warmpath/daemon/request/route"
)

// requestRecord is one record about a request: it was sent, its first byte came, it was answered or it ended.
type requestRecord struct {
	kind    kind
	id      uint64
	sent    route.Sent    // an answer fills worker and space only
	outcome route.Outcome // a record other than sent fills the time only
	chains  []receivedChain
	hashes  []uint64 // the memory behind them
}

// receivedChain is a chain as a record has it.
type receivedChain struct {
	parent uint64
	depth  int
	rest   []uint64
}

// applyRequest reads a record of a request and applies it.
func (r *Receiver) applyRequest(p *peer, k kind, now time.Time) {
	rec := &r.request
	rec.read(&r.in, k)
	if r.in.bad {
		return
	}
	whole := r.joinChains(rec)
	switch k {
	case kindSent:
		r.applySent(p, rec, whole, now)
	case kindFirst:
		if o := p.open[rec.id]; o != nil {
			o.FirstByte(rec.outcome.At)
		}
	case kindAnswer:
		if len(whole) > 0 && !p.others[rec.sent.Worker] {
			r.pool.Recall(rec.sent.Worker, rec.sent.Space, whole[0], rec.outcome.At, now)
		}
	case kindEnded:
		if o := p.open[rec.id]; o != nil {
			o.End()
			delete(p.open, rec.id)
		}
	}
}

// read reads the record. It uses the memory of the one before.
func (rec *requestRecord) read(in *reader, k kind) {
	*rec = requestRecord{kind: k, chains: rec.chains[:0], hashes: rec.hashes[:0]}
	switch k {
	case kindSent:
		var flags byte
		var at time.Time
		rec.id, rec.sent, flags, at = in.request()
		chains, blocks := in.count(2), 0
		for range chains {
			blocks = rec.readChain(in)
		}
		rec.outcome = in.outcome(flags, chains, blocks)
		rec.outcome.At = at
	case kindAnswer:
		rec.id = in.uint()
		rec.sent.Worker, rec.sent.Space = in.known(&in.workers), in.known(&in.spaces)
		rec.outcome.At = in.time()
		rec.readChain(in)
	default:
		rec.id = in.uint()
		rec.outcome.At = in.time()
	}
}

// readChain reads a chain, and returns the number of its blocks, beginning included.
func (rec *requestRecord) readChain(in *reader) int {
	from := len(rec.hashes)
	var c receivedChain
	c.parent, c.depth, rec.hashes = in.chain(rec.hashes)
	c.rest = rec.hashes[from:len(rec.hashes):len(rec.hashes)]
	rec.chains = append(rec.chains, c)
	return c.depth + len(c.rest)
}

// joinChains puts the record's chains together from their beginnings and their rests. It leaves out those whose
// beginning is unknown.
func (r *Receiver) joinChains(rec *requestRecord) (whole [][]uint64) {
	whole = r.whole[:0]
	for i := range rec.chains {
		c := &rec.chains[i]
		chain, ok := r.chains.enterReceived(c.parent, c.depth, c.rest)
		if !ok {
			r.counts.Unlinked++
			r.unlinked = true
			continue
		}
		if len(rec.chains) > 1 { // the next call uses its memory again
			from := len(rec.hashes)
			rec.hashes = append(rec.hashes, chain...)
			chain = rec.hashes[from:len(rec.hashes):len(rec.hashes)]
		}
		whole = append(whole, chain)
	}
	r.whole = whole
	return whole
}

// applySent enters a request that was sent. It skips a request whose worker's key names another worker here.
func (r *Receiver) applySent(p *peer, rec *requestRecord, whole [][]uint64, now time.Time) {
	if p.others[rec.sent.Worker] {
		return
	}
	if r.late {
		r.pool.Hear(&rec.sent, &rec.outcome, whole, false, now)
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
	if o := r.pool.Hear(&rec.sent, &rec.outcome, whole, !r.replay, now); o != nil {
		p.open[rec.id] = o
	}
}
