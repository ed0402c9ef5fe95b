package worker

// limited reports whether anything bounds what a worker has at a time.
func (s *settings) limited() bool { return s.MaxInFlight > 0 || s.MaxWait > 0 || s.MaxKVUse > 0 }

// full reports whether w has no room for one more request that takes so many tokens of KV. It goes by what the routers
// have sent there, which no silence of the worker's metrics can change. A worker without a request takes any: one that
// is larger than the bound could go nowhere else either.
func (f *fleet) full(w *Worker, tokens int, now float64) bool {
	c := f.conf
	if c.MaxInFlight > 0 && w.endpoint.inFlight+w.endpoint.theirs >= c.MaxInFlight {
		return true
	}
	if w.flight.n+w.theirs.n == 0 {
		return false
	}
	if c.MaxWait > 0 {
		m := f.speed.slowness * w.speed.times()
		w.queue.expire(now, m)
		if w.queue.wait(now, m) > c.MaxWait {
			return true
		}
	}
	size := w.capacity.inForce
	return c.MaxKVUse > 0 && size > 0 && float64(w.held()+tokens) > c.MaxKVUse*float64(size)
}

// fullFor is full for a request whose prompt begins with b, and which takes so many tokens together with that.
func (f *fleet) fullFor(w *Worker, tokens int, b *Beginning, now float64) bool {
	if f.conf.MaxKVUse > 0 && tokens > 0 {
		tokens -= w.kv.shared(b)
	}
	return f.full(w, tokens, now)
}

// held returns the tokens of KV that requests in flight hold.
func (w *Worker) held() int { return max(0, w.kv.tokens+w.theirs.tokens) }

// Room is told that there may be room where there was none: a request ended or had its first byte, here or at another
// router, a worker came or may take requests again, or a bound changed. The pool calls it without its lock.
type Room interface{ MayHaveCome() }

type unasked struct{}

func (unasked) MayHaveCome() {}
