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
	caller  string        // the key whose failures it counts, where rejects is set; "" = all keys, or requests without one
	after   int64         // errors in a row
	pause   time.Duration // until one pick tries the strategy again; twice as long after each try in vain
	log     *slog.Logger
	lines   *limiter                // of errors in the log
	lastErr *atomic.Pointer[string] // nil in it = there was none
	started time.Time
	shadow  bool // no request waits for its picks
	rejects bool // the fallback's requests are rejected

	retryAt atomic.Int64 // set aside until then, in nanoseconds since started; 0 = in service
	tries   atomic.Int64 // picks that tried the strategy again since it was set aside
	inARow  atomic.Int64 // errors since the last good answer
	slow    atomic.Int64 // slowPicks for each pick that was long or that the clock ended, less one for each good pick
}

// maxCallers bounds the callers whose failures are counted apart: those of a large configuration.
const maxCallers = 4096

// quarantines has a quarantine for each caller of a strategy whose fallback rejects. Setting such a strategy aside for
// all would let one client, whose requests make it fail, lock out the others. Its zero value is ready, and it is safe
// for concurrent use.
type quarantines struct {
	mu sync.Mutex // guards of
	of map[string]*quarantine
}

// caller returns the quarantine of a caller, made as the one of all.
func (c *quarantines) caller(name string, all *quarantine) *quarantine {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.of[name]
	if q == nil {
		if c.of == nil || len(c.of) >= maxCallers {
			c.of = map[string]*quarantine{}
		}
		q = &quarantine{caller: strings.Clone(name), after: all.after, pause: all.pause, log: all.log, lines: all.lines,
			lastErr: all.lastErr, started: all.started, shadow: all.shadow, rejects: all.rejects}
		c.of[q.caller] = q
	}
	return q
}

// on reports whether the strategy is set aside for some caller.
func (c *quarantines) on() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.of {
		if q.on() {
			return true
		}
	}
	return false
}

// quarantineOf returns the quarantine that counts the failures on a request.
func (s *Strategy) quarantineOf(f *Frame) *quarantine {
	if !s.rejects {
		return &s.quarantine
	}
	return s.callers.caller(f.Caller, &s.quarantine)
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

// failed counts a pick that failed, and sets the strategy aside after several in a row, or when too large a share of
// its picks was slow.
func (q *quarantine) failed(why reason, err error, filters bool) {
	switch {
	case q.shadow:
		q.warn("shadow failed; its decision is sent nowhere", why, err)
	case q.rejects:
		q.warn("strategy failed; the request gets 503 (on_failure)", why, err)
	case filters:
		q.warn("filter failed; the request may use all workers (on_failure)", why, err)
	default:
		q.warn("strategy failed; the fallback answers", why, err)
	}
	q.count(why, err)
}

// warn logs what follows from a failed call of the module.
func (q *quarantine) warn(line string, why reason, err error) {
	text := err.Error()
	if q.inARow.Load() > 0 {
		text = Brief(text) // the line before has the stack of a guest that panics
	}
	if q.lines.allow() {
		q.log.Warn(line, q.to("reason", reasonNames[why], "err", text)...)
	}
}

// count counts a failed call.
func (q *quarantine) count(why reason, err error) {
	q.keep(err)
	slow := why == outOfTime && q.tooSlow()
	if n := q.inARow.Add(1); n >= q.after || slow {
		q.setAside(why, err)
	}
}

// to adds the caller to a line's attributes, if the quarantine is that of one.
func (q *quarantine) to(attributes ...any) []any {
	if q.caller == "" {
		return attributes
	}
	return append(attributes, "caller", q.caller)
}

// keep notes err as the last one.
func (q *quarantine) keep(err error) {
	text := err.Error()
	q.lastErr.Store(&text)
}

// last returns the text of the last error, "" if there was none.
func (q *quarantine) last() string {
	if q.lastErr == nil { // of a strategy without a module
		return ""
	}
	if text := q.lastErr.Load(); text != nil {
		return *text
	}
	return ""
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
		q.log.Error("strategy is set aside for a caller after errors on its requests; they get 503 (on_failure) until a "+
			"pick that tries it again succeeds, and those of other callers are served", q.to("errors", q.after,
			"retry_after", pause, "reason", reasonNames[why], "err", Brief(err.Error()))...)
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
