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

// tell plans that a router sends the others what it has just done, if they share.
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
