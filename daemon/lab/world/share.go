package world

import "time"

// Sharer is a Router that sends others what it did, and applies what they send to its own books.
type Sharer interface {
	Router
	// Told returns as frames what the router did since the last call.
	Told(now time.Duration) [][]byte
	// Hear applies a frame that another router sent. The frames of all come to each in one order.
	Hear(now, sent time.Duration, frame []byte)
}

// frameTime is how long a router collects before it sends, as the daemon's do.
const frameTime = 10 * time.Millisecond

// tell schedules a router's message to the others about its last call, if they share.
func (w *world) tell(router int) {
	if w.History <= 0 || len(w.routers) < 2 || w.told[router].sends {
		return
	}
	if r, shares := w.routers[router].(Sharer); shares {
		w.told[router].sends = true
		w.at(w.now+frameTime, func() { w.post(router, r) })
	}
}

// post sends a router's frames on their way to the others.
func (w *world) post(router int, from Sharer) {
	w.told[router].sends = false
	sent := w.now
	for _, frame := range from.Told(sent) {
		w.at(sent+w.History, func() {
			for i, to := range w.routers {
				if other, hears := to.(Sharer); hears && i != router {
					other.Hear(w.now, sent, frame)
					w.ask(i)
				}
			}
		})
	}
}

// told is the message that is scheduled for a router after its last call.
type told struct {
	sends bool // what it did is sent to the others
	asked bool // it is asked who goes now
	again bool // the same in a while, though nothing happens
}

// askEvery is how often a router in which requests wait is asked although nothing happened, as the daemon's do: with
// the time some bounds of its workers fall.
const askEvery = 50 * time.Millisecond

// called plans what follows a call of a router in which it did something.
func (w *world) called(router int) {
	w.tell(router)
	w.ask(router)
}

// askAll asks all routers who goes now.
func (w *world) askAll() {
	for i := range w.routers {
		w.ask(i)
	}
}

// ask plans that a router is asked who goes now, if requests wait there.
func (w *world) ask(router int) {
	r, waits := w.routers[router].(Queuer)
	if t := &w.told[router]; waits && r.Waiting() && !t.asked {
		t.asked = true
		w.at(w.now, func() { w.release(router, r) }) // planned, so that an engine's list of events stays valid
	}
}

// release places the requests that a router lets go.
func (w *world) release(router int, r Queuer) {
	t := &w.told[router]
	t.asked = false
	for {
		q, worker, p := r.Release(w.now)
		if q == nil {
			break
		}
		w.run.Outcomes[q.ID].Queued += w.now - q.waits
		w.place(q, worker, p)
		w.tell(router)
	}
	if r.Waiting() && !t.again {
		t.again = true
		w.at(w.now+askEvery, func() {
			t.again = false
			w.release(router, r)
		})
	}
}
