package queue

import (
	"cmp"
	"container/list"
	"slices"
	"time"

	"github.com/warmpath/warmpath/cache/parts/pile"
)

// laneState has the requests that the same workers can serve.
type laneState struct {
	id      uint64
	limited bool          // they wait for a limit of their key
	limit   string        // which one, of the first that came
	stirred bool          // it was opened since one of them got the turn
	blocked *list.Element // of Queue.roomless or limited: one found no room, and nothing has changed since
	classes []*class
	rate    rate
}

// class has the keys of one class in one lane.
type class struct {
	sums
	lane   *laneState
	number int
	weight float64 // of its keys
	level  float64 // what the key had had that was the first when one was served, in seconds for its weight
	lag    float64 // what its keys are taken to have had beside their tags, as they were blocked

	keys pile.Pile[*key]     // the first has its turn
	ages pile.Pile[*agedKey] // the first waits the longest

	ready, aged int // its places in Queue.ready and Queue.aged
}

// first returns what the key has had whose turn comes first.
func (c *class) first() float64 { return c.keys[0].tag + c.lag }

// Before reports whether the class has its turn before another.
func (c *class) Before(other *class) bool {
	return cmp.Or(cmp.Compare(other.number, c.number), cmp.Compare(c.first(), other.first()),
		cmp.Compare(c.keys[0].number, other.keys[0].number)) < 0
}

func (c *class) Place() *int { return &c.ready }

// agedClass is a class in the order of how long its keys wait.
type agedClass class

func (c *agedClass) Before(other *agedClass) bool { return c.ages[0].Before(other.ages[0]) }
func (c *agedClass) Place() *int                  { return &c.aged }

// keyName identifies a key of a queue.
type keyName struct {
	lane  uint64
	class int
	key   string
}

// key has the flows of a client's key in one class of a lane.
type key struct {
	sums
	name    keyName
	account *account
	class   *class
	weight  float64
	flows   list.List // of *flow: the first has its turn

	tag    float64   // what its account had when its next turn was booked, less the lag of its class
	booked float64   // seconds that its account was charged for that turn
	number uint64    // of the booking
	served time.Time // when it was served last, or its first came
	since  time.Time // from when on it waits for Starve

	due, old int // its places in the piles of its class
}

func (k *key) Before(other *key) bool {
	return cmp.Or(cmp.Compare(k.tag, other.tag), cmp.Compare(k.number, other.number)) < 0
}

func (k *key) Place() *int { return &k.due }

// agedKey is a key in the order of how long it waits.
type agedKey key

func (k *agedKey) Before(other *agedKey) bool {
	return cmp.Or(k.since.Compare(other.since), cmp.Compare(k.number, other.number)) < 0
}

func (k *agedKey) Place() *int { return &k.old }

// account returns the name of the account of a key.
func (n keyName) account() accountName { return accountName{class: n.class, key: n.key} }

// turn returns the flow whose turn it is, by deficit round robin. The quantum is the mean cost of the waiting
// requests. So at most as many flows are visited as requests wait: if no flow can pay after a round, each one's next
// request costs more than the mean.
func (k *key) turn() *flow {
	for {
		f := k.flows.Front().Value.(*flow)
		if !f.credited {
			f.credited = true
			f.deficit += k.mean()
		}
		if f.deficit >= f.waiting.First.cost() {
			return f
		}
		f.credited = false
		k.flows.MoveToBack(f.round)
	}
}

// classOf returns a request's class in its lane, which it makes if nothing waits there.
func (q *Queue) classOf(r *Request, at time.Time) *class {
	l := q.lanes[r.Lane]
	if l == nil {
		l = &laneState{id: r.Lane, limited: r.Limited, limit: r.Limit}
		if !r.Limited {
			l.rate = q.rate
		}
		l.rate.begin(at)
		q.lanes[l.id] = l
	}
	for _, c := range l.classes {
		if c.number == r.Class {
			return c
		}
	}
	c := &class{lane: l, number: r.Class, level: q.level(r.Class).now}
	l.classes = append(l.classes, c)
	return c
}

// place finds the places of a class among those that may have the turn.
func (q *Queue) place(c *class) {
	if c.requests == 0 || c.lane.blocked != nil {
		q.ready.Drop(c)
		q.aged.Drop((*agedClass)(c))
		return
	}
	q.ready.Put(c)
	q.aged.Put((*agedClass)(c))
}

// lookers are the lanes that look for the same thing.
func (q *Queue) lookers(l *laneState) *list.List {
	if l.limited {
		return &q.limited
	}
	return &q.roomless
}

// block keeps a lane from turns until it is opened.
func (q *Queue) block(l *laneState) {
	l.blocked = q.lookers(l).PushBack(l)
	for _, c := range l.classes {
		q.place(c)
	}
}

// open gives a lane turns again.
func (q *Queue) open(l *laneState) {
	l.stirred = true
	if l.blocked == nil {
		return
	}
	q.lookers(l).Remove(l.blocked)
	l.blocked = nil
	for _, c := range l.classes {
		q.place(c)
	}
}

// empty drops a class in which nothing waits, and its lane if it was the last.
func (q *Queue) empty(c *class) {
	l := c.lane
	l.classes = slices.DeleteFunc(l.classes, func(x *class) bool { return x == c })
	if len(l.classes) > 0 {
		return
	}
	if l.blocked != nil {
		q.lookers(l).Remove(l.blocked)
	}
	delete(q.lanes, l.id)
}
