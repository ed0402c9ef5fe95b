package worker

// limited reports whether anything bounds what a worker has at a time.
func (s *settings) limited() bool { return s.MaxInFlight > 0 || s.MaxWait > 0 || s.MaxKVUse > 0 }

// full reports whether w has no room for another request.
func (f *fleet) full(w *Worker, now float64) bool {
	return f.packed(w, 0, &Beginning{}) || f.backlogged(w, now)
}

// packed reports whether w may have no further request, or has no KV for one whose prompt begins with b and which takes
// so many tokens together with that. It goes by what the routers have sent there, which no silence of the worker's
// metrics can change. A worker without a request takes any: one that is larger than the bound could go nowhere else
// either.
func (f *fleet) packed(w *Worker, tokens int, b *Beginning) bool {
	c := f.conf
	if c.MaxInFlight > 0 && w.endpoint.inFlight+w.endpoint.theirs >= c.MaxInFlight {
		return true
	}
	most := int(c.MaxKVUse * float64(w.capacity.inForce))
	if most <= 0 || w.flight.n+w.theirs.n == 0 || int(w.heldTokens())+tokens <= most {
		return false
	}
	w.kv.countShared(&w.flight)
	return int(w.heldTokens())+max(0, tokens-w.kv.shared(b)) > most
}

// backlogged reports whether more prefill is believed queued at w than MaxWait.
func (f *fleet) backlogged(w *Worker, now float64) bool {
	if f.conf.MaxWait <= 0 || w.flight.n+w.theirs.n == 0 {
		return false
	}
	m := f.speed.slowness * w.speed.times()
	w.queue.expire(now, m)
	return w.queue.wait(now, m) > f.conf.MaxWait
}

// Room is told that there may be room where there was none: a request ended or had its first byte, here or at another
// router, a worker came or may take requests again, or a bound changed. The pool calls it without its lock.
type Room interface{ MayHaveCome() }

type unasked struct{}

func (unasked) MayHaveCome() {}
