package peers

import (
	"time"

	"github.com/warmpath/warmpath/daemon/request/route"
)

// maxEvents and maxHashes bound the events that wait to be written: 256 KB each.
const maxEvents, maxHashes = 1024, 32 << 10

// event is one event of a request. sent is whole for kindSent only: an answer has its space, kindForgotten its worker.
type event struct {
	kind   kind
	chains int // of a request that was sent
	id     uint64
	at     time.Time
	sent   route.Sent
	from   int // where its chains stand in hashes

	// What followed on a request that was sent, until it is written. apart: later events are not added to this one.
	first, answered time.Time
	answer          int // where the chain of its prompt and answer stands
	ended, apart    bool
}

// eventQueue collects the events of requests since the last frame was written. A request on its way only queues an
// event: to look up chains and to write records costs a third as much for all events of a round at once. Most short
// requests begin and end between two rounds. All events of such a request are one event of the queue, which is sent and
// applied as one record.
type eventQueue struct {
	events  []event
	hashes  []uint64 // of each chain of each event, after its length
	firstID uint64   // id of the first request in indexes
	indexes []int32  // the index in events of each request sent, by id from firstID on
}

// addChain copies a chain into hashes, and returns where it stands there.
func (q *eventQueue) addChain(c []uint64) (from int) {
	from = len(q.hashes)
	q.hashes = append(append(q.hashes, uint64(len(c))), c...)
	return from
}

// chainAt returns the chain that stands at from, and where the next one stands.
func (q *eventQueue) chainAt(from int) (chain []uint64, next int) {
	next = from + 1 + int(q.hashes[from])
	return q.hashes[from+1 : next : next], next
}

// addRequest adds a request that was sent. Ids come in order.
func (q *eventQueue) addRequest(e *event) {
	if len(q.indexes) == 0 {
		q.firstID = e.id
	}
	q.indexes = append(q.indexes, int32(len(q.events)))
	q.events = append(q.events, *e)
}

// eventOf returns the queued event to which a request's next event is added; nil if that is an event of its own.
func (q *eventQueue) eventOf(id uint64) *event {
	i := id - q.firstID
	if i >= uint64(len(q.indexes)) || q.events[q.indexes[i]].apart {
		return nil
	}
	return &q.events[q.indexes[i]]
}

// separate makes no later event a part of the events so far, so that it comes after them.
func (q *eventQueue) separate() { q.indexes = q.indexes[:0] }

// addAnswer adds the chain of a request's prompt and answer. It returns false unless the chain extends the request's
// only chain.
func (q *eventQueue) addAnswer(e *event, space uint64, chain []uint64, at time.Time) bool {
	if e.chains != 1 || !e.answered.IsZero() || e.sent.Space != space {
		return false
	}
	prompt, _ := q.chainAt(e.from)
	n := len(prompt)
	if n > len(chain) || n > 0 && prompt[n-1] != chain[n-1] { // a hash stands for all before it
		return false
	}
	e.answered, e.answer = at, q.addChain(chain)
	return true
}

func (q *eventQueue) full() bool { return len(q.events) >= maxEvents || len(q.hashes) >= maxHashes }

func (q *eventQueue) clear() {
	q.events, q.hashes, q.indexes = q.events[:0], q.hashes[:0], q.indexes[:0]
}
