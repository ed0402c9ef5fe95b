package trial

import "time"

// Chooser is a rule that places requests. One value serves one router of one run. It is called by one goroutine, with
// times that never fall.
type Chooser interface {
	// Choose returns the index in fleet of the worker that gets the request. fleet has a View of each worker, by number,
	// those that are down included. An index that is out of range or of a worker that is down refuses the request. Choose
	// is asked again when the worker chosen went down before its first token. It must not keep fleet.
	Choose(now time.Duration, q *Request, fleet []View) int

	// Sent is called when the request was sent to the worker, at the instant of the choice.
	Sent(now time.Duration, q *Request, worker int)
	// First is called at the first token of the answer.
	First(now time.Duration, q *Request, worker int)
	// End is called once for each Sent.
	End(now time.Duration, q *Request, worker int, e *End)

	// Down is called when a worker went down: its cache is lost. End of each request there was called before.
	Down(now time.Duration, worker int)
	// Up is called when a worker comes up, with an empty cache, at the beginning of a run too.
	Up(now time.Duration, worker int)
}

// Hearer is a Chooser that follows the workers' KV events. hashes are those of Request.Chain.
type Hearer interface {
	Chooser
	// Stored is called when blocks can be found on the worker's GPU.
	Stored(now time.Duration, worker int, hashes []uint64)
	// Removed is called when blocks can no longer be found there. A block that was stored twice is removed twice.
	Removed(now time.Duration, worker int, hashes []uint64)
}

// Request is one request as a router sees it. It stays the same until its End.
type Request struct {
	ID        int    // from 0, in order of arrival
	Session   uint64 // of its conversation, as a client would name it; 0 = none
	Parent    uint64 // the conversation that began it, as a subagent's; 0 = none
	Turn      int    // in its conversation, from 0
	Tenant    uint64 // 0 = none
	Prompt    int    // tokens
	MaxTokens int    // that the client asks for. The lab's clients get exactly as many

	// Chain has a hash for each full block of BlockTokens tokens of the prompt. A hash covers its block and all before
	// it: two prompts with a common beginning have equal hashes as far as that goes. Not to be changed.
	Chain       []uint64
	BlockTokens int
}

// View is what a router knows of one worker.
type View struct {
	Up       bool
	InFlight int // requests that this router has sent there and that have not ended

	// As of the last scrape of the worker's metrics.
	Running int           // requests
	Waiting int           // requests
	KVUsage float64       // part of its KV cache that requests hold, 0 to 1
	Age     time.Duration // of the scrape; negative = there was none since it came up

	KVTokens int // size of its KV cache on the GPU
}

// End is how a request ended at one worker.
type End struct {
	Status Status
	Output int      // tokens generated
	Cached int      // tokens of the prompt that the worker found cached, by its usage; -1 = not known
	Chain  []uint64 // as Request.Chain, of prompt and answer; nil if Status is not Answered
}

// Status is what became of a request.
type Status uint8

// The values of Status.
const (
	Answered Status = iota
	Broken          // its worker went down after the first token: the client saw the answer break off
	Repeated        // its worker went down before the first token: it is sent again. Only in End
	Refused         // no worker took it
)

var statuses = [...]string{"answered", "broken", "repeated", "refused"}

// String returns the status in a word, as reports write it.
func (s Status) String() string { return statuses[min(int(s), len(statuses)-1)] }
