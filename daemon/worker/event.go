package worker

import "time"

// event is a change to log and to tell the hooks, after the lock is given back.
type event struct {
	w      *Worker
	kind   kind
	why    string
	tokens int // registered, resized: the capacity; removed, drained: requests in flight
	wait   time.Duration
}

// kind is in the order in which the events of one update are told: a slot is dropped before it is taken again.
type kind uint8

const (
	rejected kind = iota
	removed
	released
	registered
	resized
	drained
	undrained
	raised
	dropped
	ejected
	told
	closed
	restarted
	inPanic
)

func (p *Pool) tell(now time.Time, events ...event) {
	if len(events) == 0 {
		return
	}
	p.mark(events, now)
	if p.hooks.OnChange != nil {
		defer p.hooks.OnChange()
	}
	for _, e := range events {
		p.write(e)
		switch e.kind {
		case removed, released, dropped:
			call(p.hooks.OnDown, e.w)
		case restarted:
			call(p.hooks.OnRestart, e.w)
		case registered, resized:
			if p.hooks.OnCapacity != nil {
				p.hooks.OnCapacity(e.w.slot, e.tokens)
			}
		}
	}
}

func call(hook func(uint32), w *Worker) {
	if hook != nil {
		hook(w.slot)
	}
}

func (p *Pool) write(e event) {
	switch e.kind {
	case rejected:
		p.log.Error("worker rejected", "why", e.why)
		return
	case inPanic:
		p.log.Error("no worker is up: requests go to workers that are not (panic)")
		return
	}
	l := p.log.With("worker", e.w.id)
	switch e.kind {
	case registered:
		l.Info("worker registered", "url", e.w.shown, "slot", e.w.slot)
	case removed:
		l.Info("worker draining", "why", "no longer configured", "in_flight", e.tokens)
	case released:
		l.Info("worker removed")
	case drained:
		l.Info("worker draining", "why", "asked to", "in_flight", e.tokens)
	case undrained:
		l.Info("worker no longer draining")
	case raised:
		l.Info("worker up")
	case dropped:
		l.Warn("worker down", "why", e.why)
	case ejected:
		l.Warn("worker ejected", "why", e.why, "for", e.wait)
	case told:
		l.Warn("worker taken for draining", "why", e.why, "in_flight", e.tokens, "tried_again_in", e.wait)
	case closed:
		l.Info("worker answers again")
	case restarted:
		l.Warn("worker restarted: its cache is empty")
	case resized:
		l.Info("worker capacity", "tokens", e.tokens)
	}
}
