package queue

import (
	"container/heap"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MaxFlows bounds the flows of a queue that have a name of their own.
	MaxFlows = 10_000
	// Others is the name of the flow that the other flows of a key share.
	Others = "(others)"

	ordered = 3 // turns in the order of classes between two that are not

	// heldAWake bounds the held requests that a call of Wake puts back: each is asked for its worker again, and one comes
	// with every answer that ends.
	heldAWake = 4
)

// Queue is the queue of one pool.
type Queue struct {
	depth atomic.Int64

	mu      sync.Mutex // guards what follows
	conf    Config
	bytes   int64
	lanes   map[uint64]*laneState
	classes []*class // of all lanes
	keys    map[keyName]*key
	flows   map[flowName]*flow
	worst   worst // of the keys

	turn    *Request   // that has it
	early   bool       // it got it before a higher class
	held    []*Request // that the next calls of Wake put back, the one that was held first the first
	inOrder int        // turns since one was given before a higher class
	spent   float64    // of the lane that was served last, before that
	rate    rate

	entered, served, displaced uint64
}

// New makes an empty queue.
func New(c Config) *Queue {
	return &Queue{conf: c, lanes: map[uint64]*laneState{}, keys: map[keyName]*key{}, flows: map[flowName]*flow{}}
}

// Configure sets the bounds and the order for those who come from now on. What waits goes on waiting.
func (q *Queue) Configure(c Config) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.conf = c
	for _, k := range q.keys {
		k.rank(&q.conf)
		for _, f := range k.worst {
			f.account().rank(&q.conf)
		}
		heap.Init(&k.worst)
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
	if r.flow != nil || r.held {
		return nil, true
	}
	r.clamp()
	if r.Entered.IsZero() {
		r.Entered = at
	}
	if k := q.keys[nameOf(r).keyName]; k != nil && k.weight != r.Weight { // it was changed
		k.class.weigh(r.Weight - k.weight)
		k.weight = r.Weight
		q.rank(k)
	}
	displaced, ok = q.makeRoom(r)
	if !ok {
		return nil, false
	}
	if q.depth.Load() == 0 {
		q.rate.begin(at)
	}
	q.put(r, at)
	q.entered++
	return displaced, true
}

// put gives a request its place. at is when its flow was served last, if it has none that waits.
func (q *Queue) put(r *Request, at time.Time) {
	f := q.flowOf(r)
	if f.key == nil {
		q.attach(f, r, at)
	}
	f.insert(r, q.conf.ByDeadline)
	q.count(f, r, 1)
}

// nameOf returns the name of a request's flow.
func nameOf(r *Request) flowName {
	return flowName{keyName: keyName{lane: r.Lane, class: r.Class, key: r.Key}, flow: r.Flow}
}

// flowOf returns the flow of a request, or a new one, which is not yet in the queue.
func (q *Queue) flowOf(r *Request) *flow {
	name := nameOf(r)
	if f := q.flows[name]; f != nil {
		return f
	}
	if len(q.flows) >= MaxFlows {
		name.flow = Others
		if f := q.flows[name]; f != nil {
			return f
		}
	}
	return &flow{name: name, member: member{weight: 1, number: r.Class}}
}

// count adds n times a request of a flow to all sums, and finds the places of those who hold it.
func (q *Queue) count(f *flow, r *Request, n int) {
	f.key.count(f, r, n)
	q.depth.Add(int64(n))
	q.bytes += int64(n) * r.Bytes
	f.rank(&q.conf)
	heap.Fix(&f.key.worst, f.place)
	q.rank(f.key)
}

// rank finds the place of a key that holds more or less than before.
func (q *Queue) rank(k *key) {
	k.rank(&q.conf)
	heap.Fix(&q.worst, k.place)
}

// attach takes a new flow in.
func (q *Queue) attach(f *flow, r *Request, at time.Time) {
	name := f.name.keyName
	k := q.keys[name]
	if k == nil {
		k = &key{name: name, member: member{weight: r.Weight, number: name.class}}
		k.class = q.classOf(r, at)
		k.round = k.class.keys.PushBack(k)
		k.class.weigh(r.Weight)
		q.keys[name] = k
		heap.Push(&q.worst, k)
	}
	k.add(f, at)
	q.flows[f.name] = f
}

// classOf returns a request's class in its lane, which it makes if nothing waits there.
func (q *Queue) classOf(r *Request, at time.Time) *class {
	l := q.lanes[r.Lane]
	if l == nil {
		l = &laneState{id: r.Lane, spent: q.spent, limited: r.Limited}
		if !r.Limited {
			l.rate = q.rate
		}
		l.rate.begin(at)
		q.lanes[l.id] = l
	}
	for _, c := range q.classes {
		if c.lane == l && c.number == r.Class {
			return c
		}
	}
	c := &class{lane: l, member: member{number: r.Class}, index: len(q.classes)}
	q.classes = append(q.classes, c)
	l.classes++
	return c
}

// remove takes a request out, and its flow, key, class and lane if they are empty then.
func (q *Queue) remove(r *Request) {
	f := r.flow
	k := f.key
	f.drop(r)
	q.count(f, r, -1)
	if q.turn == r {
		q.turn = nil
	}
	if f.requests > 0 {
		return
	}
	k.drop(f)
	delete(q.flows, f.name)
	if k.requests > 0 {
		return
	}
	heap.Remove(&q.worst, k.place)
	delete(q.keys, k.name)
	c := k.class
	c.keys.Remove(k.round)
	c.weigh(-k.weight)
	if c.requests > 0 {
		return
	}
	last := q.classes[len(q.classes)-1]
	q.classes[c.index], last.index = last, c.index
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
	q.turn, c.lane.stirred = c.turn(), false
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
	f.key.spend(f, r, at)
	l := f.key.class.lane
	q.spent = max(q.spent, l.spent) // so a lane that lags behind does not catch up
	l.spent = q.spent + r.Cost/l.weight
	l.rate.add(r.Cost, at)
	if !r.Limited {
		q.rate.add(r.Cost, at)
	}
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
	l := r.flow.key.class.lane
	l.blocked = !l.stirred // else it may have looked too early
}

// Hold ends the turn of a request that would find room and is to wait for better. It waits beside its lane until Wake
// or Return. The caller then calls Next.
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

// Leave takes a request out that waits no longer: its client went, or its time is over. It gives back the turn, if the
// request has it. The caller then calls Next. A request that does not wait, or no longer, is ignored.
func (q *Queue) Leave(r *Request, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.held {
		q.unhold(r)
	}
	if r.flow == nil {
		return
	}
	r.flow.key.class.lane.rate.add(0, at)
	if !r.Limited {
		q.rate.add(0, at)
	}
	q.remove(r)
}

// Wake opens all lanes: whatever they wait for may have come. The caller then calls Next. It costs little while nothing
// waits.
func (q *Queue) Wake() {
	q.wake(func(*laneState) bool { return true })
}

// WakeForRoom opens the lanes that wait for workers. It comes with every answer that ends, which says nothing to those
// that wait for a limit of their key. The caller then calls Next.
func (q *Queue) WakeForRoom() {
	q.wake(func(l *laneState) bool { return !l.limited })
}

func (q *Queue) wake(opens func(*laneState) bool) {
	if q.Depth() == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lanes {
		if opens(l) {
			l.open()
		}
	}
	for range min(heldAWake, len(q.held)) {
		q.unhold(q.held[0])
	}
}

// WakeLane opens one lane. The caller then calls Next.
func (q *Queue) WakeLane(id uint64) {
	if q.Depth() == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lanes[id]; l != nil {
		l.open()
	}
}
