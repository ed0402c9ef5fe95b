package route

import (
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// Sent is what a router publishes of a request that it has sent to a worker.
type Sent struct {
	Worker uint64 // its Key
	Space  uint64 // the number of the prompt's namespace; 0 = there is no prompt
	Est    float64
	Tokens int     // of the prompt
	Cached int     // of them, believed in the worker's cache
	Block  float64 // tokens in a block of the prompt
	Whole  bool    // the answer comes in one piece
	Again  bool    // another worker failed it before
	Moves  bool    // it is the router's own, to have the worker hold the prompt of a conversation
}

func (s *Sent) dispatch() worker.Dispatch {
	return worker.Dispatch{PromptTokens: s.Tokens, CachedTokens: s.Cached, Est: s.Est, Whole: s.Whole}
}

// Teller publishes what a pool does to its own books, so that other routers do the same to theirs. The pool calls its
// methods on the way of requests: they do not wait, and keep nothing that they are given.
type Teller interface {
	// Sent publishes a request that was sent to a worker, with the chains of its prompts. It returns a number that the
	// following calls give.
	Sent(s *Sent, chains []prompt.Chain, at time.Time) (id uint64)
	// FirstByte publishes the first output of a good answer.
	FirstByte(id uint64, at time.Time)
	// Answer publishes that the worker now holds a prompt with its answer.
	Answer(id, space uint64, chain []uint64, at time.Time)
	// Ended publishes the end of a request that Sent has published, once.
	Ended(id uint64, at time.Time)
	// Forgotten publishes that a worker's process has ended, and its cache with it.
	Forgotten(worker uint64)
}

// telling holds a Teller for an atomic pointer.
type telling struct{ Teller }
