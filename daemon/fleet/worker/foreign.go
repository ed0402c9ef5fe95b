package worker

import "time"

// Foreign is a request that another router has sent to a worker of the pool, until it ends. It counts like the pool's
// own requests: in flight, in the queue, in the offered work and against MaxInFlight. It changes neither the worker's
// learnt speed nor its health, since this router has not seen its answer. Its methods may be called after the worker
// was removed.
type Foreign struct {
	pool    *Pool
	worker  *Worker
	request request
}

// Worker returns the worker to which the request was sent.
func (f *Foreign) Worker() *Worker { return f.worker }

// FirstByte records the first byte of the answer.
func (f *Foreign) FirstByte(at time.Time) {
	p, w, r := f.pool, f.worker, &f.request
	now := p.fleet.clock(at)
	p.mu.Lock()
	defer p.unlockWithRoom()
	if !r.Ended {
		w.queue.passed(r, now)
		w.engine.Moved(now)
		p.fleet.moved(w, now)
	}
}

// End counts the request down. Only the first call does anything.
func (f *Foreign) End() {
	p, w, r := f.pool, f.worker, &f.request
	p.mu.Lock()
	defer p.unlockWithRoom()
	if r.Ended {
		return
	}
	r.Ended = true
	w.endForeign(r)
	p.fleet.moved(w, p.fleet.rates.Aged())
}

func (w *Worker) endForeign(r *request) {
	w.queue.remove(r)
	w.theirs.n--
	w.theirs.tokens -= r.tokens
	w.endpoint.theirs--
}
