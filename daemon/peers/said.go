package peers

import (
	"time"

	"github.com/warmpath/warmpath/daemon/route"
)

// maxActs and maxHashes bound the notes that wait to be written: 256 KB each.
const maxActs, maxHashes = 1024, 32 << 10

// act is one event of a request. sent is whole for kindSent only: an answer has its space, kindForgotten its worker.
type act struct {
	kind   kind
	chains int // of a request that was sent
	id     uint64
	at     time.Time
	sent   route.Sent
	from   int // where its chains stand in hashes

	// What followed on a request that was sent, until it is written. apart: later events are acts of their own.
	first, answered time.Time
	answer          int // where the chain of its prompt and answer stands
	ended, apart    bool
}

// said collects the events of requests since the last frame was written. A request on its way only leaves a note: to
// look up chains and to write records costs a third as much for all notes of a round at once. Most short requests begin
// and end between two rounds. All events of such a request are one act, which is sent and applied in one go.
type said struct {
	acts   []act
	hashes []uint64 // of each chain of each act, after its length
	begun  uint64   // id of the first request in sent
	sent   []int32  // the index in acts of each request sent, by id from begun on
}

// chain copies a chain into hashes, and returns where it stands there.
func (s *said) chain(c []uint64) (from int) {
	from = len(s.hashes)
	s.hashes = append(append(s.hashes, uint64(len(c))), c...)
	return from
}

// read returns the chain that stands at from, and where the next one stands.
func (s *said) read(from int) (chain []uint64, next int) {
	next = from + 1 + int(s.hashes[from])
	return s.hashes[from+1 : next : next], next
}

// send notes a request that was sent. Ids come in order.
func (s *said) send(a *act) {
	if len(s.sent) == 0 {
		s.begun = a.id
	}
	s.sent = append(s.sent, int32(len(s.acts)))
	s.acts = append(s.acts, *a)
}

// of returns the act of a request to which its next event belongs; nil if the event is an act of its own.
func (s *said) of(id uint64) *act {
	i := id - s.begun
	if i >= uint64(len(s.sent)) || s.acts[s.sent[i]].apart {
		return nil
	}
	return &s.acts[s.sent[i]]
}

// part makes all later events acts of their own, so that they come after the acts so far.
func (s *said) part() { s.sent = s.sent[:0] }

// answers notes the chain of a request's prompt and answer. It returns false unless the chain extends the request's
// only chain.
func (s *said) answers(a *act, space uint64, chain []uint64, at time.Time) bool {
	if a.chains != 1 || !a.answered.IsZero() || a.sent.Space != space {
		return false
	}
	prompt, _ := s.read(a.from)
	n := len(prompt)
	if n > len(chain) || n > 0 && prompt[n-1] != chain[n-1] { // a hash stands for all before it
		return false
	}
	a.answered, a.answer = at, s.chain(chain)
	return true
}

func (s *said) full() bool { return len(s.acts) >= maxActs || len(s.hashes) >= maxHashes }

func (s *said) clear() { s.acts, s.hashes, s.sent = s.acts[:0], s.hashes[:0], s.sent[:0] }
