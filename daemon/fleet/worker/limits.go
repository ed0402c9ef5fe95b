package worker

// limits bound what a worker has at a time; 0 = no bound. They go by what the routers have sent there, which no silence
// of the worker's metrics can change.
type limits struct {
	requests int     // at its endpoint
	wait     float64 // seconds of prefill that is queued
	kv       float64 // share of its KV tokens that requests in flight hold
}

// any reports whether there is a bound.
func (l *limits) any() bool { return l.requests > 0 || l.wait > 0 || l.kv > 0 }

// RoomHearer is told that there may be room where there was none: a request ended or had its first byte, here or at
// another router, a worker came or may take requests again, or a bound changed. The pool calls it without its lock.
type RoomHearer interface{ MayHaveCome() }
