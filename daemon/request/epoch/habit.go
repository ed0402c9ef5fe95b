package epoch

import (
	"hash/maphash"
	"sync"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// Habit is what is known of the ids of one worker's answers to one kind of request: whether they hold the request's.
// Its zero value knows nothing, and lets every answer pass. A nil habit is that of a worker that has left.
type Habit struct {
	mu sync.Mutex // guards the rest
	known
}

// known is what a habit is made of.
type known struct {
	kept  bool         // the last whole answer that says anything held the request's id
	frame prompt.Frame // its position
	odd   int          // answers of others at connections of their first use, since one that was right
	lost  int          // how often it was given up
}

// maxLost is how often a worker's habit may be given up before nothing is learnt of it until it restarts. A client that
// knows the constant part of a worker's ids can send it as X-Request-Id, and so teach a habit that there is not.
const maxLost = 3

// minTaught is the shortest request id that is used for learning: a shorter one may occur in any id by chance.
const minTaught = 16

// Mark returns how an answer shows that it belongs to the request of an id. first: it comes on a connection of its
// first use, so that it cannot be the answer to another request. again: the same request has had another's answer
// before. Then the worker has changed its habit, and the answer passes.
func (h *Habit) Mark(id string, first, again bool) prompt.Mark {
	m := prompt.Mark{ID: id}
	if h == nil {
		return prompt.Mark{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	m.Frame = h.frame
	m.Strict = h.kept && !(first && (again || h.odd > 0))
	return m
}

// Refused records that an answer was kept from its client. One on a connection of its first use is a sign that the
// worker has changed its habit: the next one there passes.
func (h *Habit) Refused(id string, first bool) {
	if h == nil || !first || len(id) < minTaught {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.odd++
}

// Learn takes what the ids of an answer without failure showed that came to its end at the client.
func (h *Habit) Learn(id string, o prompt.Owner, at prompt.Frame) {
	if h == nil || len(id) < minTaught {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case o != prompt.OwnerSame && h.kept:
		h.known = known{lost: h.lost + 1}
	case o != prompt.OwnerSame || h.lost >= maxLost:
	case !h.kept:
		h.kept = true
		h.frame = at
		h.odd = 0
	default:
		at.Loose = h.frame.Loose || at != h.frame
		h.frame = at
		h.odd = 0
	}
}

// habits are those of one worker: for each kind of request, by whether the answer is a stream.
type habits [prompt.Kinds][2]Habit

// of returns one of them.
func (h *habits) of(k prompt.Kind, stream bool) *Habit {
	if h == nil {
		return nil
	}
	if stream {
		return &h[k][1]
	}
	return &h[k][0]
}

// forget drops all of them: another process may have other habits.
func (h *habits) forget() {
	for k := range h {
		for i := range h[k] {
			one := &h[k][i]
			one.mu.Lock()
			one.known = known{}
			one.mu.Unlock()
		}
	}
}

var marks = maphash.MakeSeed()

// MarkOf returns the mark of a request's id for the transport. Clients may give two requests the same id, and their
// answers could then not be distinguished.
func MarkOf(id string) uint64 { return maphash.String(marks, id) }
