package waiting

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/request/queue"
)

// Config is how much a queue takes, and how long.
type Config struct {
	queue.Config
	Wait      time.Duration // for room
	WaitEmpty time.Duration // for a worker, while none is up that has the model
}

// wakeEvery is the interval of checks for room that no event announces.
const wakeEvery = 50 * time.Millisecond

// Queue is where requests of a pool wait. It is safe for concurrent use, and outlives configurations.
type Queue struct {
	order *queue.Queue
	conf  atomic.Pointer[Config]
	ticks atomic.Bool  // a tick is due
	apart atomic.Int64 // of those that wait, for a limit of their key

	mu    sync.Mutex // guards all below
	lanes map[uint64]*outlook
}

// outlook is what the requests know that the same workers can serve.
type outlook struct {
	waiting int
	empty   bool // the last look found no worker up
	since   time.Time
}

// New makes an empty queue.
func New(c Config) *Queue {
	q := &Queue{order: queue.New(c.Config), lanes: map[uint64]*outlook{}}
	q.conf.Store(&c)
	return q
}

// Configure applies c to later requests. Requests that wait already go on waiting, for the time that held when they
// entered.
func (q *Queue) Configure(c Config) {
	q.conf.Store(&c)
	q.order.Configure(c.Config)
	q.MayHaveCome()
}

// Depth returns how many requests wait. It takes no lock.
func (q *Queue) Depth() int { return q.order.Depth() }

// ForRoom returns how many requests wait for a worker, and not for a limit of their key. It takes no lock.
func (q *Queue) ForRoom() int { return q.order.Depth() - int(q.apart.Load()) }

// Waits reports whether a request of that lane waits for a limit of its key. While none of any lane does it takes no
// lock.
func (q *Queue) Waits(lane uint64) bool {
	if q.apart.Load() == 0 {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lanes[lane] != nil
}

// ForLimit returns how many requests wait for a limit of their key; none do in a nil queue.
func (q *Queue) ForLimit() int {
	if q == nil {
		return 0
	}
	return int(q.apart.Load())
}

// Longest returns for how long a request may wait.
func (q *Queue) Longest() time.Duration { return q.conf.Load().Wait }

// Counts returns what waits and what has become of the rest.
func (q *Queue) Counts() queue.Counts { return q.order.Counts() }

// State is what waits for the workers of a pool.
type State struct {
	Waiting int               `json:"waiting"`
	Bytes   int64             `json:"bytes"`
	Most    int               `json:"max_requests"`
	Flows   []queue.FlowCount `json:"flows,omitempty"` // those with the most requests first
}

// State returns what waits, nil if nothing does or q is nil. It lists n flows at most.
func (q *Queue) State(n int) *State {
	if q == nil || q.Depth() == 0 {
		return nil
	}
	c := q.order.Counts()
	return &State{Waiting: c.Depth, Bytes: c.Bytes, Most: q.conf.Load().MaxRequests, Flows: q.order.Flows(n)}
}

// Level is what waits of the classes that have one name.
type Level struct {
	Name     string
	Requests int
	Bytes    int64
}

// ClassName returns the name of a class for metrics, which must not have a label for each number.
func ClassName(class int) string {
	switch {
	case class < 0:
		return "low"
	case class > 0:
		return "high"
	}
	return "normal"
}

// Levels returns what waits by the names of the classes, also where nothing does.
func (q *Queue) Levels() []Level {
	all := []Level{{Name: "low"}, {Name: "normal"}, {Name: "high"}}
	for _, c := range q.order.Counts().Classes {
		i := slices.IndexFunc(all, func(l Level) bool { return l.Name == ClassName(c.Class) })
		all[i].Requests += c.Requests
		all[i].Bytes += c.Bytes
	}
	return all
}

// Waiting returns how many flows have requests that wait.
func (q *Queue) Waiting() int { return q.order.Waiting() }

// MayHaveCome gives a request the turn, since there may be room. It implements worker.Room.
func (q *Queue) MayHaveCome() {
	if q.order.Depth() == 0 {
		return
	}
	q.order.WakeForRoom()
	q.pass(time.Now())
}

// Limited are the requests of a queue that wait for a limit of their key. It implements limit.EndHearer.
type Limited struct {
	Of   *Queue
	Lane uint64
}

// MayHaveCome gives one of them the turn, since the limit may let it in.
func (l Limited) MayHaveCome() {
	if l.Of.apart.Load() == 0 {
		return
	}
	l.Of.order.WakeLane(l.Lane)
	l.Of.pass(time.Now())
}

// pass gives the turn to the next request.
func (q *Queue) pass(at time.Time) {
	if r := q.order.Next(at); r != nil {
		r.Owner.(*Wait).news <- Turn
	}
}

// tickSoon has the queue woken after a while, and again for as long as something waits.
func (q *Queue) tickSoon() {
	if q.ticks.CompareAndSwap(false, true) {
		time.AfterFunc(wakeEvery, q.tick)
	}
}

func (q *Queue) tick() {
	q.ticks.Store(false) // first: one that enters after the look at the depth starts another
	if q.order.Depth() > 0 {
		q.order.Wake()
		q.pass(time.Now())
		q.tickSoon()
	}
}

// enter counts a place in its lane.
func (q *Queue) enter(p *Wait, empty bool, at time.Time) {
	if p.Limited {
		q.apart.Add(1)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[p.Lane]
	if l == nil {
		l = &outlook{empty: empty, since: at}
		q.lanes[p.Lane] = l
	}
	l.waiting++
}

// leave counts a place down.
func (q *Queue) leave(p *Wait) {
	if p.Limited {
		q.apart.Add(-1)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lanes[p.Lane]; l.waiting > 1 {
		l.waiting--
	} else {
		delete(q.lanes, p.Lane)
	}
}

// found records what the last look for a worker of a lane found.
func (q *Queue) found(p *Wait, empty bool, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lanes[p.Lane]; l.empty != empty {
		l.empty, l.since = empty, at
	}
}

// end returns when a place's wait is over, and why.
func (q *Queue) end(p *Wait) (at time.Time, why News) {
	q.mu.Lock()
	l := *q.lanes[p.Lane]
	q.mu.Unlock()
	from, last := p.began, p.began.Add(p.room+p.worker)
	if l.since.After(from) {
		from = l.since
	}
	at, why = from.Add(p.room), Late
	if l.empty {
		at, why = from.Add(p.worker), Empty
	}
	if at.After(last) {
		at = last
	}
	if d := p.Deadline; !d.IsZero() && d.Before(at) {
		at, why = d, Overdue
	}
	return at, why
}
