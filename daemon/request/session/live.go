package session

import "sync"

// residents counts the live sessions of each worker that this router knows of: those that were opened, and keys. A
// stored response does not count as a session, as it causes no work between two requests.
//
// Each change of a binding counts itself at once. Expiry, and what other routers did, is found by counting all again,
// see [Bindings.Run]: a count by the second would need the end of each session once more beside the store. What
// changes while Run counts may be missed or counted twice until it counts again.
type residents struct {
	mu       sync.Mutex // guards byWorker
	byWorker map[string]int
}

// enter counts a session that was bound to a worker.
func (r *residents) enter(worker string, k Kind) { r.add(worker, k, 1) }

// leave counts down a session that has ended or moved.
func (r *residents) leave(worker string, k Kind) { r.add(worker, k, -1) }

// add keeps a number below zero as it is. A session may leave before its entering is counted, and the two make up for
// each other in any order.
func (r *residents) add(worker string, k Kind, n int) {
	if k == Response {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byWorker == nil {
		r.byWorker = map[string]int{}
	}
	if sum := r.byWorker[worker] + n; sum != 0 {
		r.byWorker[worker] = sum
	} else {
		delete(r.byWorker, worker)
	}
}

// replace puts a new count in the place of the old one.
func (r *residents) replace(live map[string][kinds]int) {
	byWorker := make(map[string]int, len(live))
	for worker, n := range live {
		if sum := n[Opened] + n[Key]; sum > 0 {
			byWorker[worker] = sum
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byWorker = byWorker
}

// each calls set with the count of each of n workers.
func (r *residents) each(n int, worker func(i int) string, set func(i int, live uint32)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range n {
		set(i, uint32(max(0, r.byWorker[worker(i)])))
	}
}
