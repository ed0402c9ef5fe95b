package worker

import (
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Arrive takes a place at the worker for a request that was announced, and records how many tokens of its prompt the
// worker holds now. away: another worker still computes the prompt. Arrive returns false if the requests at the
// worker take all places, or if the worker is no longer up and another one takes the request. The caller must then
// end the ticket. Until it arrives, the request counts as load that strategies see. It keeps no other request out,
// and its time shows nothing.
func (t *Ticket) Arrive(cached int, away bool, now time.Time) bool {
	p, w, r := t.pool, t.worker, &t.request
	at := p.fleet.clock(now)
	p.mu.Lock()
	defer p.unlock()
	switch {
	case r.Ended || !r.coming: // it has its place, or needs none
		return true
	case w.packed(&p.fleet.conf.limits, r.holds(), nil), !w.isUp() && p.fleet.takesElsewhere(r, w.endpoint, at):
		return false
	}
	w.arrive(r)
	r.Sent, r.Away = at, away && r.Away
	if r.cached != cached {
		r.cached = cached
		r.est = p.fleet.conf.estimate(r.tokens, cached)
	}
	p.fleet.settle(w, at)
	p.fleet.enqueue(w, r)
	p.watchTrial(w, r)
	return true
}

// Computed records that the prompt of a request that was away has been computed: the worker has all that it needs.
func (t *Ticket) Computed(now time.Time) {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	if r := &t.request; r.Away && r.First == 0 {
		r.Sent, r.Away = t.pool.fleet.clock(now), false
	}
}

// Overdue records that the prompt has not been computed in time. If the worker has done nothing else in that time, it
// gets no more prompts, except for an occasional trial. One that took over from another worker, and has had it for less
// than half of that time, is not at fault.
func (t *Ticket) Overdue(now time.Time, limit time.Duration) {
	p, w, r := t.pool, t.worker, &t.request
	at := p.fleet.clock(now)
	p.mu.Lock()
	defer p.unlock()
	if r.Ended || w.place != configured || at-r.Sent < limit/2 {
		return
	}
	if hangs, begins := w.health.MissPrompt(&w.engine, &r.Request, at); hangs {
		p.fleet.watcher.CheckSoon(w.number)
		p.fleet.unpair(w, begins, at)
	}
}

// WorksOn reports whether the worker has done something since that time.
func (t *Ticket) WorksOn(since time.Time) bool {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	return t.worker.health.WorksOn(&t.worker.engine, t.pool.fleet.clock(since))
}

// HandedOver records that a decoder has got what a prefiller has computed, of a request that went there at that time.
func (p *Pool) HandedOver(prefiller, decoder *Worker, began, now time.Time) {
	p.mu.Lock()
	defer p.unlock()
	for _, w := range []*Worker{prefiller, decoder} {
		if w.place == configured && w.health.HandOver(p.fleet.clock(began), p.fleet.clock(now)) {
			p.fleet.noteAll(w.ranks, event{kind: paired}, p.fleet.clock(now))
		}
	}
}

// HandoverLost records that a decoder could not load what a prefiller has computed.
func (p *Pool) HandoverLost(prefiller, decoder *Worker, now time.Time) {
	p.mu.Lock()
	defer p.unlock()
	if prefiller.place != configured || decoder.place != configured {
		return
	}
	at := p.fleet.clock(now)
	switch blamed, begins := judge.LoseHandover(&prefiller.health, &decoder.health, at); blamed {
	case &prefiller.health:
		p.fleet.unpair(prefiller, begins, at)
	case &decoder.health:
		p.fleet.unpair(decoder, begins, at)
	}
}

// IsUnpaired reports whether a worker is not to be one of a pair now.
func (p *Pool) IsUnpaired(w *Worker, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.health.IsUnpaired(p.fleet.clock(now))
}

// Unpaired returns the ids of the workers that a fence admits and that are not paired now.
func (p *Pool) Unpaired(fence Fence, now time.Time) (ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	inside, at := p.fleet.labels.Mask(fence), p.fleet.clock(now)
	for _, w := range p.fleet.workers {
		if inside.Admit(w.labels) && w.health.IsUnpaired(at) {
			ids = append(ids, w.id)
		}
	}
	return ids
}

// MayHang reports whether a worker gets no prompts, or this one as a trial, since it did not compute one in time.
func (p *Pool) MayHang(w *Worker) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.health.MayHang()
}

// unpair records that a worker is not paired for a while. begins: it was before.
func (f *fleet) unpair(w *Worker, begins bool, now time.Duration) {
	if !begins {
		return
	}
	w.totals.ejected++
	why, apart := w.health.Unpaired()
	f.noteAll(w.ranks, event{kind: unpaired, why: why, wait: apart}, now)
}

// isSetAside reports whether a worker gets no requests as it only computes prompts for others, and these come to
// nothing.
func (w *Worker) isSetAside() bool {
	why, _ := w.health.Unpaired()
	return w.role == abi.RowPrefill && why != ""
}
