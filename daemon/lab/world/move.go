package world

import (
	"time"

	"github.com/warmpath/warmpath/daemon/lab/traffic"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// Mover is a Router that takes a worker out of the choice before its process ends, and may move its conversations to
// other workers.
type Mover interface {
	Router
	// Leaves is called when a worker will end after within, and Stays when one has come, or is up again. Stays returns for
	// how long there may be moves to it.
	Leaves(now time.Duration, worker int, within time.Duration)
	Stays(now time.Duration, worker int) time.Duration
	// Move returns a prompt that a worker is to compute now, nil if there is none. Moved is called when it has done so.
	Move(now time.Duration) (m *Move, worker int)
	Moved(now time.Duration, m *Move, ok bool)
	// Wished reports whether a strategy has asked for something to be done with a cache that is not done yet.
	Wished(now time.Duration) bool
}

// Move is a prompt that a worker computes for no client.
type Move struct {
	Text []byte
	Own  any // the router's

	seq    engine.Sequence
	router int
}

// Prompt returns its length in tokens, and how many of them the worker had cached.
func (m *Move) Prompt() (tokens, cached int) { return m.seq.PromptTokens(), m.seq.CachedTokens() }

// moveEvery is how often routers are asked for moves while a worker is about to leave, wishEvery how often while a
// strategy's wishes wait, as in the daemon.
const moveEvery, wishEvery = 10 * time.Millisecond, 50 * time.Millisecond

// leave lets a worker end in an orderly way: its routers know of it for a time, then its last requests end.
func (w *world) leave(f Fate) {
	for _, r := range w.routers {
		if r, moves := r.(Mover); moves {
			r.Leaves(w.now, f.Worker, f.Within)
		}
	}
	w.askMoves(w.now+f.Within, moveEvery)
	w.at(w.now+f.Within, func() { w.endIdle(f, w.now) })
}

// askMoves has the routers move conversations until a time.
func (w *world) askMoves(until, every time.Duration) {
	for i, r := range w.routers {
		mover, is := r.(Mover)
		for is {
			m, to := mover.Move(w.now)
			if m == nil {
				break
			}
			w.move(m, i, to)
		}
	}
	if w.now+every < until {
		w.at(w.now+every, func() { w.askMoves(until, every) })
	}
}

// move has a worker compute a prompt.
func (w *world) move(m *Move, router, worker int) {
	to := w.machines[worker]
	m.router = router
	m.seq = engine.NewSequence(traffic.AppendTokens(nil, m.Text), "", 0, w.Engine.BlockTokens)
	m.seq.Owner, m.seq.MaxTokens, m.seq.Aside = m, 1, true
	w.run.Moves++
	if err := to.engine.Submit(w.now-to.began, &m.seq); err != nil {
		w.routers[router].(Mover).Moved(w.now, m, false)
		return
	}
	to.moves = append(to.moves, m)
	to.plan()
}

// idlePatience bounds the wait for the last requests of a worker that leaves.
const idlePatience = 5 * time.Minute

// endIdle ends a worker's process when it has no request.
func (w *world) endIdle(f Fate, since time.Duration) {
	m := w.machines[f.Worker]
	if m.engine == nil {
		return
	}
	if len(m.inFlight)+len(m.moves) > 0 && w.now-since < idlePatience {
		w.at(w.now+moveEvery, func() { w.endIdle(f, since) })
		return
	}
	w.kill(m)
	if f.Back > 0 {
		w.at(w.now+f.Back, func() { w.befall(Fate{Worker: f.Worker, Kind: Comes}) })
	}
}

// endMove reports a move whose worker has computed it, or has died.
func (w *world) endMove(at *machine, m *Move, ok bool) {
	for i, other := range at.moves {
		if other == m {
			at.moves = append(at.moves[:i], at.moves[i+1:]...)
			break
		}
	}
	if ok {
		tokens, cached := m.Prompt()
		w.run.MoveTokens += int64(tokens - cached)
	}
	w.routers[m.router].(Mover).Moved(w.now, m, ok)
}
