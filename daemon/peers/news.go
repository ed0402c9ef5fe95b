package peers

import (
	"time"

	"github.com/warmpath/warmpath/daemon/route"
)

// news collects the records of requests in a frame. The hearer first reads them and then enters them together, so that
// the processor waits for the memory of many chains at once.
type news struct {
	reports []report
	chains  []toldChain // of all reports, in their order
	hashes  []uint64    // the memory behind them
	keys    []uint64    // the hashes by which chains are looked up and entered
	coming  []route.Coming
}

// report is one record about a request: it was sent, its first byte came, it was answered or it ended.
type report struct {
	kind   kind
	id     uint64
	sent   route.Sent  // an answer fills worker and space only
	story  route.Story // a record other than sent fills the time only
	chains int
}

// toldChain is a chain as a record has it, and as a whole. whole is nil if the beginning is unknown.
type toldChain struct {
	parent      uint64
	depth       int
	rest, whole []uint64
}

// clear drops the records that were entered.
func (n *news) clear() {
	n.reports, n.chains, n.hashes = n.reports[:0], n.chains[:0], n.hashes[:0]
	n.keys, n.coming = n.keys[:0], n.coming[:0]
}

// full reports whether news holds as many chains as are entered together.
func (n *news) full() bool { return len(n.chains) >= route.Together }

// add appends a chain, and the hashes by which it is looked up and entered.
func (n *news) add(c toldChain) {
	n.chains = append(n.chains, c)
	if c.depth > 0 {
		n.keys = append(n.keys, c.parent)
	}
	end := len(c.rest)
	for at := anchorEvery - c.depth%anchorEvery; at < end; at += anchorEvery {
		n.keys = append(n.keys, c.rest[at-1])
	}
	if end > 0 {
		n.keys = append(n.keys, c.rest[end-1])
	}
}

// readNews reads a record of a request.
func (h *Hearer) readNews(k kind) {
	r, p, from := &h.r, report{kind: k}, len(h.news.chains)
	switch k {
	case kindSent:
		var flags byte
		var at time.Time
		p.id, p.sent, flags, at = r.request()
		p.chains = r.count(2)
		blocks := 0
		for range p.chains {
			blocks = h.readChain()
		}
		p.story = r.story(flags, p.chains, blocks)
		p.story.At = at
	case kindAnswer:
		p.id = r.uint()
		p.sent.Worker, p.sent.Space = r.known(&r.workers), r.known(&r.spaces)
		p.story.At = r.time()
		p.chains = 1
		h.readChain()
	default:
		p.id = r.uint()
		p.story.At = r.time()
	}
	if r.bad {
		h.news.chains = h.news.chains[:from]
		return
	}
	h.news.reports = append(h.news.reports, p)
}

// readChain reads a chain, and returns the number of its blocks, beginning included.
func (h *Hearer) readChain() int {
	n := &h.news
	from := len(n.hashes)
	var c toldChain
	c.parent, c.depth, n.hashes = h.r.chain(n.hashes)
	c.rest = n.hashes[from:len(n.hashes):len(n.hashes)]
	n.add(c)
	return c.depth + len(c.rest)
}

// enterNews enters the collected records into the books.
func (h *Hearer) enterNews(s *sender, now time.Time) {
	n := &h.news
	several := len(n.chains) > 1
	if several {
		h.chains.warm(n.keys)
	}
	for i := range n.chains {
		h.join(&n.chains[i])
	}
	if several {
		h.warm()
	}
	rest := n.chains
	for i := range n.reports {
		p := &n.reports[i]
		h.report(s, p, rest[:p.chains], now)
		rest = rest[p.chains:]
	}
	n.clear()
}

// join puts a chain together from its beginning and its rest.
func (h *Hearer) join(c *toldChain) {
	chain, ok := h.chains.hear(c.parent, c.depth, c.rest)
	if !ok {
		h.counts.Unlinked++
		h.unlinked = true
		return
	}
	n := &h.news
	from := len(n.hashes)
	n.hashes = append(n.hashes, chain...)
	c.whole = n.hashes[from:len(n.hashes):len(n.hashes)]
}

// warm makes the pool read the memory in which the reports' chains will be looked up.
func (h *Hearer) warm() {
	n := &h.news
	rest := n.chains
	for i := range n.reports {
		p := &n.reports[i]
		for _, c := range rest[:p.chains] {
			asked := c.whole
			switch {
			case p.kind == kindAnswer || p.sent.Again:
				asked = nil
			case !p.story.Answered.IsZero() && c.whole != nil:
				asked = c.whole[:p.story.Prompt]
			}
			n.coming = append(n.coming, route.Coming{Worker: p.sent.Worker, Space: p.sent.Space, Chain: c.whole, Asked: asked})
		}
		rest = rest[p.chains:]
	}
	h.pool.Warm(n.coming)
}

// report enters one record with its chains.
func (h *Hearer) report(s *sender, p *report, chains []toldChain, now time.Time) {
	switch p.kind {
	case kindSent:
		h.sent(s, p, chains, now)
	case kindFirst:
		if o := s.open[p.id]; o != nil {
			o.FirstByte(p.story.At)
		}
	case kindAnswer:
		if whole := chains[0].whole; whole != nil && !s.others[p.sent.Worker] {
			h.pool.Recall(p.sent.Worker, p.sent.Space, whole, p.story.At, now)
		}
	case kindEnded:
		if o := s.open[p.id]; o != nil {
			o.End()
			delete(s.open, p.id)
		}
	}
}

// sent enters a request that was sent. It skips a request whose worker's key names another worker here.
func (h *Hearer) sent(s *sender, p *report, chains []toldChain, now time.Time) {
	if s.others[p.sent.Worker] {
		return
	}
	all := h.all[:0]
	for i := range chains {
		if whole := chains[i].whole; whole != nil {
			all = append(all, whole)
		}
	}
	h.all = all
	if h.late {
		h.pool.Hear(&p.sent, &p.story, all, false, now)
		return
	}
	if o := s.open[p.id]; o != nil {
		o.End()
		delete(s.open, p.id)
	}
	if len(s.open) >= maxOpen {
		h.counts.Flooded++
		return
	}
	if o := h.pool.Hear(&p.sent, &p.story, all, !h.replay, now); o != nil {
		s.open[p.id] = o
	}
}
