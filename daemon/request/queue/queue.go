package queue

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MaxFlows bounds the flows of a queue that have a name of their own.
	MaxFlows = 10_000
	// Others is the name of the flow that the others share.
	Others = "(others)"

	ordered = 3 // turns in the order of classes between two that are not
)

// Config is how much a queue takes, and in which order it gives turns.
type Config struct {
	MaxRequests int
	MaxBytes    int64         // of Request.Bytes in all
	Starve      time.Duration // after which a flow gives its class a turn before higher ones; 0 = never
	ByDeadline  bool          // a flow's nearest deadline comes first, not the request that came first
}

// Queue is the queue of one pool.
type Queue struct {
	depth atomic.Int64

	mu      sync.Mutex // guards what follows
	conf    Config
	bytes   int64
	lanes   map[uint64]*laneState
	classes []*class // of all lanes
	flows   map[flowKey]*flow
	worst   worst

	turn    *Request // that has it
	early   bool     // it got it before a higher class
	wakes   uint64   // calls of Wake
	seen    uint64   // wakes when the turn was given
	inOrder int      // turns since one was given before a higher class
	spent   float64  // of the lane that was served last, before that
	rate    rate

	entered, served, displaced uint64
}

// New makes an empty queue.
func New(c Config) *Queue {
	return &Queue{conf: c, lanes: map[uint64]*laneState{}, flows: map[flowKey]*flow{}}
}

// Configure sets the bounds and the order for those who come from now on. What waits goes on waiting.
func (q *Queue) Configure(c Config) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.conf = c
	for _, f := range q.worst {
		f.share = f.holds(&q.conf, f.requests, f.bytes)
	}
	heap.Init(&q.worst)
}

// Depth returns how many requests wait, the one that has the turn among them. It takes no lock.
func (q *Queue) Depth() int { return int(q.depth.Load()) }

// Enter takes a request, unless the queue is full. displaced have left the queue to make room: their owners must be
// told. One that waits already stays as it is.
func (q *Queue) Enter(r *Request, at time.Time) (displaced []*Request, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.flow != nil {
		return nil, true
	}
	r.clamp()
	if r.Entered.IsZero() {
		r.Entered = at
	}
	f := q.flowOf(r)
	if f.weight != r.Weight { // its key's weight was changed
		f.class.weigh(r.Weight - f.weight)
		f.weight = r.Weight
		q.rank(f)
	}
	displaced, ok = q.makeRoom(r, f)
	if !ok {
		return nil, false
	}
	if q.depth.Load() == 0 {
		q.rate.begin(at)
	}
	if f.class == nil {
		q.attach(f, at)
	}
	f.insert(r, q.conf.ByDeadline)
	f.class.count(r, 1)
	q.depth.Add(1)
	q.bytes += r.Bytes
	q.entered++
	q.rank(f)
	return displaced, true
}

// flowOf returns the flow of a request, or a new one, which is not yet in the queue.
func (q *Queue) flowOf(r *Request) *flow {
	key := flowKey{lane: r.Lane, class: r.Class, name: r.Flow}
	if f := q.flows[key]; f != nil {
		return f
	}
	if len(q.flows) >= MaxFlows {
		key.name = Others
		if f := q.flows[key]; f != nil {
			return f
		}
	}
	return &flow{key: key, weight: r.Weight, place: -1}
}

// attach takes a new flow in.
func (q *Queue) attach(f *flow, at time.Time) {
	l := q.lanes[f.key.lane]
	if l == nil {
		l = &laneState{id: f.key.lane, spent: q.spent, rate: q.rate}
		l.rate.begin(at)
		q.lanes[l.id] = l
	}
	c := q.classOf(l, f.key.class)
	if c == nil {
		c = &class{lane: l, number: f.key.class, place: len(q.classes)}
		q.classes = append(q.classes, c)
		l.classes++
	}
	c.add(f, at)
	q.flows[f.key] = f
	heap.Push(&q.worst, f)
}

// classOf returns a class of a lane; nil if nothing waits there.
func (q *Queue) classOf(l *laneState, number int) *class {
	for _, c := range q.classes {
		if c.lane == l && c.number == number {
			return c
		}
	}
	return nil
}

// remove takes a request out, and its flow, class and lane if they are empty then.
func (q *Queue) remove(r *Request) {
	f := r.flow
	c := f.class
	f.drop(r)
	c.count(r, -1)
	q.depth.Add(-1)
	q.bytes -= r.Bytes
	if q.turn == r {
		q.turn = nil
	}
	if f.requests > 0 {
		q.rank(f)
		return
	}
	heap.Remove(&q.worst, f.place)
	delete(q.flows, f.key)
	c.drop(f)
	if c.requests > 0 {
		return
	}
	last := q.classes[len(q.classes)-1]
	q.classes[c.place], last.place = last, c.place
	q.classes[len(q.classes)-1] = nil
	q.classes = q.classes[:len(q.classes)-1]
	c.lane.classes--
	if c.lane.classes == 0 {
		delete(q.lanes, c.lane.id)
	}
}

// Next gives the turn to a request and returns it. nil: nobody may have it now, as the queue is empty, all lanes are
// blocked, or another request has it.
func (q *Queue) Next(at time.Time) *Request {
	if q.Depth() == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.turn != nil {
		return nil
	}
	c := q.first()
	if c == nil {
		return nil
	}
	starved := q.starved(c, at)
	q.early = starved != nil
	if q.early {
		c = starved
	}
	q.turn, q.seen = c.next().first, q.wakes
	return q.turn
}

// first returns the class whose turn it is; nil if all lanes are blocked.
func (q *Queue) first() (first *class) {
	for _, c := range q.classes {
		if !c.lane.blocked && (first == nil || c.before(first)) {
			first = c
		}
	}
	return first
}

// starved returns the class, lower than the first, that waits for Starve and the longest; nil if there is none, or a
// class had such a turn of late.
func (q *Queue) starved(first *class, at time.Time) (starved *class) {
	if q.conf.Starve <= 0 || q.inOrder < ordered {
		return nil
	}
	for _, c := range q.classes {
		if c.lane.blocked || c.number >= first.number || at.Sub(c.oldest()) < q.conf.Starve {
			continue
		}
		if starved == nil || c.oldest().Before(starved.oldest()) {
			starved = c
		}
	}
	return starved
}

// Served ends the turn of a request that has gone to a worker: it leaves. The caller then calls Next.
func (q *Queue) Served(r *Request, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f := r.flow
	if f == nil {
		return
	}
	q.inOrder++
	if q.turn == r && q.early {
		q.inOrder = 0
	}
	f.class.spend(f, r, at)
	l := f.class.lane
	q.spent = max(q.spent, l.spent) // so a lane that lags behind does not catch up
	l.spent = q.spent + r.Cost/l.weight
	l.rate.add(r.Cost, at)
	q.rate.add(r.Cost, at)
	q.served++
	q.remove(r)
}

// Blocked ends the turn of a request that found no room. It keeps its place, and its lane is blocked until Wake. The
// caller then calls Next.
func (q *Queue) Blocked(r *Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.turn != r || r == nil {
		return
	}
	q.turn = nil
	r.flow.class.lane.blocked = q.wakes == q.seen // else it may have looked too early
}

// Leave takes a request out that waits no longer: its client went, or its time is over. It gives back the turn, if the
// request has it. The caller then calls Next. A request that does not wait, or no longer, is ignored.
func (q *Queue) Leave(r *Request, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.flow == nil {
		return
	}
	r.flow.class.lane.rate.add(0, at)
	q.rate.add(0, at)
	q.remove(r)
}

// Wake opens all lanes: room may have come. The caller then calls Next. It costs little while nothing waits.
func (q *Queue) Wake() {
	if q.Depth() == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wakes++
	for _, l := range q.lanes {
		l.blocked = false
	}
}
