package queue

import "slices"

// heldAWake bounds the requests that a call of Wake puts back. Each is asked for its worker again, and Wake comes with
// every answer that ends.
const heldAWake = 4

// Hold ends the turn of a request that would find room and is to wait for better. It waits beside its lane until Wake or
// Return. The caller then calls Next.
func (q *Queue) Hold(r *Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.turn != r || r == nil {
		return
	}
	q.remove(r)
	r.held = true
	q.held = append(q.held, r)
	q.depth.Add(1)
	q.bytes += r.Bytes
}

// Return puts a request back that is held. The caller then calls Next.
func (q *Queue) Return(r *Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.held {
		q.unhold(r)
	}
}

// unhold gives a held request the place in its flow that it had.
func (q *Queue) unhold(r *Request) {
	i := slices.Index(q.held, r)
	q.held = slices.Delete(q.held, i, i+1)
	r.held = false
	q.depth.Add(-1)
	q.bytes -= r.Bytes
	q.put(r, r.Entered)
}

// Waiting returns how many flows have requests that wait.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.flows)
}
