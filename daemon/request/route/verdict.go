package route

import (
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// Verdict is the result of a choice. Every verdict but Chosen refuses the request.
type Verdict uint8

// The verdicts.
const (
	Chosen       Verdict = iota
	Unheard              // a first health check, or the first of a group, is under way: ask again. Only for Ask.Patient
	NoWorker             // no worker is up that may have the model
	UnknownModel         // every worker's models are known, and none lists it
	Fenced               // no worker of the pool has the labels of its Fence
	Full                 // no worker that could take it has room
	Rejected             // the strategy rejects the request

	SessionSilent     // the store does not answer, and this router does not hold the session
	SessionUnknown    // nobody opened it
	SessionExpired    // its time is over
	SessionClosed     // it was closed
	SessionLost       // it ended with its worker
	SessionResting    // its worker gets no requests now
	SessionOtherModel // its worker does not list the model

	Held // the strategy has it wait for a better worker: only where Ask.Queue.Longest allows it
)

var verdicts = [...]string{"chosen", "unheard", "no_worker", "unknown_model", "fenced", "workers_full", "rejected",
	"session_silent", "session_unknown", "session_expired", "session_closed", "session_lost", "session_resting",
	"session_other_model", "held"}

// String returns the verdict's name, as tests and records show it.
func (v Verdict) String() string { return verdicts[min(int(v), len(verdicts)-1)] }

// nobody returns the verdict on a fleet that gave no rows, and Chosen if it gave some.
func nobody(s worker.Standing) Verdict {
	switch s {
	case worker.Down, worker.Starting, worker.Silent:
		return NoWorker
	case worker.Lacking:
		return UnknownModel
	case worker.Fenced:
		return Fenced
	case worker.Full:
		return Full
	}
	return Chosen
}

// alone returns the verdict on a request that one worker alone may serve.
func alone(s worker.Standing) Verdict {
	switch s {
	case worker.Ready:
		return Chosen
	case worker.Full:
		return Full
	case worker.Starting:
		return Unheard
	}
	return NoWorker
}

// refusal returns the verdict on a session that cannot be served.
func refusal(s session.Status) Verdict {
	switch s {
	case session.Found:
		return Chosen
	case session.Silent:
		return SessionSilent
	case session.Expired:
		return SessionExpired
	case session.Closed:
		return SessionClosed
	case session.Lost:
		return SessionLost
	}
	return SessionUnknown
}
