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
	s.Whole, s.Again = flags&flagWhole != 0, flags&flagAgain != 0
	return id, s, flags, r.time()
}

// story reads what followed on a request with that many chains, the last of which has so many blocks.
func (r *reader) story(flags byte, chains, blocks int) (y route.Story) {
	y.Ended = flags&flagEnded != 0
	if flags&flagFirst != 0 {
		y.First = r.time()
	}
	if flags&flagAnswered == 0 {
		return y
	}
	y.Answered, y.Prompt = r.time(), r.upTo(maxFrame)
	if chains > 1 || chains == 1 && y.Prompt > blocks {
		r.fail()
	}
	return y
}
