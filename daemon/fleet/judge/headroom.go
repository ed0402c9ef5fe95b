package judge

import "time"

// headroom is how many requests a worker takes, as its refusals show (Busy, Late). A worker that answers 503 because
// its queue is full is alive. To set it aside would halve a fleet that is at its limit, and to go on sending would give
// it the requests that others have room for, as nobody refuses faster than a full worker. So it is left alone while it
// has as many requests as when it refused one. The bound grows by half a second, so that a worker which takes more
// again is found soon, and ends after a while.
type headroom struct {
	full int           // requests that it had when it last refused one
	at   time.Duration // when that was; 0 = never
}

const (
	roomGrowth = 0.5 // of the bound and one more, a second
	roomLasts  = 30 * time.Second
)

// refused records that the worker had so many requests when it refused another.
func (r *headroom) refused(has int, now time.Duration) { *r = headroom{full: max(0, has), at: now} }

// takes reports whether a worker that has so many requests takes another, as far as its refusals show.
//
// Worked: a worker that refuses its 5th request takes one if it has fewer than 4, after 0.4 s if it has fewer than 5.
func (r *headroom) takes(has int, now time.Duration) bool {
	if r.at == 0 || now >= r.at+roomLasts {
		return true
	}
	return has < r.full+int(roomGrowth*(now-r.at).Seconds()*float64(r.full+1))
}
