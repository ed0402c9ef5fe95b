package queue

import (
	"maps"
	"time"

	"github.com/warmpath/warmpath/cache/parts/pile"
)

const (
	// mostDebt bounds the debt of a key in seconds, for a weight of 1.
	mostDebt = 600
	// catchUp bounds the seconds by which a lane that was blocked has its turns before others for that.
	catchUp = 10
	// forgetAfter is for how long accounts are kept while nothing waits.
	forgetAfter = 10 * time.Second
)

// account is what a key has had in one class, in all lanes and flows.
type account struct {
	holder
	name   accountName
	spent  float64          // seconds for its weight, those of the turns that are booked too
	served time.Time        // when one of its requests had its turn last, in any lane
	flows  pile.Pile[*flow] // the first makes room first
}

// Before has the one make room first that holds the most.
func (a *account) Before(other *account) bool { return a.share > other.share }

func (a *account) Place() *int { return &a.spot }

type accountName struct {
	class int
	key   string
}

// level has the accounts of one class, over all lanes.
type level struct {
	sums
	now      float64             // seconds that a key had whose turn came last, for its weight
	accounts pile.Pile[*account] // with something that waits: the first makes room first
}

// level returns that of a class.
func (q *Queue) level(number int) *level {
	l := q.levels[number+MaxClass]
	if l == nil {
		l = new(level)
		q.levels[number+MaxClass] = l
	}
	return l
}

// account returns that of a name, or a new one, which has had nothing.
func (q *Queue) account(name accountName, weight float64) *account {
	a := q.accounts[name]
	if a == nil {
		if len(q.accounts) >= MaxFlows {
			maps.DeleteFunc(q.accounts, func(_ accountName, a *account) bool { return a.requests == 0 })
		}
		a = &account{name: name, holder: holder{weight: weight}}
		q.accounts[name] = a
	}
	return a
}

// forget drops an account without debt and without waiting requests.
func (q *Queue) forget(a *account) {
	if a.requests == 0 && a.spent <= q.level(a.name.class).now {
		delete(q.accounts, a.name)
	}
}

// book gives a key its next turn in a lane: when the others have had what it has had. It is charged for that at once,
// so that its turns in other lanes come after this one.
func (q *Queue) book(k *key, at time.Time) {
	a, c := k.account, k.class
	from := max(a.spent, c.level)
	k.booked = k.mean()
	a.spent = from + k.booked/a.weight
	k.tag = min(from, c.level+mostDebt) - c.lag
	q.booked++
	k.number = q.booked
	k.served, k.since = at, at
	c.keys.Put(k)
	c.ages.Put((*agedKey)(k))
	q.place(c)
}

// spend charges a key for a request whose turn it was.
func (q *Queue) spend(k *key, r *Request) {
	a, c, l := k.account, k.class, q.level(k.name.class)
	if late := l.now - catchUp - c.first(); late > 0 {
		c.lag += late
	}
	c.level, l.now = max(c.level, c.first()), max(l.now, c.first())
	cost := r.cost()
	if r.Limited { // it has not gone to a worker
		cost = 0
	}
	a.spent = max(a.spent+(cost-k.booked)/a.weight, k.tag+c.lag+cost/a.weight)
	k.booked = 0
}

// Charge is what the key of a request was charged for that is at a worker. nil = nobody was.
type Charge struct {
	q       *Queue
	name    keyName
	weight  float64
	paid    float64
	prefill float64
	kv      float64
	since   time.Time
}

// charge returns what a request is charged for from now on.
func (q *Queue) charge(r *Request, at time.Time) *Charge {
	return &Charge{q: q, name: nameOf(r).keyName, weight: r.Weight, paid: r.cost(), prefill: r.Cost, kv: r.KV,
		since: at}
}

// From has the place begin later than the turn: what goes before it is done elsewhere.
func (c *Charge) From(at time.Time) {
	if c != nil {
		c.since = at
	}
}

// End corrects the charge when the worker has done its work: by how long the request had its place. It does so once.
func (c *Charge) End(at time.Time) {
	if c == nil || c.q == nil {
		return
	}
	q := c.q
	c.q = nil
	took := between(at.Sub(c.since).Seconds(), 0, mostCost)
	more := (c.prefill + took*(1+c.kv) - c.paid) / c.weight
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.Busy(at) {
		return
	}
	a := q.account(c.name.account(), c.weight)
	a.spent += more
	if k := q.keys[c.name]; k != nil {
		k.tag += more
		k.class.keys.Put(k)
		q.place(k.class)
	}
	q.forget(a)
}

// Began charges the key of a request for which a worker had room, so that it did not wait. While no request waits,
// and none has waited recently, no key is charged.
func (q *Queue) Began(r *Request, at time.Time) *Charge {
	r.clamp()
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.Busy(at) {
		return nil
	}
	a := q.account(nameOf(r).account(), r.Weight)
	a.spent = max(a.spent, q.level(r.Class).now) + r.cost()/r.Weight
	return q.charge(r, at)
}

// Busy reports whether requests wait, or have of late. It takes no lock.
func (q *Queue) Busy(at time.Time) bool {
	return q.depth.Load() > 0 || at.UnixNano()-q.rested.Load() < int64(forgetAfter)
}
