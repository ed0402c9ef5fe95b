package journal

import (
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// Meter counts what becomes of requests. Seen carries pool, strategy, model and worker as far as they are known.
type Meter interface {
	// Arrived counts a request when its pool, or that it has none, is known, and before it may be refused there.
	Arrived(s *message.Seen)
	// Picked counts a decision.
	Picked(s *message.Seen)
	// Refused counts an answer of the router's own. status is the client's: on SageMaker's paths it may be another than
	// the fault's.
	Refused(s *message.Seen, f message.Fault, status int, took time.Duration)
	// SessionRefused counts a request that was refused for its session.
	SessionRefused(pool, code string)
	// Placed counts a request that needed a worker's choice and no more.
	Placed(s *message.Seen, took time.Duration)
	// Prefilled counts what became of the prefill of a request at a worker of its own.
	Prefilled(pool string, result Prefilled)
	// Retried counts a request that goes to another worker.
	Retried(pool, reason string)
	// Continued counts what became of a stream that its worker broke off, in a pool where another one may go on with it.
	Continued(pool string, result Continuation)
	// Hinted counts a request whose worker could copy KV of another one.
	Hinted(pool string, result route.HintResult)
	// FellBack counts a request that goes from a model to another one, its fallback.
	FellBack(model, to, reason string)
	// Foreign counts an answer of a worker that belongs to another request.
	Foreign(pool, worker string)
	// Waited counts the end of a wait in a pool's queue.
	Waited(s *message.Seen, w Waited)
	// Shed counts refused load.
	Shed(pool, reason string)
	// FirstByte counts the first output of a good answer.
	FirstByte(s *message.Seen)
	// Ended counts the end of a worker's answer.
	Ended(s *message.Seen, e End)
}

// Waited is how a request's wait for room ended.
type Waited struct {
	Took    time.Duration
	Dropped string // why it got no worker: the value of X-Warmpath-Dropped, or client_gone; "" = it got one
}

// End is how a worker's answer ended.
type End struct {
	Status     int // the worker's
	Outcome    judge.Outcome
	Took       time.Duration // from the request's arrival
	Translated bool          // a door gives the answer another status: Seen is counted with what the client gets
}

// Prefilled is what became of the prefill of a request at a worker of its own, in metrics.
type Prefilled string

// What may become of it. After PrefillNone, PrefillFailed, PrefillRefused, PrefillUnnamed, PrefillLost and PrefillLong
// the worker that answers computes the prompt itself.
const (
	PrefillDone     Prefilled = "done"
	PrefillNone     Prefilled = "no_prefiller"  // that is up and has room
	PrefillFailed   Prefilled = "failed"        // the prefillers that were asked gave no answer
	PrefillRefused  Prefilled = "refused"       // a prefiller found fault with the request, as the decoder may do
	PrefillUnnamed  Prefilled = "no_parameters" // the prefiller does not say where the KV is
	PrefillLost     Prefilled = "lost"          // done, but the decoder could not load it: the prefiller has restarted
	PrefillFreed    Prefilled = "freed"         // the request ended before a decoder read it, and one had it freed
	PrefillUnneeded Prefilled = "not_needed"    // of a long prompt that is computed where it is answered, in records alone
	PrefillBegun    Prefilled = "begun"         // beside the answer, in records alone: the leg counts what becomes of it
	PrefillPinned   Prefilled = "pinned"        // likewise, and the prefiller keeps the memory until it gives up
	PrefillDropped  Prefilled = "dropped"       // the client left, and the leg was ended as that strands nothing
	PrefillLong     Prefilled = "long_body"     // above buffer_body_bytes: no prefiller was asked
)

// Continuation is what became of a stream that its worker broke off.
type Continuation string

// The continuations.
const (
	ContinuedWhole  Continuation = "done"
	ContinuedNot    Continuation = "not_eligible" // the answer is none that another worker can go on with
	ContinuedNone   Continuation = "no_worker"    // none took it
	ContinuedLethal Continuation = "lethal"       // the request has ended two engines
	ContinuedOther  Continuation = "mismatch"     // the other worker's answer was no continuation
	ContinuedBroken Continuation = "broken"       // the other worker broke off too
	ContinuedLeft   Continuation = "client_gone"
)

// SetAside begins why no prefiller was found, where some are not paired for a while. Their names follow.
const SetAside = "set aside: "

// Keeper keeps decisions, for later readers.
type Keeper interface {
	// Decided keeps the decision on a request before it is sent or refused. c is borrowed for the call.
	Decided(in *message.Inbound, c *route.Choice)
	// Waits keeps that a request waits, until it is decided on or ends. c is borrowed for the call; nil = it has none.
	Waits(in *message.Inbound, c *route.Choice, p Position)
	// Prefills keeps what is known so far of the prefill of a request that is under way.
	Prefills(in *message.Inbound, s record.Split)
	// Moves keeps at which worker a request that is under way is now.
	Moves(in *message.Inbound, to string)
}

// Position is that of a request in a queue. It is safe for concurrent use.
type Position interface {
	Behind() int // approximate number of others, now
	Waited(at time.Time) time.Duration
}

// legMeter counts nothing of a leg that counts requests of clients.
type legMeter struct{ Meter }

func (legMeter) Arrived(*message.Seen)                                    {}
func (legMeter) Picked(*message.Seen)                                     {}
func (legMeter) Refused(*message.Seen, message.Fault, int, time.Duration) {}
func (legMeter) Placed(*message.Seen, time.Duration)                      {}
func (legMeter) Waited(*message.Seen, Waited)                             {}
func (legMeter) FirstByte(*message.Seen)                                  {}
func (legMeter) Ended(*message.Seen, End)                                 {}
