package exchange

import (
	"context"
	"strconv"
	"time"

	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/request/waiting"
)

// waitingBytes is what a request that waits holds beside its body: goroutine, header and what the front keeps.
const waitingBytes = 16 << 10

// queues reports whether a request of that verdict waits, if its pool has a queue. One that could be sent waits too
// while others do: it would take the place that one of them waits for.
func (r *request) queues(v route.Verdict) bool {
	switch q := r.pool.Queue; {
	case q == nil:
		return false
	case v == route.Chosen:
		return q.Depth() > 0
	}
	return r.patient(v)
}

// patient reports whether a verdict is one that time may change.
func (r *request) patient(v route.Verdict) bool {
	return v == route.Full || v == route.NoWorker && r.pool.WaitEmpty
}

// choosing asks the pool for a choice. A model that the pool names and no worker has is one whose workers are away, and
// not a client's mistake: somebody is to be asked for one.
func (r *request) choosing(ask *route.Ask) route.Verdict {
	return r.missing(r.pool.Choose(&r.choice, ask))
}

func (r *request) missing(v route.Verdict) route.Verdict {
	if v == route.UnknownModel && r.pool.Patterns.Names(r.read.req.Model) {
		v = route.NoWorker
	}
	if v == route.NoWorker && r.pool.Waker != nil {
		r.pool.Waker.Wake()
	}
	return v
}

// wait has the request wait in its pool's queue and choose again whenever it has the turn, until the verdict is one
// that time does not change. With Chosen it keeps the turn: nobody else may take the place that it has found. A fault
// ends the wait.
func (r *request) wait(ctx context.Context, ask *route.Ask, v route.Verdict) (route.Verdict, *Fault) {
	p, f := r.enter(ask, v)
	if f != nil || v == route.Chosen && p.AtOnce() {
		return v, f
	}
	ask.Patient = false
	for {
		r.choice.Release()
		news := p.Await(ctx)
		ask.At = time.Now()
		found := r.choosing(ask)
		switch {
		case news != waiting.Turn: // the choice is for the record alone
			return v, r.ended(news)
		case !r.patient(found):
			return found, nil
		}
		v = found
		p.Blocked(v == route.NoWorker, ask.At)
	}
}

// enter takes a place in the queue, or says why there is none.
func (r *request) enter(ask *route.Ask, v route.Verdict) (*waiting.Place, *Fault) {
	q, now := r.pool.Queue, time.Now()
	r.place = nil
	w := r.choice.Weigh()
	p := &waiting.Place{}
	p.Lane, p.Cost, p.Entered = w.Lane, w.Prefill, r.arrived
	p.Class, p.Key, p.Weight, p.Flow = r.priority(), r.in.Caller.Name, r.in.Caller.Weight, r.flow(ask)
	p.Bytes = waitingBytes
	if r.in.Kept == nil { // else a file has it
		p.Bytes += int64(cap(r.in.Body))
	}
	if r.in.Seen.Queued == nil {
		r.in.Seen.Queued = &route.Queued{Priority: p.Class, Behind: q.Before(p)}
	}
	if due := r.in.firstTokenBy(r.arrived); !due.IsZero() {
		p.Deadline = due.Add(-inSeconds(w.Prefill))
		if p.Deadline.Before(now.Add(q.Predict(p) + inSeconds(w.Queued))) {
			return nil, r.dropped(waiting.Overdue)
		}
	}
	if !q.Enter(p, v == route.NoWorker, now) {
		return nil, r.dropped(waiting.Full)
	}
	r.place = p
	return p, nil
}

// ended returns the fault of a wait that gave no turn.
func (r *request) ended(n waiting.News) *Fault {
	if n == waiting.Gone {
		r.noteWait("client_gone")
		return &FaultGone
	}
	return r.dropped(n)
}

// dropped counts that the queue drops the request, and returns the answer.
func (r *request) dropped(n waiting.News) *Fault {
	f := map[waiting.News]*Fault{waiting.Full: &FaultQueueFull, waiting.Late: &FaultWaited, waiting.Empty: &FaultNoWorker,
		waiting.Overdue: &FaultOverdue}[n]
	r.noteWait(f.Dropped)
	return f
}

// noteWait counts the end of a wait, and records it.
func (r *request) noteWait(dropped string) {
	took := time.Duration(0)
	if r.place != nil {
		took = r.place.Waited(time.Now())
	}
	seen := &r.in.Seen
	q := *seen.Queued // who has the one before may read it
	q.Waited += took
	seen.Queued = &q
	r.journal.meter.Waited(seen, Waited{Took: took, Dropped: dropped})
}

// hasWorker ends the request's wait: it has a worker's place.
func (r *request) hasWorker(at time.Time) {
	if r.place != nil && r.place.Waits() {
		r.place.Served(at)
		r.noteWait("")
		r.place = nil
	}
}

// leaveQueue gives back the request's place in the queue, if it has one.
func (r *request) leaveQueue() {
	if r.place != nil {
		r.place.Leave(time.Now())
	}
}

// waitAgain has a request wait whose order has come to its end, as the workers that have not had it are full. It
// returns true when the choice has a worker again.
func (e *Exchange) waitAgain(ctx context.Context) bool {
	if e.pool.Queue == nil {
		return false
	}
	now := time.Now()
	v := e.missing(e.choice.Lacks(now))
	if v != route.Chosen && !e.patient(v) {
		return false
	}
	for {
		if e.place == nil || !e.place.Waits() {
			ask := e.choice.Asked()
			if _, f := e.enter(&ask, v); f != nil {
				return e.giveUpFor(f)
			}
		} else {
			e.place.Blocked(v == route.NoWorker, now)
		}
		if news := e.place.Await(ctx); news != waiting.Turn {
			return e.giveUpFor(e.ended(news))
		}
		now = time.Now()
		v = e.missing(e.choice.Anew(now))
		if v == route.Chosen {
			return true
		}
		if !e.patient(v) {
			f := e.faultOf(v)
			return e.giveUpFor(&f)
		}
	}
}

// giveUpFor makes a fault the answer, unless a worker's failure is. It returns false.
func (e *Exchange) giveUpFor(f *Fault) bool {
	if e.choice.Sent() == 0 {
		e.sending.attempts.last, e.sending.attempts.own = *f, nil
	}
	e.leaveQueue()
	return false
}

// flow returns whose turns the request takes: those of its key's agent, if it names one, or of its key.
func (r *request) flow(ask *route.Ask) string {
	c := &ask.Claim
	switch {
	case c.Key.ID != "" && !c.Fresh && !c.Placing:
		return r.in.Caller.Name + "/" + session.Fingerprint(c.Key)
	case r.in.Caller.Name != "":
		return r.in.Caller.Name
	}
	return "default"
}

// priorityFields name a request's priority, greater first, before any field of its body.
var priorityFields = [...]string{"X-Warmpath-Priority", "X-Dynamo-Request-Priority"}

// priority returns the class of the request in a queue, as far as its key may ask for it.
func (r *request) priority() int {
	p, ok := 0, false
	for _, name := range priorityFields {
		if p, ok = prompt.Priority([]byte(r.in.Get(name))); ok {
			break
		}
	}
	if !ok {
		p, _ = r.read.req.Urgency()
	}
	may := r.in.Caller.Priority
	return max(may[0], min(p, may[1]))
}

// sloFields give the milliseconds in which a client wants the first token.
var sloFields = [...]string{"X-Slo-Ttft-Ms", "X-Llm-D-Slo-Ttft-Ms"}

// firstTokenBy returns when the request's first token comes too late; zero if it does not say.
func (in *Inbound) firstTokenBy(arrived time.Time) time.Time {
	for _, name := range sloFields {
		given := in.Get(name)
		if given == "" {
			continue
		}
		if ms, err := strconv.ParseFloat(given, 64); err == nil && ms > 0 && ms < 1e9 {
			return arrived.Add(inSeconds(ms / 1000))
		}
	}
	return in.deadline(arrived)
}

func inSeconds(s float64) time.Duration { return time.Duration(min(s, 1e8) * float64(time.Second)) }
