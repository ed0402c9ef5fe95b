package judge

import "time"

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

// opening is why a breaker is open, and for how long.
type opening struct {
	cause Cause
	why   string
	back  time.Duration // the back-off in force, kept after closing for the next one; 0 = the first
}

// breaker keeps requests from a worker that is up but fails them. It is closed while cause is NoCause, open until a
// time, and half-open from then on. Half-open it lets one trial request at a time through, whose end decides.
type breaker struct {
	opening
	until   time.Duration
	trial   *Request // under way; nil = none
	own     bool     // the router tries the worker by a request of its own, not by a client's
	by      uint64   // the number of the request that opened it
	refused uint64   // the number of the last trial that was refused
	before  opening  // what the request by found
	had     tallies  // with its sign
	tallies tallies
}

const (
	maxBackOff = 30 * time.Second // for failures and refusals
	firstLeave = 5 * time.Second  // until a leaving worker is tried: a paused engine comes back without a restart
	maxLeave   = time.Minute
	proven     = time.Second // of a flowing answer, after which a trial counts as good
)

func (b *breaker) state(now time.Duration) BreakerState {
	switch {
	case b.cause == NoCause:
		return Closed
	case now < b.until:
		return Open
	}
	return HalfOpen
}

// lets reports whether a request may go to the worker now.
func (b *breaker) lets(now time.Duration) bool {
	return b.cause == NoCause || now >= b.until && b.trial == nil && !b.own
}

// sent makes r the trial if the breaker is half-open.
func (b *breaker) sent(r *Request) {
	if b.cause != NoCause && b.lets(r.Sent) {
		b.trial = r
	}
}

// ended reports whether r was the trial. If so, the trial is over.
func (b *breaker) ended(r *Request) bool {
	if b.trial != r {
		return false
	}
	b.trial = nil
	return true
}

// hasProven reports whether the trial has streamed for long enough to count as good, so that the breaker need not wait
// for the end of a long stream.
func (b *breaker) hasProven(now time.Duration) bool {
	return b.trial != nil && b.trial.First > 0 && now-b.trial.First >= proven
}

// good counts a good answer to a request that was sent at a time. settled is true when the worker's slow start is over:
// then the next back-off is as short as the first.
func (b *breaker) good(sent time.Duration, settled bool) {
	b.tallies.good(sent)
	b.had.good(sent)
	if b.cause == NoCause && settled {
		b.back = 0
	}
}

// count counts n signs of a cause and reports whether the breaker must open for them. tried is true for the trial's
// answer.
func (b *breaker) count(p *proof, n int, now time.Duration, tried bool) bool {
	t := &b.tallies[p.cause]
	t.add(n, now)
	return tried || b.cause == NoCause && t.n >= p.requests
}

// open opens the breaker because of the request of that number, for a time that doubles each time. first is the first
// back-off from failures.
func (b *breaker) open(c Cause, why string, by uint64, now, first time.Duration) {
	before, again, most := b.opening, b.cause != NoCause, maxBackOff
	if c == GoingAway {
		first, most = firstLeave, maxLeave
		if !again {
			b.back = 0
		}
	}
	*b = breaker{opening: opening{cause: c, why: why, back: min(most, max(first, 2*b.back))}, by: by,
		before: before, had: b.tallies}
	b.until = now + b.back
}

// postpone puts the next trial off for as long as this one waited, because its client left before it had a byte. Else
// one client of less patience than shows a hang would be each trial, and never be served.
func (b *breaker) postpone(waited, now time.Duration) { b.until = now + min(waited, b.back) }

// takeBack undoes the opening by a request that turned out to be at fault itself. What others have shown stays. A trial
// has shown nothing then, and the next request is one.
func (b *breaker) takeBack(c Cause, now time.Duration) {
	*b = breaker{opening: b.before, until: now, tallies: b.had}
	b.tallies[c].takeBack()
}

// shut closes the breaker after a good trial. The length of the back-off stays for the next time.
func (b *breaker) shut() { *b = breaker{opening: opening{back: b.back}} }

// reset drops all state: the worker died or is a new process.
func (b *breaker) reset() { *b = breaker{} }
