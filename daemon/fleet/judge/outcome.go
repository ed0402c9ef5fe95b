package judge

import "cmp"

// Kind is how an exchange with a worker ended. The table proofs has what each kind proves.
type Kind uint8

// The kinds of Outcome. The zero value is no fault of the worker, so that a deferred End may pass it.
const (
	Canceled Kind = iota // the client left, or the result is unknown
	Answered             // the worker answered, even with a 4xx that is none of the below
	Failed               // 5xx, or a failure hidden in a 200
	Broken               // the connection broke or timed out
	Refused              // nothing listens there
	Leaving              // it gave up what it had accepted: finish_reason "abort", a bare [DONE]
	Busy                 // 503, 429, 408 or 529: it has as much as it can take
	Denied               // 401, 403, 404, 405 or 422, or no answer of an API with another status
	Late                 // no connection was made in time
	Dying                // it says in its own words that it is shutting down, or that its engine is dead
)

// Outcome describes how a ticket ends.
type Outcome struct {
	Kind       Kind
	Rejected   bool   // Answered, with an error that is about the request: the worker computed nothing
	Excused    bool   // another worker failed the same request in the same way: the fault is the request's
	OfModel    bool   // Denied: the worker lacks the model, and may accept others
	Uncompared bool   // Denied: the client got it, and no other worker was asked
	Stalled    bool   // Broken by a pause of the answer: the connection was there
	Hangs      bool   // Broken: no answer came, and the engine did nothing
	Partly     bool   // the worker may not have got all of the request, and waited for the rest
	Tokens     int    // generated, if known: for TPOT
	Err        string // the error, for the page; no URLs, no prompts
}

// Classes is the number of classes of requests that a worker may refuse apart from the others: it may serve chats and
// have no route for audio, or lack one model of those that it lists.
const Classes = 128

// why returns the error in words.
func (o *Outcome) why() string { return cmp.Or(o.Err, proofs[o.Kind].words) }
