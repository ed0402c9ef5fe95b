package daemon

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/relocate"
)

const (
	// moveTimeout bounds one move: a prompt of a million tokens takes a minute or two.
	moveTimeout = 2 * time.Minute
)

var errKeepsNothing = errors.New("the pool has nothing to move: set hand_over_bytes of the pool, as 67108864, and " +
	"wait until its conversations have had another turn; or set continue, as 1, for its streams")

// leaving are the workers of a pool whose conversations are being moved.
type leaving struct {
	fulfils atomic.Bool // a wish for a cache is being fulfilled

	mu    sync.Mutex       // guards moves
	moves map[string]moves // by the worker's id

	// Of rebalance alone: what it saw the last time.
	from    *setup          // drained is of
	drained map[string]bool // the configured workers, and whether they are drained
	takers  []string        // those that take requests; nil = it has not looked
}

// moves are those away from one worker, or to one that has come.
type moves struct {
	plan *relocate.Plan
	stop context.CancelFunc
	over chan struct{} // is closed when they have ended
}

// end ends the moves away from a worker, if there are any. The caller holds l.mu.
func (l *leaving) end(id string) {
	if m, ok := l.moves[id]; ok {
		m.stop()
		<-m.over // a move that is under way is ended by its context
		delete(l.moves, id)
	}
}

// forget drops moves that are over, unless others have begun since.
func (l *leaving) forget(id string, over chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.moves[id].over == over {
		delete(l.moves, id)
	}
}

// HandOver implements operator.Leaving. The worker gets no new conversations from now on, and its own go on there until
// each has been moved or within is over. Other workers go on with its streams.
func (p *pool) HandOver(id string, within time.Duration) (conversations, requests int, known bool, err error) {
	conversations, requests, known, err = p.handOver(id, within)
	if known && err == nil {
		p.route.Book.Told.Add(id, time.Now().Add(within))
	}
	return conversations, requests, known, err
}

// handOver is HandOver without the word to other routers.
func (p *pool) handOver(id string, within time.Duration) (conversations, requests int, known bool, err error) {
	book, continues := &p.route.Book, p.set.Load().conf.Continue > 0
	if book.Keeps() == 0 && !continues {
		return 0, 0, true, errKeepsNothing
	}
	p.leaving.mu.Lock()
	defer p.leaving.mu.Unlock()
	p.leaving.end(id)
	plan := book.Plan(id, time.Now(), time.Now().Add(within))
	if !p.route.Workers.Drain(id, true, time.Now()) {
		plan.End()
		return 0, 0, false, nil
	}
	var streams []worker.Holder
	if continues {
		streams = p.route.Workers.Holders(id)
	}
	p.run(id, within, plan, streams)
	return plan.All(), len(streams), true, nil
}

// leave has other workers go on with streams, one by one and the oldest first, in the first half of the time. So not
// all prompts come at once, and what ends soon stays.
func leave(ctx context.Context, streams []worker.Holder, within time.Duration) {
	for _, s := range streams {
		if s, ok := s.(interface{ Leave() }); ok {
			s.Leave()
		}
		if !sleep(ctx, within/time.Duration(2*len(streams))) {
			return
		}
	}
}

// Stay implements operator.Leaving.
func (p *pool) Stay(id string) {
	p.leaving.mu.Lock()
	defer p.leaving.mu.Unlock()
	p.leaving.end(id)
}

// move moves conversations away from a worker, by a plan, until ctx ends.
func (p *pool) move(ctx context.Context, id string, plan *relocate.Plan) {
	began := time.Now()
	if plan.All() > 0 {
		p.log.Info("conversations move to or from a worker that joins or leaves", "worker", id, "conversations", plan.All())
	}
	var lastError atomic.Value
	var pieces sync.WaitGroup
	for p.awaitCalm(ctx) {
		m, wait := plan.Next(time.Now())
		switch {
		case m != nil:
			pieces.Go(func() {
				if err := p.moveOne(ctx, plan, m); err != nil {
					lastError.Store(err.Error())
				}
			})
		case wait > 0:
			sleep(ctx, wait)
		}
		if m == nil && wait == 0 {
			break
		}
	}
	pieces.Wait()
	said := plan.End()
	last, _ := lastError.Load().(string)
	log := p.log
	if plan.All() == 0 && said == (relocate.Progress{}) {
		return
	}
	if said.Bytes > 0 {
		log = log.With("kv_bytes", said.Bytes)
	}
	log.Info("conversations have moved", "worker", id, "moved", said.Moved, "tokens", said.Tokens, "used", said.Used,
		"loaded", said.Loaded, "failed", said.Failed, "not_tried", plan.All()-said.Moved-said.Failed,
		"took", time.Since(began).Round(time.Millisecond), "last_error", last)
}

// moveOne has a worker compute a piece of a conversation's last prompt.
func (p *pool) moveOne(ctx context.Context, plan *relocate.Plan, m *relocate.Move) error {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	at := time.Now()
	to, cached, err := p.daemon.server.Move(ctx, &p.daemon.epoch().Epoch, p.name, m)
	if plan.Moved(m, to, cached, at, time.Now()) && err == nil && m.Session.ID != "" {
		p.route.Sessions.Rebind(m.Session, m.From, to, time.Now())
	}
	return err
}

// fulfil does what strategies wish for caches, until nothing is due.
func (p *pool) fulfil() {
	defer p.leaving.fulfils.Store(false)
	var pieces sync.WaitGroup
	defer pieces.Wait()
	for p.awaitCalm(p.life) {
		t, m, soon := p.route.Book.Due(time.Now())
		switch {
		case m != nil:
			pieces.Go(func() { p.fulfilOne(t, m) })
		case !soon:
			return
		default:
			sleep(p.life, 50*time.Millisecond)
		}
	}
}

// fulfilOne sends a piece of a wish.
func (p *pool) fulfilOne(t *relocate.Task, m *relocate.Move) {
	ctx, cancel := context.WithTimeout(p.life, moveTimeout)
	defer cancel()
	at := time.Now()
	to, cached, err := p.daemon.server.Move(ctx, &p.daemon.epoch().Epoch, p.name, m)
	if err != nil {
		p.log.Debug("what a strategy asked for a cache has failed", "worker", m.To, "error", err)
	}
	p.route.Book.Did(t, m, relocate.Taken{By: to, Cached: cached, Took: time.Since(at)}, time.Now())
}

// leaveTime is how long conversations may move away from a worker that is drained by its pod's end or by the file of
// workers. Kubernetes gives a pod 30 s by default.
const leaveTime = 25 * time.Second

// rebalance begins the moves that no command asks for: away from a worker whose configuration drains it, or that has
// gone from it, and to one that has come. It is called once a second.
func (p *pool) rebalance(now time.Time) {
	for id, until := range p.route.Book.Asked.Take() {
		switch {
		case until.IsZero(): // another router puts it back
			p.Stay(id)
		case !slices.Contains(p.Moving(), id):
			_, _, _, _ = p.handOver(id, until.Sub(now)) // the other one has said what is in the way, if anything is
		}
	}
	set := p.set.Load()
	if p.route.Book.Keeps() == 0 && set.conf.Continue == 0 {
		return
	}
	if p.route.Book.Wished(now) && !p.leaving.fulfils.Swap(true) {
		p.running.Go(p.fulfil)
	}
	l := &p.leaving
	if set != l.from {
		p.compare(set, now)
	}
	takers := p.route.Workers.Takers(now)
	for _, id := range takers {
		if l.takers == nil || slices.Contains(l.takers, id) {
			continue
		}
		if l.movesAway() { // their moves fill it too
			takers = slices.DeleteFunc(takers, func(other string) bool { return other == id })
			break
		}
		if plan := p.route.Book.Join(id, now); plan != nil {
			p.begin(id, relocate.JoinTime, plan)
		}
	}
	l.takers = takers
}

// compare begins the moves away from workers that a new configuration drains or no longer has. One that only leaves the
// router's subset keeps its conversations.
func (p *pool) compare(set *setup, now time.Time) {
	drained := make(map[string]bool, len(set.all))
	for i := range set.all {
		drained[set.all[i].ID] = set.all[i].Drain
	}
	l := &p.leaving
	for id, drains := range drained {
		if began, known := l.drained[id]; drains && known && !began {
			_, _, _, _ = p.handOver(id, leaveTime)
		}
	}
	for id := range l.drained {
		if _, known := drained[id]; !known {
			if plan := p.route.Book.Plan(id, now, now.Add(leaveTime)); plan.All() > 0 {
				p.begin(id, leaveTime, plan)
			} else {
				plan.End()
			}
		}
	}
	l.from, l.drained = set, drained
}

// movesAway reports whether conversations move away from a worker.
func (l *leaving) movesAway() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.moves {
		if !m.plan.Joins() {
			return true
		}
	}
	return false
}

// begin begins the moves of a plan, in place of those away from or to the same worker.
func (p *pool) begin(id string, within time.Duration, plan *relocate.Plan) {
	p.leaving.mu.Lock()
	defer p.leaving.mu.Unlock()
	p.leaving.end(id)
	p.run(id, within, plan, nil)
}

// Moving implements operator.Leaving.
func (p *pool) Moving() []string {
	p.leaving.mu.Lock()
	defer p.leaving.mu.Unlock()
	var ids []string
	for id, m := range p.leaving.moves {
		if !m.plan.Idle() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// run makes the moves of a plan, and has other workers go on with streams. The caller holds p.leaving.mu.
func (p *pool) run(id string, within time.Duration, plan *relocate.Plan, streams []worker.Holder) {
	ctx, cancel := context.WithTimeout(p.life, within)
	m := moves{plan: plan, stop: cancel, over: make(chan struct{})}
	p.leaving.moves[id] = m
	p.running.Go(func() {
		defer p.leaving.forget(id, m.over)
		defer close(m.over)
		defer cancel()
		var both sync.WaitGroup
		both.Go(func() { leave(ctx, streams, within) })
		if p.route.Book.Keeps() > 0 {
			p.move(ctx, id, plan)
		}
		both.Wait()
	})
}

// awaitCalm waits until no request of a client waits in the pool's queue. It returns false if ctx ends first.
func (p *pool) awaitCalm(ctx context.Context) bool {
	for p.queue.ForRoom() > 0 {
		if !sleep(ctx, 50*time.Millisecond) {
			return false
		}
	}
	return ctx.Err() == nil
}

// sleep waits for d, and returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
