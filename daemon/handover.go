package daemon

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/relocate"
)

const (
	// movesAtOnce bounds the moves at a time. There are never more of them than workers that can take one.
	movesAtOnce = 16

	// restOfMove is the pause after a move, as a multiple of the time that the move took. With 1, moves take at most half
	// of the time of the workers that they go to.
	restOfMove = 1

	// moveTimeout bounds one move: a prompt of a million tokens takes a minute or two.
	moveTimeout = 2 * time.Minute
)

var errKeepsNothing = errors.New("the pool has nothing to move: set hand_over_bytes of the pool, as 67108864, and " +
	"wait until its conversations have had another turn; or set continue, as 1, for its streams")

// leaving are the workers of a pool whose conversations are being moved.
type leaving struct {
	mu    sync.Mutex       // guards moves
	moves map[string]moves // by the worker's id
}

// moves are those away from one worker.
type moves struct {
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
	book, continues := &p.route.Book, p.set.Load().conf.Continue > 0
	if book.Keeps() == 0 && !continues {
		return 0, 0, true, errKeepsNothing
	}
	p.leaving.mu.Lock()
	defer p.leaving.mu.Unlock()
	p.leaving.end(id)
	all := book.Leave(id, time.Now())
	if !p.route.Workers.Drain(id, true, time.Now()) {
		book.Release(all)
		return 0, 0, false, nil
	}
	var streams []worker.Holder
	if continues {
		streams = p.route.Workers.Holders(id)
	}
	ctx, cancel := context.WithTimeout(p.life, within)
	m := moves{stop: cancel, over: make(chan struct{})}
	p.leaving.moves[id] = m
	p.running.Go(func() {
		defer p.leaving.forget(id, m.over)
		defer close(m.over)
		defer cancel()
		var both sync.WaitGroup
		both.Go(func() { leave(ctx, streams, within) })
		if book.Keeps() > 0 {
			p.move(ctx, id, all)
		}
		both.Wait()
	})
	return len(all), len(streams), true, nil
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

// move moves conversations away from a worker, in their order, until ctx ends.
func (p *pool) move(ctx context.Context, id string, all []*relocate.Conversation) {
	book, began := &p.route.Book, time.Now()
	defer book.Release(all)
	p.log.Info("conversations move to other workers before the worker leaves", "worker", id, "conversations", len(all))
	var next, moved, failed atomic.Int32
	var lastError atomic.Value
	lane := func() {
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= len(all) {
				return
			}
			r := book.Next(all[i])
			if r == nil || !p.awaitCalm(ctx) {
				continue
			}
			at := time.Now()
			to, err := p.moveOne(ctx, r)
			if err != nil {
				failed.Add(1)
				lastError.Store(err.Error())
			} else {
				moved.Add(1)
				if r.Session.ID != "" {
					p.route.Sessions.Rebind(r.Session, id, to, time.Now())
				}
			}
			book.Moved(all[i], to)
			sleep(ctx, restOfMove*time.Since(at))
		}
	}
	var lanes sync.WaitGroup
	for range min(movesAtOnce, max(1, p.route.Workers.Up(time.Now()))) {
		lanes.Go(lane)
	}
	lanes.Wait()
	last, _ := lastError.Load().(string)
	p.log.Info("conversations have moved", "worker", id, "moved", moved.Load(), "failed", failed.Load(),
		"not_tried", len(all)-int(moved.Load()+failed.Load()), "took", time.Since(began).Round(time.Millisecond),
		"last_error", last)
}

// moveOne has another worker compute a conversation's last prompt, and returns which did.
func (p *pool) moveOne(ctx context.Context, r *relocate.Request) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	return p.daemon.server.Move(ctx, &p.daemon.epoch().Epoch, p.name, r)
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
