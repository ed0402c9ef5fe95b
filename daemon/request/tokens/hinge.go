package tokens

import (
	"sync"
	"time"
)

// Rules of hinges.
const (
	proofs     = 3           // chats that were put together rightly, before one is put together unseen
	wanted     = 2           // chats with an answer in them, before a hinge is asked for
	maxHinges  = 512         // contexts that are remembered
	lookAgain  = time.Minute // after a hinge was looked for, and a worker failed
	boundaries = 4           // how often the boundary token stands in the text that shows that it is one
)

// hinge is where the chats of one context can be taken apart: before the token with which the template begins a
// message. A context is a model, its tools and all else that decides the ids but the messages.
type hinge struct {
	chats int       // with an answer in them, seen
	asked bool      // it is being looked for, or was
	base  []uint32  // of a chat of one short message, without the beginning of an answer
	turn  []uint32  // the beginning of an answer; its first token is the boundary. nil = not known, or there is none
	right int       // chats that were put together rightly, since the last that was not
	used  uint32    // chats that were put together
	until time.Time // neither used nor looked for
}

// hinges are those of all contexts. It is safe for concurrent use.
type hinges struct {
	mu sync.Mutex // guards of, and the hinges in it
	of map[digest]*hinge
}

// context returns the hinge of a context. The caller holds h.mu.
func (h *hinges) context(d digest) *hinge {
	is := h.of[d]
	if is == nil {
		if h.of == nil || len(h.of) >= maxHinges {
			h.of = map[digest]*hinge{}
		}
		is = new(hinge)
		h.of[d] = is
	}
	return is
}

// get returns the ids of a hinge, nil if there is none to be used. proven: chats may be put together by it.
func (h *hinges) get(d digest, now time.Time) (base, turn []uint32, proven bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	is := h.context(d)
	if now.Before(is.until) {
		return nil, nil, false
	}
	return is.base, is.turn, is.right >= proofs
}

// wants counts a chat with an answer in it, and reports that its context's hinge is to be looked for, once.
func (h *hinges) wants(d digest, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	is := h.context(d)
	is.chats++
	if is.asked || is.chats < wanted || now.Before(is.until) {
		return false
	}
	is.asked = true
	return true
}

// set records a hinge that was found.
func (h *hinges) set(d digest, base, turn []uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	is := h.context(d)
	is.base, is.turn = base, turn
}

// forget drops a hinge. Another one is looked for after that time.
func (h *hinges) forget(d digest, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*h.context(d) = hinge{until: until}
}

// audits reports whether a chat that was put together is to be compared with the worker's ids of all of it.
func (h *hinges) audits(d digest) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	is := h.context(d)
	is.used++
	return is.used%auditEvery == 0
}

// compared records whether a chat was put together rightly. If it was not, it forgets the hinge: the worker may have
// another template.
func (h *hinges) compared(d digest, right bool, now time.Time) {
	if !right {
		h.forget(d, now.Add(distrust))
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	is := h.context(d)
	is.right = min(is.right+1, proofs)
}
