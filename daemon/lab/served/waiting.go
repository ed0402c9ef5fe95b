package served

import (
	"slices"
	"strconv"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/world"
	"github.com/warmpath/warmpath/daemon/request/queue"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// Bounds are what bounds the work at one worker, as in [[pools]].
type Bounds struct {
	MaxInFlight int     // requests; 0 = no bound
	MaxWait     float64 // seconds of prefill believed queued there; 0 = no bound
	MaxKVUse    float64 // share of its KV cache; 0 = no bound
}

// Queue is the queue of a router, as in [[pools.queue]].
type Queue struct {
	queue.Config
	Wait time.Duration // for room, after which a request is refused
}

// waiting is the requests of a router that found no room.
type waiting struct {
	queue     *queue.Queue
	wait      time.Duration
	order     []queued // in which they entered, those that have left among them
	entered   uint64
	displaced []*visit
	held      []*visit
	woken     time.Time
	room      bool // it may have come since
}

// every is how often the lanes are opened though nothing has happened, as by the daemon.
const every = 50 * time.Millisecond

// MayHaveCome implements [worker.Room].
func (w *waiting) MayHaveCome() { w.room = true }

// queued is one time that a request entered.
type queued struct {
	visit  *visit
	number uint64
}

func newWaiting(c *Queue) *waiting {
	return &waiting{queue: queue.New(c.Config), wait: c.Wait}
}

// some reports whether requests wait, or were displaced.
func (w *waiting) some() bool { return w.queue.Depth() > 0 || len(w.displaced) > 0 }

// enter lets a request wait. It returns false if the queue is full.
func (w *waiting) enter(v *visit, weight route.Weight, at time.Time) bool {
	c := &v.request.Chat.Caller
	v.place = queue.Request{Lane: weight.Lane, Class: c.Priority, Key: c.Key, Weight: c.Weight,
		Flow: strconv.FormatUint(v.request.Session, 36), Cost: weight.Prefill, Place: weight.Place, KV: weight.KV,
		Bytes: int64(len(v.body)), Entered: v.arrived, Owner: v}
	if class, share, ok := route.Classify(&v.choice); ok {
		v.place.Class = class
		if share > 0 {
			v.place.Weight = share
		}
	}
	displaced, ok := w.queue.Enter(&v.place, at)
	if !ok {
		return false
	}
	for _, d := range displaced {
		other := d.Owner.(*visit)
		other.entered = 0
		w.displaced = append(w.displaced, other)
	}
	w.entered++
	v.entered = w.entered
	w.order = append(w.order, queued{visit: v, number: w.entered})
	return true
}

// seen returns what a strategy sees of the queue, if there is one. A hold ends before the wait does, as in the daemon.
func (w *waiting) seen(v *visit, at time.Time) route.Queueing {
	if w == nil {
		return route.Queueing{}
	}
	q := route.Queueing{Depth: w.queue.Depth(), Flows: w.queue.Waiting(), Longest: w.wait - min(w.wait/4, time.Second)}
	if v.entered > 0 {
		q.Waited = at.Sub(v.place.Entered)
	}
	return q
}

// rest ends a turn that brought no worker. A strategy may hold the request for a better one.
func (w *waiting) rest(v *visit, verdict route.Verdict) {
	if verdict != route.Held {
		w.queue.Blocked(&v.place)
		return
	}
	v.until = v.place.Entered.Add(route.HoldFor(&v.choice))
	w.queue.Hold(&v.place)
	if !slices.Contains(w.held, v) {
		w.held = append(w.held, v)
	}
}

// overHold puts back who has been held for as long as may be.
func (w *waiting) overHold(at time.Time) {
	w.held = slices.DeleteFunc(w.held, func(v *visit) bool {
		over := v.entered == 0 || !v.until.After(at)
		if over {
			w.queue.Return(&v.place)
		}
		return over
	})
}

// over takes out a request that was displaced, or has waited for too long; nil: there is none.
func (w *waiting) over(at time.Time) *visit {
	if n := len(w.displaced) - 1; n >= 0 {
		v := w.displaced[n]
		w.displaced = w.displaced[:n]
		return v
	}
	for len(w.order) > 0 {
		first := w.order[0]
		if first.visit.entered == first.number {
			if at.Sub(first.visit.place.Entered) < w.wait {
				return nil
			}
			w.left(first.visit, false, at)
			return first.visit
		}
		w.order = w.order[1:]
	}
	return nil
}

// left takes a request out that goes to a worker, or is refused.
func (w *waiting) left(v *visit, served bool, at time.Time) {
	v.entered = 0
	if served {
		v.trip.Charge = w.queue.Served(&v.place, at)
		return
	}
	w.queue.Leave(&v.place, at)
}

// wake opens the lanes if room may have come.
func (w *waiting) wake(at time.Time) {
	if w.room || at.Sub(w.woken) >= every {
		w.room, w.woken = false, at
		w.queue.Wake()
	}
}

var _ world.Queuer = (*Router)(nil)
