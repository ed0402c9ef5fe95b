package tier

import (
	"fmt"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/parts/goredis"
)

const (
	refusesFor  = 2 * time.Second  // of refusals that make a state: an outage is found out sooner
	refusesTill = 10 * time.Second // after the last one
)

// refusals knows whether a Redis refuses a part of what a router asks of it, and takes the rest: a user may lack the
// right to scripts, or a key may be in other use. That is no outage. Its zero value is ready.
type refusals struct {
	mu          sync.Mutex // guards all below
	first, last time.Time  // of those without a longer pause
	why         string
	told        bool // a line was logged since first
}

// note takes an error of a Redis that is not lost. It reports whether a line is due, and returns its remedy.
func (r *refusals) note(err error, now time.Time) (remedy string, due bool) {
	if !isReply(err) {
		return "", false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.last) > refusesTill {
		r.first, r.told = now, false
	}
	r.last = now
	remedy = goredis.Remedy(err)
	r.why = fmt.Sprintf("%v; %s", err, remedy)
	due = now.Sub(r.first) >= refusesFor && !r.told
	r.told = r.told || due
	return remedy, due
}

// state returns what is refused, and what to do; "" if nothing is.
func (r *refusals) state(now time.Time) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.last) > refusesTill || r.last.Sub(r.first) < refusesFor {
		return ""
	}
	return r.why
}
