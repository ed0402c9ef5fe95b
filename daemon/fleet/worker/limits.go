package worker

// limits bound what a worker has at a time; 0 = no bound. They depend on the requests that the routers have sent
// there, and not on the worker's metrics, which may be missing.
type limits struct {
	requests int     // at its endpoint
	wait     float64 // seconds of prefill that is queued
	kv       float64 // share of its KV tokens that requests in flight hold
}

// any reports whether there is a bound.
func (l *limits) any() bool { return l.requests > 0 || l.wait > 0 || l.kv > 0 }

// RoomHearer is called when a worker may have room again: a request ended or had its first byte, here or at another
// router, a worker was added or may take requests again, or a limit changed. The pool calls it without its lock.
type RoomHearer interface{ MayHaveCome() }
