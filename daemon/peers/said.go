package peers

import (
	"time"

	"github.com/warmpath/warmpath/daemon/route"
)

// maxActs and maxHashes bound what is said before it is written: 256 KB each.
const maxActs, maxHashes = 1024, 32 << 10

// act is one thing that a request did. sent is whole for kindSent alone: an answer has its space, what is forgotten its
// worker.
type act struct {
	kind   kind
	chains int // of a request that was sent
	id     uint64
	at     time.Time
	sent   route.Sent
	from   int // where its chains stand

	// What became of a request that was sent, until it is written. What is apart is acts of their own.
	first, answered time.Time
	answer          int // where the chain of its prompt and answer stands
	ended, apart    bool
}

// said is what requests did since a frame was last written. On the way of a request it is only noted: to look chains up
// and to write records costs a third as much for all that a round brings at once. Most short requests begin and end
// between two rounds: such a one is one act, which is told, and heard, in one go.
type said struct {
	acts   []act
	hashes []uint64 // of each chain of each act, its length first
	begun  uint64   // id of the first request of sent
	sent   []int32  // where the acts of the requests are that were sent, by their ids
}

// chain notes a chain, and returns where it stands.
func (s *said) chain(c []uint64) (from int) {
	from = len(s.hashes)
	s.hashes = append(append(s.hashes, uint64(len(c))), c...)
	return from
}

// read returns the chain that stands there, and where the next one does.
func (s *said) read(from int) (chain []uint64, next int) {
	next = from + 1 + int(s.hashes[from])
	return s.hashes[from+1 : next : next], next
}

// send notes a request that was sent; ids come in order.
func (s *said) send(a *act) {
	if len(s.sent) == 0 {
		s.begun = a.id
	}
	s.sent = append(s.sent, int32(len(s.acts)))
	s.acts = append(s.acts, *a)
}

// of returns the act to which what a request does now belongs; nil if that is an act of its own.
func (s *said) of(id uint64) *act {
	i := id - s.begun
	if i >= uint64(len(s.sent)) || s.acts[s.sent[i]].apart {
		return nil
	}
	return &s.acts[s.sent[i]]
}

// part has what requests do from now on come after all that they have done.
func (s *said) part() { s.sent = s.sent[:0] }

// answers notes the chain of a request's prompt and answer. It reports false if that is not the request's only one with
// more at its end.
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
