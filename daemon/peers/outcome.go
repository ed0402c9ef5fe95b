package peers

import (
	"time"

	"github.com/warmpath/warmpath/daemon/request/route"
)

// request reads the fields that the records sent and open share.
func (r *reader) request() (id uint64, s route.Sent, flags byte, at time.Time) {
	id = r.uint()
	s.Worker = r.known(&r.workers)
	s.Space = r.known(&r.spaces)
	s.Est = r.float()
	s.Tokens = r.upTo(maxTokens)
	s.Cached = r.upTo(maxTokens)
	s.Block = r.float()
	flags = r.byte()
	s.Whole, s.Again, s.Moves = flags&flagWhole != 0, flags&flagAgain != 0, flags&flagMoves != 0
	return id, s, flags, r.time()
}

// outcome reads what followed on a request with that many chains, the last of which has so many blocks.
func (r *reader) outcome(flags byte, chains, blocks int) (o route.Outcome) {
	o.Ended = flags&flagEnded != 0
	if flags&flagFirst != 0 {
		o.First = r.time()
	}
	if flags&flagAnswered == 0 {
		return o
	}
	o.Answered, o.Prompt = r.time(), r.upTo(maxFrame)
	if chains > 1 || chains == 1 && o.Prompt > blocks {
		r.fail()
	}
	return o
}
