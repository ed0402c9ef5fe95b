package route

import (
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Ask is a request, as a pool needs it to choose a worker.
type Ask struct {
	Prompt        *prompt.Request // parsed; Choose hashes it. It must not change until the Trip has ended
	Salt          string          // keeps tenants' prompts apart
	IDs           []uint32        // the prompt's token ids as the engine has them; nil = not known. Not changed later
	Adapter       string          // the model's name if it is a LoRA adapter: engines keep its blocks apart
	ID            string          // of the request, for the log
	Caller        string          // the name of the key that was shown; "" = none
	Fence         worker.Fence    // labels of the workers that alone may get it
	From          *worker.Worker  // that broke off, of a request for the rest of its answer: see worker.Query; nil = none
	Leg           Leg             // the part that a worker is chosen for
	Needed        bool            // of a Prefill: no decoder computes its prompt
	Prefillers    worker.Fence    // of an Answer: of those that a strategy may name for its prompt; nil = it may not
	Near          string          // of a Prefill: a label that the worker had better have; "" = none
	Far           float64         // by how many seconds one without it is worse
	Shared        bool            // the prefillers answer too: Row.Delay is filled
	Named         string          // of a Prefill: id of the worker that a strategy has named: it comes first; "" = none
	Headers       host.HeaderSource
	Deadline      time.Time // nobody waits for the answer after it; zero = not known
	Claim         Claim
	EndWithWorker bool      // a session ends with its worker and does not move (sessions.on_worker_down = "error")
	Patient       bool      // Choose may return Unheard
	Turn          uint64    // Arrive returned it
	Class         uint8     // of requests that a worker may refuse apart from others, below judge.Classes
	Rank          int       // 1 + the data-parallel rank that the client asks for; 0 = any
	Away          bool      // the conversation is moved away from a worker that leaves
	To            string    // of Away: the worker that has the beginning already, and comes first; "" = any
	Held          bool      // of To: only if it holds half of the prompt at least
	Random        uint64    // what a strategy takes for chance; 0 = Choose draws it
	At            time.Time // now
	Queue         Queueing  // what a strategy sees of the pool's queue, and whether it may hold the request
	By            *Strategy // Choose asks it in place of the pool's own, for a dry run; nil = the pool's own
}

// Leg is the part of a request that a worker is chosen for, as a flag of its frame.
type Leg uint32

// The legs.
const (
	Whole   Leg = 0
	Answer      = Leg(abi.HeaderAnswer) // another worker may compute the prompt
	Prefill     = Leg(abi.HeaderPrefill)
)

// Queueing is what a request knows of the queue of its pool. The zero value is that of a pool without one.
type Queueing struct {
	Depth, Flows int           // that wait
	Waited       time.Duration // of this request
	Longest      time.Duration // for which a strategy may hold it in all; 0 = it may not
}

// Strategy decides a pool's requests.
type Strategy = host.Strategy

// Claim is the sessions that a request may belong to. The zero value is none.
type Claim struct {
	Opened  session.Name    // ID "" = none: a session that must live, or the request is refused
	Stored  [2]session.Name // the stored responses that the request refers to
	Key     session.Name    // what the client calls its conversation
	Maybe   session.Name    // Key as the id of an opened session, if it has the form of one
	Parent  string          // what the client calls the conversation that began Key's; "" = none
	By      string          // the field that has Key's name, as X-Session-Id; "" = none
	Final   bool            // the client says that no request of Key's follows
	Fresh   bool            // Key was made up for this request: no other request has named it
	Binds   bool            // a free choice binds Key, whatever the strategy asks for
	Silent  bool            // the store did not answer the look-up of the session's pool
	Placing bool            // Key is for strategies that place by it; nothing is bound
	Closing bool            // the request ends the session: no other worker can serve it
}

// first returns the id of the worker that a strategy has named for a prompt: it comes first for it. "" = none.
func (a *Ask) first() string {
	if a.Leg != Prefill {
		return ""
	}
	return a.Named
}

// boundReason returns why a worker came first without the strategy.
func (l Leg) boundReason() string {
	if l == Prefill {
		return "named by the strategy, with the worker that answers"
	}
	return "bound session"
}
