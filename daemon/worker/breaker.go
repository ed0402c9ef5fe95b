package worker

// BreakerState states which requests the breaker of a worker lets through. The metric has the same numbers.
type BreakerState uint8

// The values of BreakerState.
const (
	Closed   BreakerState = iota // every request
	HalfOpen                     // one trial request at a time
	Open                         // none
)

// String returns the word for people and their scripts.
func (s BreakerState) String() string { return [...]string{"closed", "half-open", "open"}[s] }

// cause is the reason for which a breaker is open.
type cause uint8

const (
	none    cause = iota
	failing       // failed answers in a row
	leaving       // an answer showed that the worker shuts down
)

// breaker keeps requests from a worker that is up but fails them. It is closed while cause is none, open until a time,
// and half-open from then on. Half-open it lets one trial request at a time through, whose end decides.
type breaker struct {
	cause  cause
	why    string
	until  float64
	back   float64  // the back-off in force, kept after closing for the next one; 0 = the first
	trial  *request // under way; nil = none
	streak int      // failed answers in a row
}

const (
	maxStreak  = 5    // failed answers in a row that open the breaker
	maxBackOff = 30.0 // seconds, for failures
	firstLeave = 5.0  // seconds until a leaving worker is tried: a paused engine comes back without a restart
	maxLeave   = 60.0
	proven     = 1.0 // seconds of a flowing answer after which a trial counts as good
)

func (b *breaker) state(now float64) BreakerState {
	switch {
	case b.cause == none:
		return Closed
	case now < b.until:
		return Open
	}
	return HalfOpen
}

// standing returns the worker's standing while the breaker is not closed.
func (b *breaker) standing() Standing {
	if b.cause == leaving {
		return Draining
	}
	return Ejected
}

// lets reports whether a request may go to the worker now.
func (b *breaker) lets(now float64) bool {
	return b.cause == none || now >= b.until && b.trial == nil
}

// sent makes r the trial if the breaker is half-open.
func (b *breaker) sent(r *request) {
	if b.cause != none && b.lets(r.at) {
		b.trial = r
	}
}

// ended reports whether r was the trial. If so, the trial is over.
func (b *breaker) ended(r *request) bool {
	if b.trial != r {
		return false
	}
	b.trial = nil
	return true
}

// hasProven reports whether the trial has streamed for long enough to count as good, so that the breaker need not wait
// for the end of a long stream.
func (b *breaker) hasProven(now float64) bool {
	return b.trial != nil && b.trial.first > 0 && now-b.trial.first >= proven
}

// good counts a good answer. settled is true when the worker's slow start is over: then the next back-off is as short
// as the first.
func (b *breaker) good(settled bool) {
	b.streak = 0
	if b.cause == none && settled {
		b.back = 0
	}
}

// fails counts an answer as n failed ones and reports whether the breaker must open for it. tried is true for the
// trial's answer.
func (b *breaker) fails(n int, tried bool) bool {
	b.streak += n
	if tried {
		return true
	}
	return b.cause == none && b.streak >= maxStreak
}

// eject opens the breaker for failures, for a time that doubles from first on.
func (b *breaker) eject(why string, now, first float64) {
	b.back = min(maxBackOff, max(first, 2*b.back))
	b.cause = failing
	b.why = why
	b.until = now + b.back
	b.streak = 0
}

// leave opens the breaker of a worker whose answer showed that it shuts down.
func (b *breaker) leave(why string, now float64) {
	if b.cause == leaving {
		b.back = min(maxLeave, 2*b.back)
	} else {
		b.back = firstLeave
	}
	b.cause = leaving
	b.why = why
	b.until = now + b.back
	b.trial = nil
}

// shut closes the breaker after a good trial. The length of the back-off stays for the next time.
func (b *breaker) shut() { b.cause, b.trial, b.streak = none, nil, 0 }

// reset drops all state: the worker died or is a new process.
func (b *breaker) reset() { *b = breaker{} }
