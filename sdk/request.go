package sdk

import (
	"math"
	"unsafe"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Alternatives is how many further choices the built-in strategies name: failover rarely gets to the second, and the
// host appends the rest in the order of the rows.
const Alternatives = 3

// Request is the request to be routed. Its fields are the header's: PromptTokens, Seq, Random, Endpoint and so on.
// Session, Model, Tenant and Caller are hashes, which cost nothing; the functions of the same names copy the texts.
type Request struct {
	*abi.Header
	order  []uint32
	labels labels
	drawn  uint64 // numbers of chance, since the pick began
	text   string // of a rejection: the host reads it after Route has returned
}

// NewRequest views h as a request. Alternatives go to order, as many as it has room for.
func NewRequest(h *abi.Header, order []uint32) *Request {
	return &Request{Header: h, order: order}
}

// Kinds of [Request].Endpoint.
const (
	EndpointOther       = abi.EndpointOther
	EndpointCompletions = abi.EndpointCompletions
	EndpointChat        = abi.EndpointChat
	EndpointResponses   = abi.EndpointResponses
	EndpointMessages    = abi.EndpointMessages
	EndpointEmbeddings  = abi.EndpointEmbeddings
	EndpointScore       = abi.EndpointScore
	EndpointTokenize    = abi.EndpointTokenize
)

// Streams reports whether the client asked for a stream.
func (r *Request) Streams() bool { return r.Flags&abi.HeaderStream != 0 }

// Final reports whether the client says that no request of the session follows.
func (r *Request) Final() bool { return r.Flags&abi.HeaderFinal != 0 }

// FromEvents reports whether the match counts of all workers come from their KV events; otherwise some workers have
// those of the routed history, and [Worker].Live reports which have not.
func (r *Request) FromEvents() bool { return r.Flags&abi.HeaderEvents != 0 }

// InTokens reports whether the prompt's ids are known: one block of the rows, and of PromptBlocks, is one token then.
// The functions of prefixes, such as PrefixHash, always mean the blocks of the routed history.
func (r *Request) InTokens() bool { return r.Flags&abi.HeaderTokens != 0 }

// Leg is the part of a request for which a worker is chosen.
type Leg uint8

// The legs. In a pool with [pools.disaggregation] a strategy is asked for LegAnswer first. If another worker is to
// compute the prompt, it is asked again, for LegPrefill, with the rows of those that may.
const (
	LegWhole   Leg = iota // one worker computes the prompt and writes the answer
	LegAnswer             // the worker writes the answer. It computes the prompt too, unless it lacks much of it
	LegPrefill            // the worker computes the prompt, and another one has been chosen for the answer
)

// Leg returns the part of the request for which a worker is chosen. The rows are those of workers that may take it, so
// that a strategy which does not ask works too.
func (r *Request) Leg() Leg {
	switch {
	case r.Flags&abi.HeaderPrefill != 0:
		return LegPrefill
	case r.Flags&abi.HeaderAnswer != 0:
		return LegAnswer
	}
	return LegWhole
}

// SecondsLeft returns the seconds from the request's arrival to its deadline, +Inf if it has none.
func (r *Request) SecondsLeft() float64 {
	if r.Deadline == 0 {
		return math.Inf(1)
	}
	return float64(r.Deadline-r.Now) / 1e9
}

// Then names worker i as the next choice, should those before it refuse the request. Name neither the chosen worker nor
// one twice: the host skips both.
func (r *Request) Then(i int) {
	if n := int(r.OrderLen); n < len(r.order) {
		r.order[n] = uint32(i)
		r.OrderLen++
	}
}

// Keep keeps the request to the workers that may have it, for [Filterer]. Return what it returns:
//
//	own := r.Labeled("for", sdk.Caller())
//	return r.Keep(workers, func(w *sdk.Worker) bool { return w.Labels&own != 0 })
func (r *Request) Keep(workers []Worker, may func(w *Worker) bool) Decision {
	r.OrderLen = 0
	for i := range workers {
		if may(&workers[i]) {
			r.Then(i)
		}
	}
	return To(int(r.OrderLen))
}

// Order returns the choices that [Request.Then] has named so far, best first.
func (r *Request) Order() []uint32 {
	return r.order[:min(int(r.OrderLen), len(r.order))]
}

// Reject turns the request away. The client gets the status, 400 to 599, the text, of which what is beyond 256 bytes is
// cut, and is asked to come again after so many seconds; 0 seconds leave that to the host's estimate. Return what it
// returns:
//
//	return r.Reject(429, "the tenant's share of this hour is used up", 600)
//
// The constant [Reject] is the same with 429 and the host's own words.
func (r *Request) Reject(status int, text string, seconds int) Decision {
	r.text = text
	r.RejectStatus, r.RetryAfter = uint32(status), uint32(max(seconds, 0))
	r.RejectText, r.RejectLen = uint32(uintptr(unsafe.Pointer(unsafe.StringData(text)))), uint32(len(text))
	return Reject
}

// Hold has the request wait for a better worker, for at most so many seconds since it began to wait, and no longer than
// nine tenths or so of the pool's queue.wait. Others pass it meanwhile. The strategy is asked again when something has
// changed, and sees in Waited how long it has waited. When the time is over, and at once in a pool without a queue, the
// host's fallback chooses: a strategy cannot hold for ever. Return what it returns:
//
//	if w := &workers[best]; w.GPU == 0 && r.Waited < .2 {
//		return r.Hold(.2)
//	}
func (r *Request) Hold(seconds float64) Decision {
	r.HoldMillis = 0
	if seconds > 0 {
		r.HoldMillis = uint32(min(seconds*1000, math.MaxUint32))
	}
	return hold
}

// Pair chooses worker decoder for the answer, and worker prefiller for the prompt, whatever the pool's threshold is.
// The same worker twice keeps the prompt from any other one. Where a strategy names no pair, the host decides, and may
// ask it once more, for [LegPrefill]. A strategy that asks for [WantPair] finds the prefillers in the last Prefillers
// rows, which cannot be chosen for the answer. The pair holds for the choices of [Request.Then] too. If the prefiller
// takes nothing by then, or is none, the host has another one chosen. Return what it returns:
//
//	return r.Pair(d, p).Because(sdk.ReasonCost)
func (r *Request) Pair(decoder, prefiller int) Decision {
	r.PairRow = int32(prefiller)
	return To(decoder)
}

// Unavailable turns the request away for want of a worker, with 503 and the host's estimate of when to come again.
// Return what it returns. Workers that are down have no row: r.Configured counts all that the client's key may use, and
// r.Up those that answer their health checks.
func (r *Request) Unavailable(text string) Decision { return r.Reject(503, text, 0) }

// Rejected returns what [Request.Reject] was given, for tests.
func (r *Request) Rejected() (status int, text string, seconds int) {
	return int(r.RejectStatus), r.text, int(r.RetryAfter)
}
