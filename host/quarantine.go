package host

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// longestPause is the longest pause, in first pauses. A strategy that fails whenever it is tried again comes to it.
const longestPause = 10

// slowPicks good picks make up for one that was long or ended by the clock: a strategy that is too slow in more than
// one pick of twenty is set aside, though never twice in a row.
const slowPicks = 20

// quarantine sets aside a strategy that fails again and again, or is too slow. Safe for concurrent use.
type quarantine struct {
	after   int64         // errors in a row
	pause   time.Duration // until one pick tries the strategy again; twice as long after each try in vain
	log     *slog.Logger
	lines   limiter // of errors in the log
	started time.Time
	shadow  bool // no request waits for its picks
	rejects bool // the fallback's requests are rejected

	retryAt atomic.Int64 // set aside until then, in nanoseconds since started; 0 = in service
	tries   atomic.Int64 // picks that tried the strategy again since it was set aside
	inARow  atomic.Int64 // errors since the last good answer
	slow    atomic.Int64 // slowPicks for each pick that was long or that the clock ended, less one for each good pick

	mu      sync.Mutex // guards lastErr
	lastErr string
}

// on reports whether the strategy is set aside.
func (q *quarantine) on() bool { return q.retryAt.Load() != 0 }

// admit reports whether a pick may go to the module although it is set aside: one pick in each pause may.
func (q *quarantine) admit() bool {
	until, now := q.retryAt.Load(), int64(time.Since(q.started))
	if until == 0 {
		return true
	}
	if now < until || !q.retryAt.CompareAndSwap(until, now+int64(q.wait())) {
		return false
	}
	q.tries.Add(1)
	return true
}

// wait is how long the strategy is left alone now. A try that the clock ends takes a processor from everybody for the
// whole of pick_timeout.
func (q *quarantine) wait() time.Duration {
	return q.pause * time.Duration(min(longestPause, 1<<min(q.tries.Load(), 10)))
}

// failed counts an error, and sets the strategy aside after several in a row, or when too large a share of its picks
// was slow.
func (q *quarantine) failed(why reason, err error) {
	q.keep(err)
	text := err.Error()
	if q.inARow.Load() > 0 {
		text = Brief(text) // the line before has the stack of a guest that panics
	}
	switch {
	case !q.lines.allow():
	case q.shadow:
		q.log.Warn("shadow failed; its decision is sent nowhere", "reason", reasonNames[why], "err", text)
	case q.rejects:
		q.log.Warn("strategy failed; the request gets 503 (on_failure)", "reason", reasonNames[why], "err", text)
	default:
		q.log.Warn("strategy failed; the fallback answers", "reason", reasonNames[why], "err", text)
	}
	slow := why == outOfTime && q.tooSlow()
	if n := q.inARow.Add(1); n >= q.after || slow {
		q.setAside(why, err)
	}
}

// keep notes err as the last one.
func (q *quarantine) keep(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lastErr = err.Error()
}

// last returns the text of the last error.
func (q *quarantine) last() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lastErr
}

// tookLong counts a pick of the named module that was answered and took more than limit. It ends a row of errors, but
// brings no strategy back into service.
func (q *quarantine) tookLong(name string, limit time.Duration) {
	q.inARow.Store(0)
	if !q.tooSlow() {
		return
	}
	err := fmt.Errorf("host: module %q takes more than %v in over one pick of %d; make it shorter or raise pick_timeout, "+
		"of which this is one part in %d", name, limit, slowPicks, longShare)
	q.keep(err)
	q.setAside(outOfTime, err)
}

// tooSlow counts a slow pick, and reports whether there were too many.
func (q *quarantine) tooSlow() bool {
	most := slowPicks * q.after
	if q.slow.Add(slowPicks) < most {
		return false
	}
	q.slow.Store(most)
	return true
}

// setAside keeps requests from the strategy for a pause.
func (q *quarantine) setAside(why reason, err error) {
	pause := q.wait()
	until := int64(time.Since(q.started) + pause)
	switch set := q.retryAt.Swap(until) == 0; {
	case set && q.shadow:
		q.log.Warn("shadow is set aside after errors; it counts as failed until a pick that tries it again succeeds",
			"errors", q.after, "retry_after", pause, "reason", reasonNames[why], "err", Brief(err.Error()))
	case set && q.rejects:
		q.log.Error("strategy is set aside after errors; requests get 503 (on_failure) until a pick that tries it again"+
			" succeeds", "errors", q.after, "retry_after", pause, "reason", reasonNames[why], "err", Brief(err.Error()))
	case set:
		q.log.Error("strategy is set aside after errors; the fallback answers until a pick that tries it again succeeds",
			"errors", q.after, "retry_after", pause, "reason", reasonNames[why], "err", Brief(err.Error()))
	}
}

// Brief returns the text of a module's error with only the first line of the module's own output. The output of a Go
// guest that panics includes its stack.
func Brief(text string) string {
	before, said, found := strings.Cut(text, ` (it says "`)
	if !found {
		return text
	}
	first, _, cut := strings.Cut(said, `\n`)
	if !cut {
		return text
	}
	return before + ` (it says "` + first + ` ...")`
}

// succeeded ends a row of errors, and reports whether the strategy is back in service by that.
func (q *quarantine) succeeded() (back bool) {
	if q.inARow.Load() == 0 && q.slow.Load() == 0 && q.retryAt.Load() == 0 { // nothing to write, and no cache line to take
		return false
	}
	q.inARow.Store(0)
	if n := q.slow.Load(); n > 0 {
		q.slow.CompareAndSwap(n, n-1) // never below 0: all further picks would write here
	}
	if q.retryAt.Swap(0) == 0 {
		return false
	}
	q.tries.Store(0)
	q.log.Info("strategy is back in service")
	return true
}
