package peers

import (
	"time"

	"github.com/warmpath/warmpath/daemon/route"
)

// maxActs and maxHashes bound what is said before it is written: 256 KB each.
const maxActs, maxHashes = 2048, 32 << 10

// act is one thing that a request did. sent is whole for kindSent alone: an answer has its space, what is forgotten its
// worker.
type act struct {
	kind   kind
	chains int // of a request that was sent
	id     uint64
	at     time.Time
	sent   route.Sent
}

// said is what requests did since a frame was last written. On the way of a request it is only noted: to look chains up
// and to write records costs a third as much for all that a round brings at once.
type said struct {
	acts   []act
	hashes []uint64 // of each chain of each act, its length first
}

// chain notes a chain of the act that is noted next.
func (s *said) chain(c []uint64) {
	s.hashes = append(append(s.hashes, uint64(len(c))), c...)
}

func (s *said) full() bool { return len(s.acts) >= maxActs || len(s.hashes) >= maxHashes }

func (s *said) clear() { s.acts, s.hashes = s.acts[:0], s.hashes[:0] }

// next takes the next chain.
func (s *said) next() (chain []uint64) {
	n := s.hashes[0] + 1
	chain, s.hashes = s.hashes[1:n:n], s.hashes[n:]
	return chain
}
