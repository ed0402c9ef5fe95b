package measure

import (
	"math"
	"time"
)

// Places measures how soon a place at a worker becomes free, for clients that found none.
type Places struct {
	held    int           // requests in flight
	began   float64       // sum of the times at which they were sent, in seconds
	talking int           // of them, those whose answers are generated
	brief   bool          // the request sent last was not one of these
	lasts   Mean          // seconds that answers lasted
	aged    time.Duration // when recent last decayed
	recent  float64       // places freed, each counted e^(-age/10 s)
	due     time.Duration // when the last place that was promised to a client becomes free
	told    int           // clients
	empty   time.Duration // when a client was first refused since a request was sent; 0 = none was
}

const (
	lately = 10.0 // seconds over which freed places are counted: a pool's answers change their kind within a minute

	// The shortest Retry-After, in seconds. Agents try five times at the interval of Retry-After, and then end their
	// session: with 1 s they did so after 5 s, which is less than the time of one of their answers.
	leastTalk = 3.0
	least     = 1.0

	// The longest Retry-After before the spread, which adds up to a third: 60 s in all. SDKs take a larger number for no
	// number at all.
	mostTold = 45.0
	spread   = 1.0 / 3
	golden   = .6180339887498949 // its multiples, without their whole part, are spread evenly however many there are
	outage   = .25               // of the time without any answer: a long outage is likely to last longer
)

// Begin counts a request that is sent. talks is true if its answer consists of generated tokens.
func (f *Places) Begin(sent time.Duration, talks bool) {
	f.held++
	f.began += sent.Seconds()
	if talks {
		f.talking++
	}
	f.brief = !talks
	f.empty = 0
}

// End counts a request that has ended. good is false if its worker refused it or broke it off; such an answer does
// not show how long answers last.
func (f *Places) End(sent time.Duration, talks, good bool, now time.Duration) {
	f.held--
	f.began -= sent.Seconds()
	if f.held == 0 {
		f.began = 0 // else errors of rounding add up
	}
	if talks {
		f.talking--
	}
	if !good {
		return
	}
	f.lasts.Add((now - sent).Seconds())
	f.recent = f.late(now) + 1
	f.aged = now
}

// late returns recent as of now.
func (f *Places) late(now time.Duration) float64 {
	return f.recent * math.Exp((f.aged-now).Seconds()/lately)
}

// Wait returns in how many seconds a client is to come back that found no place. serves is false if no worker is up.
//
// The next place is free after the time that answers last, divided by the places held. The requests in flight may
// last longer than those that have ended, and where one of two kinds ends soon, the places freed of late say more.
// Each client gets the time of the next place, since only one client can get each place. No client gets more than the
// time of an answer: by then every place has been free once.
func (f *Places) Wait(now time.Duration, serves bool) float64 {
	floor := leastTalk
	if f.talking == 0 && f.brief {
		floor = least
	}
	if f.empty == 0 {
		f.empty = now
	}
	if f.held == 0 || !serves {
		return min(mostTold, max(floor, outage*(now-f.empty).Seconds()))
	}
	lasts := max(f.lasts.Value, now.Seconds()-f.began/float64(f.held))
	next := lasts / float64(f.held)
	if n := f.late(now); n > 0 {
		next = min(next, lately/n)
	}
	due := min(max(0, (f.due-now).Seconds())+next, mostTold, lasts)
	f.due = now + time.Duration(due*float64(time.Second))
	return max(floor, due)
}

// Whole rounds a wait to whole seconds, and spreads the waits of clients that would get the same one.
func (f *Places) Whole(wait float64) int {
	f.told++
	_, part := math.Modf(float64(f.told) * golden)
	return int(wait + part*max(2, wait*spread))
}
