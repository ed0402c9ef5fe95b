package kvevents

import (
	"sync"

	"github.com/warmpath/warmpath/cache/parts/bounded"
)

// Bounds of what waits between the socket and the sink, a source. They are what a sink that stands still for the
// length of a garbage collection leaves at 100,000 batches a second. When they are full the socket is not read: TCP
// slows the publisher, which then drops at its own high-water mark, and the sequence shows it.
const (
	queueMessages = 4096
	queueBytes    = 16 << 20
	keepPayload   = 4096 // bytes of a message's memory that stay for the next one
)

// message is one event message. Its memory is used again.
type message struct {
	topic   string
	seq     uint64
	payload []byte
}

// queue hands messages from the reader of a connection to the one who applies them.
type queue struct {
	mu     sync.Mutex
	room   sync.Cond // signalled when a message leaves, or the queue ends
	all    []message // a ring
	first  int
	n      int
	bytes  int
	err    error                   // why it has ended
	filled bounded.Queue[struct{}] // has one element while there may be something to take
}

func newQueue() *queue {
	q := &queue{filled: make(chan struct{}, 1)}
	q.room.L = &q.mu
	return q
}

// put copies a message in. It waits while the queue is full, and reports whether the queue goes on.
func (q *queue) put(topic []byte, seq uint64, payload []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.err == nil && q.n > 0 && (q.n == queueMessages || q.bytes+len(payload) > queueBytes) {
		q.room.Wait()
	}
	if q.err != nil {
		return false
	}
	if q.n == len(q.all) {
		q.grow()
	}
	m := &q.all[(q.first+q.n)%len(q.all)]
	if m.topic != string(topic) {
		m.topic = string(topic)
	}
	m.seq = seq
	m.payload = append(m.payload[:0], payload...)
	q.n++
	q.bytes += len(payload)
	q.signal()
	return true
}

func (q *queue) grow() {
	next := make([]message, max(16, 2*len(q.all)))
	for i := range q.n {
		next[i] = q.all[(q.first+i)%len(q.all)]
	}
	q.all = next
	q.first = 0
}

func (q *queue) signal() { q.filled.Put(struct{}{}) }

// end makes put fail, and take once what is queued has been taken.
func (q *queue) end(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = err
	}
	q.room.Broadcast()
	q.signal()
}

// take swaps the oldest message into m. If the queue is empty, ok is false. Then err says why, if no more messages will
// come.
func (q *queue) take(m *message) (ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n == 0 {
		return false, q.err
	}
	at := &q.all[q.first]
	if cap(m.payload) > keepPayload {
		m.payload = nil
	}
	*m, *at = *at, *m
	q.first = (q.first + 1) % len(q.all)
	q.n--
	q.bytes -= len(m.payload)
	if q.n > 0 || q.err != nil {
		q.signal()
	}
	q.room.Signal()
	return true, nil
}

// waiting returns how many messages are queued.
func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n
}
