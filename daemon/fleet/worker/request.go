package worker

import (
	"github.com/warmpath/warmpath/cache/parts/linked"
	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// Holder waits for the answer to a request. The pool calls GiveUp when the grace of a worker that fell is over, or its
// engine does nothing. Unless it is Dead, nothing came of the answer, and another worker could take the request: the
// holder decides. The pool calls without its lock, and again each second until the ticket has ended. One more call may
// come just after that.
type Holder interface{ GiveUp(why Loss) }

// Loss is why a request is to leave its worker.
type Loss uint32

// The values of Loss.
const (
	Dead    Loss = iota + 1 // the worker's port is closed, so that no answer will come
	Mute                    // it answers no health checks, or its engine makes no step
	Resting                 // its engine is paused or asleep
)

// MaxParts bounds the parts of a Beginning.
const MaxParts = 32

// Beginning is the first parts of a prompt, by which the pool knows what several requests in flight share. An engine
// holds it once.
type Beginning struct {
	Parts  []uint64 // a hash for each, of it and all before it; those behind MaxParts are left out
	Tokens int      // of a part
}

// request is one request at a worker, until it ends.
type request struct {
	judge.Request // its Ended, Called and First are guarded by the pool's lock

	model  string  // that it asks for
	within *within // the workers that alone may get it; nil = all
	est    float64 // seconds of prefill on a worker of slowness 1
	tokens int     // of the prompt
	cached int     // of these, how many the index expects in the worker's cache
	holder Holder  // nil: the request waits on
	tried  uint64  // the workers that have had it before, as Dispatch.Tried

	sequences  int      // that it is to an engine: its prompts, times the answers to each
	output     int      // tokens that the answer is expected to have
	parts      []uint64 // of the prompt's beginning
	partTokens int

	coming bool // its prompt is computed elsewhere, and it has no place yet; guarded by the pool's lock

	talks bool // the answer is generated

	// Guarded by the pool's lock.
	queued   bool
	quick    bool                  // its first byte shows the engine's speed: it had little prefill, and nothing before it
	adapts   bool                  // its model is an adapter; from begin on: that the worker's uses count
	inQueue  linked.Links[request] // of the worker
	inFlight linked.Links[request] // of the worker
}

// holds returns the tokens of KV that the request holds.
func (r *request) holds() int { return max(r.tokens, len(r.parts)*r.partTokens) + r.output }

// rest returns the tokens of KV that the request holds behind the parts of its beginning.
func (r *request) rest() int { return max(0, r.tokens-len(r.parts)*r.partTokens) + r.output }

// begins sets the parts of the prompt's beginning.
func (r *request) begins(b *Beginning) {
	r.parts = append(r.parts[:0], b.Parts[:min(len(b.Parts), MaxParts)]...)
	r.partTokens = b.Tokens
}

// newTokens returns the number of tokens that the request's prefill has to compute.
func (r *request) newTokens() int { return max(1, r.tokens-r.cached) }
