package judge

import (
	"sync/atomic"
	"time"
)

// Health is what is known of the health of the process at one address. The pool's lock guards all of it but flow.
type Health struct {
	flow atomic.Int64 // when the last byte of an answer came; 0 = none has

	checks   checks
	breaker  breaker
	failures failures
	room     headroom
	records  records
	process  process
	handover handover
	error    lastError
}

// Join makes the worker start slowly when it is first up: the others of the pool run already.
func (h *Health) Join() { h.checks.joined = true }

// Flow records that bytes of r's answer came. It needs no lock.
func (h *Health) Flow(r *Request, now time.Duration) {
	r.flow.Store(int64(now))
	h.flow.Store(int64(now))
}

// flowsSince reports whether a byte of an answer came after that time.
func (h *Health) flowsSince(t time.Duration) bool { return time.Duration(h.flow.Load()) > t }

// flows reports whether a byte of an answer came in the last seconds.
func (h *Health) flows(now time.Duration) bool {
	last := time.Duration(h.flow.Load())
	return last > 0 && now-last < flowing
}

// HasPassed reports whether the latest of this router's health checks was good.
func (h *Health) HasPassed() bool { return h.checks.late+h.checks.ill == 0 && !h.checks.closed }

// State returns the result of the health checks.
func (h *Health) State() State { return h.checks.state }

// IsUp reports whether the worker passes its health checks.
func (h *Health) IsUp() bool { return h.checks.state == Up }

// IsDead reports whether the worker is down and nothing listens at its port.
func (h *Health) IsDead() bool { return h.checks.state == Down && h.checks.closed }

// WasNeverUp reports whether no health check has passed yet.
func (h *Health) WasNeverUp() bool { return h.checks.born == 0 && !h.IsUp() }

// Fell returns when the worker fell silent or went down; 0 = it did neither.
func (h *Health) Fell() time.Duration { return h.checks.fell }

// Pass records a good health check. The worker is up after Rise.
func (h *Health) Pass(now time.Duration) { h.checks.pass(now) }

// Fail records a failed health check, and returns the state that it proves: the caller passes it to Fall.
func (h *Health) Fail(c Check, now time.Duration) State { return h.checks.fail(c, h.flows(now)) }

// Rise marks the worker up and reports whether it needs a slow start.
func (h *Health) Rise(now time.Duration) (back bool) {
	if h.checks.state != Silent {
		h.breaker.reset()
	}
	h.error.over = true
	return h.checks.rise(now)
}

// Return marks a worker up that was removed: its health only decides how long its last requests may wait.
func (h *Health) Return() {
	h.checks.state = Up
	h.checks.fell = 0
}

// Fall marks the worker silent or down.
func (h *Health) Fall(to State, now time.Duration) { h.checks.fall(to, now) }

// Forget drops what is known of the worker's process: it is dead or a new one.
func (h *Health) Forget() {
	h.breaker.reset()
	h.failures = failures{}
	h.room = headroom{}
	h.records = records{}
	h.handover = handover{}
}

// Restart records that the worker has a new process although no health check found it down.
func (h *Health) Restart(now time.Duration) {
	h.Forget()
	h.checks.born = now
}

// ReadProcess records the start time on a page of metrics, 0 if the page has none.
func (h *Health) ReadProcess(began float64, now time.Duration) ProcessTurn {
	h.process.at = now
	return h.process.read(began)
}

// Process returns the start time of the process by its metrics, in seconds since 1970; 0 = not known.
func (h *Health) Process() float64 { return h.process.began }

// ExpectProcess sets the start time that the process had before this router started, unless a page has told it.
func (h *Health) ExpectProcess(began float64) {
	if h.process.began == 0 {
		h.process.began = began
	}
}

// Survived reports whether the process lived on after that time, as health checks and metrics since then show. Where
// several processes stand behind the URL they show nothing: another one answers them.
func (h *Health) Survived(since time.Duration) bool {
	return !h.process.many && h.checks.hears(since) && h.process.seen(since)
}

// Settled reports whether it is known what became of the process that was there at that time.
func (h *Health) Settled(since time.Duration) bool {
	return h.checks.settled(since) && (!h.checks.hears(since) || h.process.seen(since))
}

// Breaker returns which requests the breaker lets through now.
func (h *Health) Breaker(now time.Duration) BreakerState { return h.breaker.state(now) }

// Lets reports whether the breaker lets a request through now.
func (h *Health) Lets(now time.Duration) bool { return h.breaker.lets(now) }

// IsSetAside reports whether the breaker is not closed.
func (h *Health) IsSetAside() bool { return h.breaker.cause != NoCause }

// IsGoingAway reports whether the breaker is not closed because answers show that the worker shuts down.
func (h *Health) IsGoingAway() bool { return h.breaker.cause == GoingAway }

// Why returns why the worker is set aside, and BackOff for how long it was.
func (h *Health) Why() string { return h.breaker.why }

// BackOff returns the time for which the breaker opened last.
func (h *Health) BackOff() time.Duration { return h.breaker.back }

// HasProven reports whether a trial has streamed for long enough to count as good.
func (h *Health) HasProven(now time.Duration) bool { return h.breaker.hasProven(now) }

// IsTrial reports whether r is the trial that decides about the breaker.
func (h *Health) IsTrial(r *Request) bool { return h.breaker.trial == r }

// DropTrial ends the trial if r is it, and r shows nothing.
func (h *Health) DropTrial(r *Request) { h.breaker.ended(r) }

// Sent records a request that is sent to the worker.
func (h *Health) Sent(r *Request) {
	h.breaker.sent(r)
	h.records[r.Class].sent(r.Sent)
}

// Refuses reports whether other workers are to get requests of the class now, because the worker refused some of late.
func (h *Health) Refuses(class uint8, now time.Duration) bool { return h.records[class].holds(now) }

// HasRoom reports whether a worker that has so many requests takes another, as far as its refusals show.
func (h *Health) HasRoom(has int, now time.Duration) bool { return h.room.takes(has, now) }

// IsDoubtful reports whether a refusal of the class that comes now may be the worker's fault.
func (h *Health) IsDoubtful(class uint8) bool {
	return h.breaker.cause == Refusing || h.records[class].doubtful()
}

// Failures returns the share of failures among the latest answers, and whether there was an answer.
func (h *Health) Failures() (share float64, any bool) { return h.failures.share, h.failures.n > 0 }

// FailsAlone reports whether a failure is blamed on this worker and not on the request. others is the sum of the shares
// of n other workers.
func (h *Health) FailsAlone(others float64, n int) bool { return h.failures.own(others, n) }

// SetAside opens the breaker because of the request of that number. first is the first back-off from failures. A worker
// that was going away, and whose trial failed in another way, is no better for that: it is still going away.
// SetAside returns the cause that is in force, and whether it was in force before.
func (h *Health) SetAside(v *Verdict, by uint64, first, now time.Duration) (cause Cause, again bool) {
	cause = v.Cause
	if h.breaker.cause == GoingAway { // the trial failed in another way
		cause = GoingAway
	}
	again = h.breaker.cause == cause
	h.breaker.open(cause, v.Why, by, now, first)
	return cause, again
}

// TryOwn has the next trial of a worker that failed be a request of the router's own, or with false a client's.
func (h *Health) TryOwn(own bool) { h.breaker.own = own && h.breaker.cause == Failing }

// OwnTrialDue reports whether the worker is to get a request of the router's own now.
func (h *Health) OwnTrialDue(now time.Duration) bool { return h.breaker.own && now >= h.breaker.until }

// WorksAgain reports whether the engine has done something since such a trial was due.
func (h *Health) WorksAgain(g *Engine) bool { return h.WorksOn(g, h.breaker.until) }

// Close closes the breaker.
func (h *Health) Close() { h.breaker.shut() }

// NoteError records an error.
func (h *Health) NoteError(text string, at time.Time, by Source) {
	h.error.note(text, at, by, h.checks.state == Down || h.checks.state == Silent)
}

// NoteSuccess records that a source of errors succeeds now.
func (h *Health) NoteSuccess(by Source) { h.error.good(by) }

// LastError returns the latest error, when it came, and whether its source has succeeded since, or the worker came up.
func (h *Health) LastError() (text string, at time.Time, over bool) {
	return h.error.text, h.error.at, h.error.over
}
