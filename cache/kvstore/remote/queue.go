package remote

import (
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/cache/parts/bounded"
)

// job is a value to be written, or a key to be deleted.
type job struct {
	key     string
	remove  bool
	order   uint64 // the place among puts and deletions
	expires time.Time
	value   *kvstore.Lease
	size    int64
	had     bool          // the servers may have an older value of the key
	written chan struct{} // closed at the end; nil = nobody waits
}

// end releases what the job holds. With leave, memory need not keep the value.
func (j *job) end(leave bool) {
	switch {
	case j.value == nil:
	case leave:
		j.value.Leave()
	default:
		j.value.Release()
	}
	if j.written != nil {
		close(j.written)
	}
}

// queue holds the jobs on their way to the servers. Jobs of one key are in one lane, so they keep their order.
type queue struct {
	lanes [8]bounded.Queue[*job]

	mu       sync.Mutex // guards all below
	maxBytes int64
	bytes    int64
	jobs     map[mark]int // in lanes and under way
	closed   bool
}

const laneLength = 2048

func newQueue(maxBytes int64) *queue {
	q := &queue{maxBytes: maxBytes, jobs: map[mark]int{}}
	for i := range q.lanes {
		q.lanes[i] = make(bounded.Queue[*job], laneLength)
	}
	return q
}

// push queues a job, if there is room for it.
func (q *queue) push(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.bytes > 0 && q.bytes+j.size > q.maxBytes {
		return false
	}
	m := markOf(j.key)
	if !q.lanes[uint64(m)%uint64(len(q.lanes))].Put(j) {
		return false
	}
	q.bytes += j.size
	q.jobs[m]++
	return true
}

// done counts down a job that has ended.
func (q *queue) done(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= j.size
	m := markOf(j.key)
	q.jobs[m]--
	if q.jobs[m] == 0 {
		delete(q.jobs, m)
	}
}

// has reports whether a job of the key is queued or under way.
func (q *queue) has(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.jobs[markOf(key)] > 0
}

func (q *queue) waiting() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}

// close refuses further jobs, and ends the lanes.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	for _, lane := range q.lanes {
		close(lane)
	}
}
