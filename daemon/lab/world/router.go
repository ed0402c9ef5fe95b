package world

import (
	"time"

	"github.com/warmpath/warmpath/daemon/lab/traffic"
	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// Router places requests. It is called by one goroutine, with times that never fall.
type Router interface {
	// Choose sends a request to a worker, by number, refuses it, or lets it wait if the router is a Queuer. It is called
	// again for a request whose worker died before the first token. text is the prompt's, valid until Choose returns.
	Choose(now time.Duration, q *Request, text []byte) (worker int, p Placement)
	First(now time.Duration, q *Request)            // the first token
	End(now time.Duration, q *Request, e trial.End) // once for each time that it was sent
	Down(now time.Duration, worker int)             // its process is gone. End is called next for each request there
	Lost(now time.Duration, worker int)             // after those: what it held is gone
	Up(now time.Duration, worker int)               // a process without a cache
	Scraped(now time.Duration, worker int, s *engine.Stats)
	Tick(now time.Duration) // each second

	// Follows reports whether the router wants KV events. Then Changed is called with what changed in a worker's caches.
	Follows() bool
	Changed(now time.Duration, worker int, changes []engine.Batch)
	// Remarks returns what its rule did in addition to choosing.
	Remarks() trial.Remarks
	Close()
}

// Placement is what became of a request at a router.
type Placement uint8

// The placements.
const (
	Refused Placement = iota
	Sent
	Waits
)

// Queuer is a Router that lets requests wait. It is asked after each of its calls, and each 50 ms.
type Queuer interface {
	Router
	// Waiting reports whether requests wait.
	Waiting() bool
	// Release removes a request that has waited and returns its worker, or its refusal; nil: none is ready.
	Release(now time.Duration) (q *Request, worker int, p Placement)
}

// Pairer is a Router that may have another worker compute a request's prompt than the one that answers. No worker of
// its run dies.
type Pairer interface {
	Router
	// Prefiller is called when a request has been sent. It returns the worker that computes its prompt first, -1 if the
	// one that answers does.
	Prefiller(now time.Duration, q *Request) int
	// Prefilled is called when that is done. cached is the tokens of the prompt that the prefiller had.
	Prefilled(now time.Duration, q *Request, cached int)
}

// Trainee is a Router that learns of syncs.
type Trainee interface {
	Router
	// Paused is called when all workers are paused.
	Paused(now time.Duration)
	// Updated is called when they go on, with weights of that version and empty caches.
	Updated(now time.Duration, version int)
}

// Request is one request on its way.
type Request struct {
	trial.Request
	Chat *traffic.Chat
	Turn *traffic.Turn
	IDs  []uint32 // the prompt's tokens
	Own  any      // the router's

	// Answer is the text of the answer, where somebody else than this package runs the engines.
	Answer string

	seq     engine.Sequence
	chat    *chat
	turn    int // of the chat's turns
	router  int
	machine *machine      // where it is; nil = nowhere
	leg     *leg          // computes its prompt elsewhere, or has done so; nil = none
	waits   time.Duration // since when it waits in a router's queue
	started bool          // a step has worked on it
	first   bool          // it has its first token
}

// Reply returns the first n tokens of the answer as text.
func (q *Request) Reply(n int) string {
	if q.Answer != "" {
		return q.Answer
	}
	return q.seq.Reply.Text(n)
}

// chat is a chat under way.
type chat struct {
	*traffic.Chat
	ended  []bool // by turn
	sent   []bool
	worker []int // by turn, that it was sent to last
	left   int   // turns that have not ended
}

// leg is the prefill of a request at another worker than the one that answers.
type leg struct {
	request *Request
	answers *machine
	machine *machine
	seq     engine.Sequence
}

// release has the prefiller free what it kept. A nil leg has nothing.
func (l *leg) release() {
	if l != nil {
		l.machine.engine.Release(&l.seq)
		l.machine.plan()
	}
}

// cached returns the number of cached tokens of the prompt that the answering worker reports.
func (q *Request) cached(o *trial.Outcome) int {
	if q.leg != nil {
		return q.seq.CachedTokens()
	}
	return o.Cached
}
