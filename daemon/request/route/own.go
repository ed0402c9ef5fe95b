package route

import (
	"sync"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/host"
)

// Owns are the numbers that a pool's strategies keep for its workers. They outlive a reload, since the strategies do
// not. Safe for concurrent use.
type Owns struct {
	mu sync.Mutex // guards all
	of map[owner]*host.Own
}

// owner is whose numbers they are. Another module of the same name begins anew: its numbers may mean something else. A
// shadow must have no effect, so it has numbers of its own beside those of the strategy that serves.
type owner struct {
	name, module string
	shadow       bool
}

// Share gives the strategies that are about to serve, and those that will look on as shadows, the numbers that their
// modules had under their names, and drops all others.
func (w *Owns) Share(serving, shadows []*host.Strategy) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := map[owner]*host.Own{}
	share := func(s *host.Strategy, shadow bool) {
		if s.Own() == nil {
			return
		}
		o := owner{name: s.Name(), module: s.SHA256(), shadow: shadow}
		s.Share(w.of[o])
		next[o] = s.Own()
	}
	for _, s := range serving {
		share(s, false)
	}
	for _, s := range shadows {
		share(s, true)
	}
	w.of = next
}

// Copy gives a strategy, loaded for a question, a copy of the numbers that its module has here.
func (w *Owns) Copy(s *host.Strategy) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, shadow := range []bool{false, true} {
		if o := w.of[owner{name: s.Name(), module: s.SHA256(), shadow: shadow}]; o != nil {
			s.Share(o.Copy())
			return
		}
	}
}

// keep drops the numbers of workers that the pool no longer has.
func (w *Owns) keep(stats []worker.Stats) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.of) == 0 {
		return
	}
	keys := make(map[uint64]bool, len(stats))
	for i := range stats {
		keys[worker.KeyOf(stats[i].ID)] = true
	}
	for _, own := range w.of {
		own.Keep(keys)
	}
}
