package tier

import (
	"sync"
	"time"
)

// A Redis that was flushed, or that came back without its file, answers "nothing" for keys that other routers still
// hold. It must not be believed before they have put back what they hold. So a random mark stands in Redis, without
// expiry: who finds another one there, or none, knows that Redis has forgotten. From then on:
//
//  1. scripts of a router that knows the old mark answer kindForgot in place of kindNothing: Redis is taken to be
//     silent on what it does not have;
//  2. at its next pulse each router puts back all that it holds, where nothing stands;
//  3. after relearn the router takes the new mark for its own, and "nothing" is believed again.
//
// A router that has just started has no mark to compare: it takes the one that it finds, or makes one.
//
// A Redis that comes back after it was lost is doubted in the same way, as long, though it has forgotten nothing: other
// routers may not have sent it yet what they did meanwhile.
const (
	epochKey = "epoch"
	// relearn is for how long a Redis that has forgotten is not believed: twenty pulses of the healer, for routers that
	// are slow to see it.
	relearn = 2 * time.Second
	// doubted is a mark that no Redis has. A script that gets it treats Redis as one that has forgotten.
	doubted = "?"
)

// epoch is the mark that Redis is taken to have.
type epoch struct {
	mu    sync.Mutex // guards what follows
	mark  string     // "" = none was seen yet
	since time.Time  // when another mark was found; zero = none was
	until time.Time  // Redis is doubted until then
}

// forRequest returns the mark for a script of a request.
func (e *epoch) forRequest() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Now().Before(e.until) {
		return doubted
	}
	return e.mark
}

// forDebt returns the mark for a script that pays a debt. Such a script need not wait for other routers.
func (e *epoch) forDebt() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mark
}

// doubtFrom begins the time in which Redis is doubted. It is called when Redis is back.
func (e *epoch) doubtFrom(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.until = now.Add(relearn)
}

// compare compares the mark in Redis with the known one. lost is true if Redis has forgotten and this call is the first
// to find that.
func (e *epoch) compare(mark string, now time.Time) (lost bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case mark == e.mark:
		e.since = time.Time{}
	case e.mark == "", !e.since.IsZero() && now.Sub(e.since) >= relearn:
		e.mark = mark
		e.since = time.Time{}
	case e.since.IsZero():
		e.since = now
		return true
	}
	return false
}

// restoreAgain makes the next pulse put all back once more.
func (e *epoch) restoreAgain() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.since = time.Time{}
}
