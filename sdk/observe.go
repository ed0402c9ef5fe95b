package sdk

import "github.com/warmpath/warmpath/sdk/abi"

// A strategy that wants more than to choose implements one or more of these. A call reaches one instance
// of the module, whichever is idle, off the request path, at most once, and late by milliseconds; what comes faster
// than the strategy takes it is dropped. So an OnComplete that counts does it by [KVAdd], or by [SetOwn] for a worker,
// never in a variable. A call that panics or takes longer than a pick may costs the instance, as a pick does.

// Want is what a strategy asks the host to compute for it.
type Want uint32

// WantCost asks for [Worker].Cost: the host's own score of each worker in seconds, smallest best, for a strategy that
// adds to it or chooses among its best. The host computes it faster than a module can.
const WantCost = Want(abi.WantCost)

// WantHeld asks for GPU, L1 and L2 of each worker whose KV events are live as the worker itself reports them. The host
// then looks for the prompt's token ids, by a call to a worker if it must. Where it has them ([Request.InTokens]) a
// block of the rows is one token. Without WantHeld, or without ids, GPU is the routed history's, as Predicted.
const WantHeld = Want(abi.WantHeld)

// WantPair asks for the rows of prefillers, behind those of the workers that may answer, so that [Request.Pair] can
// name one. It changes nothing in a pool without [pools.disaggregation], and for a request that is not split.
const WantPair = Want(abi.WantPair)

// WantCandidates says that the rows of candidates suffice. Of more than 32 workers that can take a request the host
// then shows some 50: those that hold the most of the prompt, those with the least in flight, with the least prefill
// queued and with the most room in their KV caches, those of the request's session, and without WantCost the four whose
// turn is next ([Request].Next). [Request].LeftOut is how many others there are. A strategy that declines, rejects the
// request or keeps it to some workers is asked once more with all of them. Without WantCandidates all workers have a
// row, and a decision costs as much as they are many.
const WantCandidates = Want(abi.WantCandidates)

// WantSessions asks for the rows of all workers, in spite of WantCandidates, where a session has no worker yet: for a
// strategy that places sessions by more than the load.
const WantSessions = Want(abi.WantSessions)

// Wanter asks for what costs the host something.
type Wanter interface {
	// Wants is called once, after Configure.
	Wants() Want
}

// Ticker does something now and then.
type Ticker interface {
	// OnTick is called about once a second with the time in Unix nanoseconds.
	OnTick(now int64)
}

// Outcome is what became of a request. OnFirstToken gets it without what is known only at its end.
type Outcome = abi.Outcome

// FirstTokener learns when an answer begins.
type FirstTokener interface {
	// OnFirstToken is called for each request whose first byte came. o is valid during the call.
	OnFirstToken(o *Outcome)
}

// Completer learns how requests end.
type Completer interface {
	// OnComplete is called for each request that ended, however it did. o is valid during the call.
	OnComplete(o *Outcome)
}

// KVEvent is a block's change in a worker's cache.
type KVEvent = abi.KVEvent

// KVEventer learns what workers report of their caches.
type KVEventer interface {
	// OnKVEvents is called with what the pool's workers reported, in the order of each worker. events is valid during the
	// call.
	OnKVEvents(events []KVEvent)
}

// Classifier sets the urgency of a request that is about to wait in the pool's queue.
type Classifier interface {
	// Classify returns the request's class, of which the greater goes first, -100 to 100, and the share of its key among
	// the others of the class, .1 to 100; 0 leaves the key's own. The key's priority of the configuration bounds the
	// class: unless it is set, nobody gets above 0. r has no workers: Labeled and what asks for a row know none. It is not
	// called for a request that finds a worker at once.
	Classify(r *Request) (class int, weight float64)
}

// Filterer says which workers a request may use: those of a fence, a region, a revision, a licence.
type Filterer interface {
	// Filter returns what [Request.Keep] makes of the workers; [Decline] = the strategy has no opinion, and all stay; or
	// [Request.Reject]. It is called before Route of this strategy, or of the one behind it in the pool's chain. That one
	// sees no other workers, and no other worker gets the request. workers has all that are up, those in slow start,
	// crowded or full too, and prefillers; what depends on the prompt is 0 in their rows. If nobody is kept, the client
	// gets 503. So it does if Filter panics, unless the operator has set on_failure = "fallback".
	Filter(r *Request, workers []Worker) Decision
}

// Talk is a conversation that may move to another worker.
type Talk = abi.Talk

// Planner says in which order conversations move away from a worker that leaves, or to one that has come, and which of
// them stay. Without it those move first that most probably have another turn.
type Planner interface {
	// Plan sets the Value of each, of which the greater moves first; 0 and less = it stays. It is called about once a
	// second while conversations move, with those that are left, in several calls if they are many. talks is valid during
	// the call.
	Plan(talks []Talk)
}

// Reasoner names the strategy's own reasons, for explanations and logs.
type Reasoner interface {
	// Reasons names the codes from [ReasonOwn] on: its first entry is the name of ReasonOwn.
	Reasons() []string
}

// WantsOf returns the bits that the host reads of s: what it asks for, and which of the interfaces it has.
func WantsOf(s Strategy) uint32 {
	bits := uint32(0)
	if w, ok := s.(Wanter); ok {
		bits = uint32(w.Wants()) & abi.WantRows
	}
	if _, ok := s.(Classifier); ok {
		bits |= abi.WantClassify
	}
	if _, ok := s.(Filterer); ok {
		bits |= abi.WantFilter
	}
	if _, ok := s.(Ticker); ok {
		bits |= abi.WantTick
	}
	if _, ok := s.(FirstTokener); ok {
		bits |= abi.WantFirstToken
	}
	if _, ok := s.(Completer); ok {
		bits |= abi.WantComplete
	}
	if _, ok := s.(KVEventer); ok {
		bits |= abi.WantKVEvents
	}
	if _, ok := s.(Planner); ok {
		bits |= abi.WantPlan
	}
	return bits
}

func tick(s Strategy, now int64) {
	if t, ok := s.(Ticker); ok {
		t.OnTick(now)
	}
}

func firstTokens(s Strategy, outcomes []Outcome) {
	if f, ok := s.(FirstTokener); ok {
		for i := range outcomes {
			f.OnFirstToken(&outcomes[i])
		}
	}
}

func completed(s Strategy, outcomes []Outcome) {
	if c, ok := s.(Completer); ok {
		for i := range outcomes {
			c.OnComplete(&outcomes[i])
		}
	}
}

func kvEvents(s Strategy, events []KVEvent) {
	if k, ok := s.(KVEventer); ok && len(events) > 0 {
		k.OnKVEvents(events)
	}
}

func plan(s Strategy, talks []Talk) {
	if p, ok := s.(Planner); ok && len(talks) > 0 {
		p.Plan(talks)
	}
}
