package worker

import (
	"encoding/json"
	"time"
)

// What is asked of the workers comes in here, by the number that Watcher.Watch gave. A number that is not watched any
// more is of a worker that has gone meanwhile, and what it said is ignored.

// Phase reports whether the worker is up, and whether an answer of it said that it is shutting down.
func (p *Pool) Phase(id uint64) (isUp, isLeaving bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.fleet.watched[id]
	return w != nil && w.isUp(), w != nil && w.breaker.cause == leaving
}

// Healthy records a good health check.
func (p *Pool) Healthy(id uint64, now time.Time) {
	p.report(id, func(w *Worker) { p.fleet.healthy(w, p.fleet.sec(now)) })
}

// Silent records a health check without an answer.
func (p *Pool) Silent(id uint64, why string, now time.Time) {
	p.report(id, func(w *Worker) { p.fleet.unhealthy(w, p.fleet.sec(now), why, false) })
}

// Dead records a health check that proves death: nothing listens, or the engine answered 5xx.
func (p *Pool) Dead(id uint64, why string, now time.Time) {
	p.report(id, func(w *Worker) { p.fleet.unhealthy(w, p.fleet.sec(now), why, true) })
}

// Unchecked records that no health check could be made. That says nothing of the worker.
func (p *Pool) Unchecked(id uint64, why string, now time.Time) {
	p.report(id, func(w *Worker) { w.note(why, now, byHealth) })
}

// Listed records the model ids that a worker lists, each once, and the entry of /v1/models of each. Entries are kept
// for each worker: vLLM writes a new time and a new permission id into each answer.
func (p *Pool) Listed(id uint64, ids []string, entries []json.RawMessage) {
	p.report(id, func(w *Worker) { p.fleet.list(w, ids, entries) })
}

// Unlisted records that a worker's models could not be read.
func (p *Pool) Unlisted(id uint64, why string, now time.Time) {
	p.report(id, func(w *Worker) { w.note(why, now, byModels) })
}

// Scraped records the figures of a page of metrics.
func (p *Pool) Scraped(id uint64, m Metrics, now time.Time) {
	p.report(id, func(w *Worker) {
		if w.place == configured {
			p.fleet.scraped(w, m, p.fleet.sec(now))
		}
	})
}

// Unscraped records that a worker's metrics could not be read.
func (p *Pool) Unscraped(id uint64, why string, now time.Time) {
	p.report(id, func(w *Worker) { w.note(why, now, byMetrics) })
}

// report calls take for the worker of that number, with the lock held.
func (p *Pool) report(id uint64, take func(w *Worker)) {
	p.mu.Lock()
	defer p.unlock()
	if w := p.fleet.watched[id]; w != nil {
		take(w)
	}
}
