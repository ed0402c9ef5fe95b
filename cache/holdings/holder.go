package holdings

import "github.com/warmpath/warmpath/cache/parts/blocks"

// holderRef stands for a holder in its node, with all that a lookup needs of it in a quarter of a cache line.
type holderRef struct {
	h         *holder
	slot      uint32
	gpu, both uint16 // leading blocks: on the GPU, and on the GPU or Local
}

// holder is what one worker holds of a node. Holes are allowed. A lock of the plane guards everything in it except id.
type holder struct {
	node      *node
	slot      uint32
	at        uint32    // place in node.held
	id        uint32    // place of the worker's list; 0 = it has none, since all is predicted. Guarded by worker.mu
	gpu, both uint16    // as in the entry
	top       uint16    // one more than the highest block held or predicted
	n         [2]uint16 // blocks held, by tier
	bits      [2]bitmap // by tier
	spans     []span    // predicted to be on the GPU, and not there yet
}

// maxSpans bounds the predictions of one worker in one node: that many dispatches of the same new prompt within
// Config.Predicted have shown that no events come.
const maxSpans = 64

// span is the part of one prediction, from..to-1, that no event has confirmed.
type span struct {
	ticket   uint64
	from, to uint16
}

// shown brings a holder's entry up to date.
func (h *holder) shown() {
	if h.slot != Shared {
		e := &h.node.held[h.at]
		e.gpu = h.gpu
		e.both = h.both
	}
}

// hold adds the blocks from..to-1 of a tier and returns how many were held by it before.
func (h *holder) hold(t blocks.Medium, from, to int) (before int) {
	added := h.bits[t].fill(from, to)
	h.n[t] += uint16(added)
	if t == GPU && h.spans != nil {
		h.confirm(from, to)
	}
	h.grown(from, to)
	return to - from - added
}

// grown brings the leading lengths and the top up to date after from..to-1 were added to what is held or predicted.
func (h *holder) grown(from, to int) {
	if int(h.gpu) >= from {
		h.gpu = uint16(h.lead(int(h.gpu), nil, nil))
	}
	if int(h.both) >= from {
		h.both = uint16(h.lead(int(h.both), h.bits[Local], nil))
	}
	if to > int(h.top) {
		h.node.retop(h, uint16(to))
	}
	h.shown()
}

// lead returns the first block from i on that is neither on the GPU, nor predicted, nor in one of two further sets.
func (h *holder) lead(i int, local, shared bitmap) int {
	for {
		i = gap(i, h.bits[GPU], local, shared)
		from := i
		for _, s := range h.spans {
			if int(s.from) <= i && i < int(s.to) {
				i = int(s.to)
			}
		}
		if i == from {
			return i
		}
	}
}

// drop takes away one block of a tier, which is held.
func (h *holder) drop(t blocks.Medium, i int) {
	h.bits[t].take(i)
	h.n[t]--
	if h.n[t] == 0 {
		h.bits[t] = nil
	}
	h.lost(i)
}

// lost brings the leading lengths and the top up to date after a block, or some from there on, went.
func (h *holder) lost(i int) {
	if i < int(h.gpu) {
		h.gpu = uint16(h.lead(i, nil, nil))
	}
	if i < int(h.both) {
		h.both = uint16(h.lead(i, h.bits[Local], nil))
	}
	end := max(h.bits[GPU].end(int(h.top)), h.bits[Local].end(int(h.top)))
	for _, s := range h.spans {
		end = max(end, int(s.to))
	}
	if end != int(h.top) {
		h.node.retop(h, uint16(end))
	}
	h.shown()
}

func (h *holder) empty() bool { return h.n[GPU] == 0 && h.n[Local] == 0 && len(h.spans) == 0 }

// confirm ends the predictions of from..to-1. What stands on either side of it stays predicted.
func (h *holder) confirm(from, to int) {
	kept := h.spans[:0:0]
	for _, s := range h.spans {
		if int(s.from) < from {
			kept = append(kept, span{s.ticket, s.from, min(s.to, uint16(from))})
		}
		if int(s.to) > to {
			kept = append(kept, span{s.ticket, max(s.from, uint16(to)), s.to})
		}
	}
	h.spans = kept
	if len(kept) == 0 {
		h.spans = nil
	}
}

// predict enters a prediction of those of from..to-1 that are not on the GPU, and returns how many they are.
func (h *holder) predict(ticket uint64, from, to int) (added int) {
	for i := from; len(h.spans) < maxSpans; {
		i = gap(i, h.bits[GPU], nil, nil)
		if i >= to {
			break
		}
		end := h.bits[GPU].next(i, to)
		h.spans = append(h.spans, span{ticket: ticket, from: uint16(i), to: uint16(end)})
		added += end - i
		h.grown(i, end)
		i = end
	}
	return added
}

// withdraw ends what is left of one prediction and returns whether there was anything.
func (h *holder) withdraw(ticket uint64) bool {
	first, kept := maxRun, h.spans[:0]
	for _, s := range h.spans {
		if s.ticket == ticket {
			first = min(first, int(s.from))
		} else {
			kept = append(kept, s)
		}
	}
	if first == maxRun {
		return false
	}
	h.spans = kept
	if len(kept) == 0 {
		h.spans = nil
	}
	h.lost(first)
	return true
}
