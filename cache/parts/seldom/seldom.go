// Package seldom bounds how often a line is logged that clients or requests could cause thousands of times a second:
// once in a time (Line), or once for each key (Once).
//
// Two limits are of another kind and stay with their owners. kvevents logs some lines of each text, as the first few
// show what a worker does. host gives a strategy the lines that sdk promises: ten at once, and one a second.
package seldom

import (
	"sync/atomic"
	"time"
)

// Line is a line of the log. The zero value is one that was not logged yet. It is safe for concurrent use.
type Line struct{ last atomic.Int64 } // Unix time of the last one

// Due reports whether the line is to be logged now: the last was every, in whole seconds, or longer ago, or after now,
// as the clock was set back.
func (l *Line) Due(now time.Time, every time.Duration) bool {
	at, last := now.Unix(), l.last.Load()
	return (at < last || at-last >= int64(every/time.Second)) && l.last.CompareAndSwap(last, at)
}
