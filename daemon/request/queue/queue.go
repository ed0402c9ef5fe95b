package queue

import (
	"container/list"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/parts/pile"
)

const (
	// MaxFlows bounds the flows of a queue that have a name of their own.
	MaxFlows = 10_000
	// Others is the name of the flow that the other flows of a key share.
	Others = "(others)"

	ordered = 3 // turns in order between two that are not

	// heldAWake bounds the held requests that a call of Wake puts back: each is asked for its worker again, and one comes
	// with every answer that ends.
	heldAWake = 4
	// lanesAWake bounds the blocked lanes that it opens: one request of each looks for a worker, in vain more often than
	// not. Wake is called 20 times a second, so that of 10,000 lanes each looks all 4 s.
	lanesAWake = 128
)

// Queue is the queue of one pool.
type Queue struct {
	depth  atomic.Int64
	rested atomic.Int64 // when the queue became empty, in nanoseconds since 1970

	mu       sync.Mutex // guards what follows
	conf     Config
	bytes    int64
	lanes    map[uint64]*laneState
	keys     map[keyName]*key
	flows    map[flowName]*flow
	accounts map[accountName]*account
	levels   [2*MaxClass + 1]*level // by class; nil = nothing has waited there
	booked   uint64                 // turns

	ready    pile.Pile[*class]     // of open lanes: the first has its turn
	aged     pile.Pile[*agedClass] // the same: the first has the key that waits the longest
	roomless list.List             // of *laneState: blocked ones that wait for workers, the longest first
	limited  list.List             // likewise, for a limit of their key

	turn    *Request             // that has it
	early   bool                 // it got it before others, as it waited for Starve
	earlier map[string]time.Time // when a key had such a turn last
	held    []*Request           // that the next calls of Wake put back, the one that was held first the first
	inOrder int                  // turns since one was given before others
	rate    rate

	entered, served, displaced uint64
}

// New makes an empty queue.
func New(c Config) *Queue {
	return &Queue{conf: c, lanes: map[uint64]*laneState{}, keys: map[keyName]*key{}, flows: map[flowName]*flow{},
		accounts: map[accountName]*account{}, earlier: map[string]time.Time{}}
}

// Configure sets the bounds and the order for later requests. What waits goes on waiting.
func (q *Queue) Configure(c Config) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.conf = c
	for _, f := range q.flows {
		f.rank(&q.conf)
		f.key.account.flows.Put(f)
	}
	for _, a := range q.accounts {
		a.rank(&q.conf)
		if a.requests > 0 {
			q.level(a.name.class).accounts.Put(a)
		}
	}
}

// Depth returns how many requests wait, the one that has the turn among them. It takes no lock.
func (q *Queue) Depth() int { return int(q.depth.Load()) }

// Enter takes a request, unless the queue is full. displaced have left the queue to make room. The caller must notify
// their owners. Enter does nothing for a request that waits already.
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
	if !q.Busy(at) {
		clear(q.accounts)
		clear(q.earlier)
	}
	q.reweigh(r)
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

// reweigh has the key of a request have its weight, which may have been changed.
func (q *Queue) reweigh(r *Request) {
	name := nameOf(r)
	if k := q.keys[name.keyName]; k != nil {
		k.class.weight += r.Weight - k.weight
		k.weight = r.Weight
	}
	if a := q.accounts[name.account()]; a != nil && a.weight != r.Weight {
		a.weight = r.Weight
		if a.requests > 0 {
			q.rank(a)
		}
	}
}

// put gives a request its place. at is when its key was served last, if it has none that waits in that lane.
func (q *Queue) put(r *Request, at time.Time) {
	f := q.flowOf(r)
	if f.key == nil {
		q.attach(f, r, at)
	}
	f.insert(r, q.conf.ByDeadline)
	q.count(f, r, 1)
	if k := f.key; k.requests == 1 {
		q.book(k, at)
	}
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
	return &flow{name: name, holder: holder{weight: 1}}
}

// count adds n times a request of a flow to all sums, and moves its holders to their new places.
func (q *Queue) count(f *flow, r *Request, n int) {
	k := f.key
	for _, s := range [...]*sums{&f.sums, &k.sums, &k.class.sums, &k.account.sums, &q.level(r.Class).sums} {
		s.count(r, n)
	}
	q.depth.Add(int64(n))
	q.bytes += int64(n) * r.Bytes
	f.rank(&q.conf)
	k.account.flows.Put(f)
	q.rank(k.account)
}

// rank finds the place of an account that holds more or less than before.
func (q *Queue) rank(a *account) {
	a.rank(&q.conf)
	q.level(a.name.class).accounts.Put(a)
}

// attach takes a new flow in.
func (q *Queue) attach(f *flow, r *Request, at time.Time) {
	name := f.name.keyName
	k := q.keys[name]
	if k == nil {
		k = &key{name: name, weight: r.Weight, class: q.classOf(r, at),
			account: q.account(name.account(), r.Weight)}
		k.class.weight += r.Weight
		q.keys[name] = k
	}
	f.key, f.round = k, k.flows.PushBack(f)
	q.flows[f.name] = f
}

// remove takes a request out, and its flow, key, class and lane if they are empty then. A turn that was booked is given
// back.
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
	k.flows.Remove(f.round)
	k.account.flows.Drop(f)
	delete(q.flows, f.name)
	if k.requests > 0 {
		return
	}
	a, c := k.account, k.class
	a.spent -= k.booked / a.weight
	if a.requests == 0 {
		q.level(a.name.class).accounts.Drop(a)
		q.forget(a)
	}
	c.keys.Drop(k)
	c.ages.Drop((*agedKey)(k))
	c.weight -= k.weight
	delete(q.keys, k.name)
	q.place(c)
	if c.requests == 0 {
		q.empty(c)
	}
}

// Next gives the turn to a request and returns it. nil: no request can have it now, as the queue is empty, all lanes
// are blocked, or another request has it.
func (q *Queue) Next(at time.Time) *Request {
	if q.Depth() == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.turn != nil || len(q.ready) == 0 {
		return nil
	}
	k := q.starved(at)
	q.early = k != nil
	if !q.early {
		k = q.ready[0].keys[0]
	}
	q.turn, k.class.lane.stirred = k.turn().waiting.First, false
	return q.turn
}

// starved returns the key of an open lane that has waited for Starve, and the longest; nil if there is none, or another
// one had a turn for that of late. It looks again a while later at a key that has had more of its class than the first
// one there, by Starve too: else who asks for much would get more than its share. A key of the highest class waits in
// one lane while its other lanes are served: that is its own doing, and takes no turn from lower classes.
func (q *Queue) starved(at time.Time) *key {
	starve := q.conf.Starve
	if starve <= 0 || q.inOrder < ordered {
		return nil
	}
	for {
		c := (*class)(q.aged[0])
		k := (*key)(c.ages[0])
		switch last := q.earlier[k.name.key]; {
		case last.After(k.since):
			k.since = last
		case at.Sub(k.since) < starve:
			return nil
		case c.number == q.ready[0].number && k.account.served.After(k.since):
			k.since = k.account.served
		case k.tag-c.keys[0].tag > starve.Seconds():
			k.since = at.Add(starve/8 - starve)
		default:
			return k
		}
		c.ages.Put((*agedKey)(k))
		q.place(c)
	}
}

// Served ends the turn of a request that has gone to a worker: it leaves. The caller then calls Next, and ends the
// charge when the worker has done its work.
func (q *Queue) Served(r *Request, at time.Time) (charge *Charge) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.flow == nil {
		return charge
	}
	k, early := r.flow.key, q.turn == r && q.early
	q.inOrder++
	if early {
		q.inOrder = 0
	}
	r.flow.deficit -= r.cost()
	q.spend(k, r)
	k.class.lane.rate.add(r.cost(), at)
	k.account.served = at
	if !r.Limited {
		q.rate.add(r.cost(), at)
		charge = q.charge(r, at)
		if early {
			if len(q.earlier) >= MaxFlows {
				clear(q.earlier)
			}
			q.earlier[k.name.key] = at
		}
	}
	q.served++
	q.leave(r, at)
	if k.requests > 0 {
		q.book(k, at)
	}
	return charge
}

// leave takes a request out for good.
func (q *Queue) leave(r *Request, at time.Time) {
	q.remove(r)
	if q.depth.Load() == 0 {
		q.rested.Store(at.UnixNano())
	}
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
	if l := r.flow.key.class.lane; !l.stirred { // else it may have looked too early
		q.block(l)
	}
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
	q.leave(r, at)
}

// Wake opens lanes: whatever they wait for may have come. The caller then calls Next. It costs little while nothing
// waits.
func (q *Queue) Wake() { q.wake(true) }

// WakeForRoom opens lanes that wait for workers. It comes with every answer that ends, which says nothing to those
// that wait for a limit of their key. The caller then calls Next.
func (q *Queue) WakeForRoom() { q.wake(false) }

func (q *Queue) wake(all bool) {
	if q.Depth() == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.openSome(&q.roomless)
	if all {
		q.openSome(&q.limited)
	}
	if q.turn != nil {
		if l := q.turn.flow.key.class.lane; all || !l.limited {
			l.stirred = true
		}
	}
	for range min(heldAWake, len(q.held)) {
		q.unhold(q.held[0])
	}
}

// openSome opens the lanes that were blocked the longest ago.
func (q *Queue) openSome(blocked *list.List) {
	for range min(lanesAWake, blocked.Len()) {
		q.open(blocked.Front().Value.(*laneState))
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
		q.open(l)
	}
}
