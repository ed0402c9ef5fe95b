package worker

import (
	"math"
	"time"
)

// Phase reports whether the worker is up, and whether its answers said that it is going.
func (p *Pool) Phase(id uint64) (isUp, isLeaving bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.watched[id]
	return w != nil && w.health.state == up, w != nil && w.breaker.cause == leaving
}

// Healthy takes a good health check.
func (p *Pool) Healthy(id uint64, now time.Time) { p.checked(id, now, "", false) }

// Silent takes a health check without an answer.
func (p *Pool) Silent(id uint64, why string, now time.Time) { p.checked(id, now, why, false) }

// Dead takes a health check that proves death: nothing listens, or the engine says 5xx.
func (p *Pool) Dead(id uint64, why string, now time.Time) { p.checked(id, now, why, true) }

// Unchecked takes note that no health check could be made, which says nothing of the worker.
func (p *Pool) Unchecked(id uint64, why string, now time.Time) { p.failed(id, why, now, byHealth) }

// Unlisted takes note that a worker's models could not be read.
func (p *Pool) Unlisted(id uint64, why string, now time.Time) { p.failed(id, why, now, byModels) }

// Unscraped takes note that a worker's metrics could not be read.
func (p *Pool) Unscraped(id uint64, why string, now time.Time) { p.failed(id, why, now, byMetrics) }

func (p *Pool) failed(id uint64, why string, now time.Time, by source) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.watched[id]; w != nil {
		w.health.note(why, now, by)
	}
}

// Scraped takes a page's figures. A worker that was killed and came back between two health checks shows only by its
// process' start.
func (p *Pool) Scraped(id uint64, m Metrics, now time.Time) {
	p.mu.Lock()
	w := p.watched[id]
	if w == nil || w.gone {
		p.mu.Unlock()
		return
	}
	var events []event
	if was := w.process; was != 0 && m.Process != 0 && math.Abs(m.Process-was) > 1 {
		w.forget()
		w.totals.restarts++
		w.breaker.reset()
		w.health.born, w.health.streak = p.sec(now), 0
		p.startSlow(w, p.sec(now))
		p.panicked = false
		events = append(events, event{w: w, kind: restarted})
	}
	if m.Process != 0 {
		w.process = m.Process
	}
	if w.scraped > 0 {
		p.told(w, w.metrics, m, p.sec(now))
	}
	w.metrics, w.scraped = m, p.sec(now)
	if m.Block > 0 {
		w.block.Store(int32(min(m.Block, math.MaxInt32)))
	}
	w.health.good(byMetrics)
	events = append(events, w.resize()...)
	p.mu.Unlock()
	p.tell(now, events...)
}
