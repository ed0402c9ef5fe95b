package world

import (
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// befall lets a fate happen to its worker.
func (w *world) befall(f Fate) {
	m := w.machines[f.Worker]
	switch {
	case f.Kind == Dies && m.engine != nil:
		w.kill(m)
	case f.Kind == Comes && m.engine == nil:
		if err := w.raise(m); err != nil {
			w.err = err
		}
	case f.Kind == Leaves && m.engine != nil:
		w.leave(f)
	case f.Kind == Slows:
		m.config.Model.Slowness = f.Slowness
		if m.engine != nil {
			m.engine.Slow(f.Slowness)
			m.plan()
		}
	}
}

// raise starts a worker's process. The routers see it up, and read its metrics at once.
func (w *world) raise(m *machine) error {
	if err := m.start(w.now); err != nil {
		return err
	}
	within := time.Duration(0)
	for _, r := range w.routers {
		r.Up(w.now, m.number)
		if r, moves := r.(Mover); moves && w.now > 0 {
			within = max(within, r.Stays(w.now, m.number))
		}
	}
	w.scrape(m)
	if within > 0 {
		w.askMoves(w.now+within, moveEvery)
	}
	return nil
}

// kill ends a worker's process. What had no first token is sent elsewhere, the rest breaks off.
func (w *world) kill(m *machine) {
	lost := m.stop(w.now)
	for _, r := range w.routers {
		r.Down(w.now, m.number)
	}
	for _, q := range lost {
		e := trial.End{Status: trial.Repeated, Cached: -1}
		if q.first {
			e.Status = trial.Broken
			e.Output = q.seq.OutputTokens()
		}
		w.routers[q.router].End(w.now, q, e)
		w.called(q.router)
	}
	for _, r := range w.routers {
		r.Lost(w.now, m.number)
	}
	w.askAll()
	for _, move := range slices.Clone(m.moves) {
		w.endMove(m, move, false)
	}
	for _, q := range lost {
		o := &w.run.Outcomes[q.ID]
		if q.first {
			o.Status, o.Output = trial.Broken, q.seq.OutputTokens()
			w.finish(q)
			continue
		}
		q.started, o.Cached, o.CPU, o.Shared = false, 0, 0, 0
		w.send(q)
	}
}

// scrape gives the routers a page of a worker's metrics.
func (w *world) scrape(m *machine) {
	if m.engine == nil {
		return
	}
	s := m.engine.Stats()
	for _, r := range w.routers {
		r.Scraped(w.now, m.number, &s)
	}
	w.askAll()
}

func (w *world) scrapeOften(m *machine) {
	w.scrape(m)
	w.at(w.now+w.Scrape, func() { w.scrapeOften(m) })
}

// tick is the routers' second.
func (w *world) tick() {
	wished := false
	for _, r := range w.routers {
		r.Tick(w.now)
		mover, is := r.(Mover)
		wished = wished || is && mover.Wished(w.now)
	}
	if wished {
		w.askMoves(w.now+time.Second, wishEvery)
	}
	w.askAll()
	w.at(w.now+time.Second, w.tick)
}

// sync plays the sync of that number, and plans the next one.
func (w *world) sync(number int) {
	for _, m := range w.machines {
		if m.engine != nil {
			m.engine.Pause(engine.Frozen)
			m.plan()
		}
	}
	for _, r := range w.routers {
		if r, learns := r.(Trainee); learns {
			r.Paused(w.now)
		}
	}
	w.at(w.now+w.Sync.Takes, func() { w.goOn(number) })
	w.at(w.now+w.Sync.Every, func() { w.sync(number + 1) })
}

func (w *world) goOn(version int) {
	for _, r := range w.routers {
		if r, learns := r.(Trainee); learns {
			r.Updated(w.now, version)
		}
	}
	for _, m := range w.machines {
		if e := m.engine; e != nil {
			e.SetWeights(uint32(version))
			e.ResetCache(true, true)
			e.Resume(w.now - m.began)
			w.observe(m)
		}
	}
	w.askAll()
}
