package worker

import "time"

// state is what the health checks say of a worker.
type state uint8

const (
	starting state = iota // no check has passed or failed yet
	up
	down
)

// health is guarded by the pool's lock. Times are the pool's seconds.
type health struct {
	state     state
	silent    int     // health checks in a row without an answer
	streak    int     // failed answers in a row
	born      float64 // when its process was first known to be up: what was sent before was another's
	late      bool    // came after the pool had begun: its first up is a slow start too
	fell      float64 // when it went down; 0 = it is not down
	lastError string
	errorAt   time.Time
	errorBy   source
	errorOver bool // what found it has found none since
}

const (
	maxSilent = 2               // silent checks in a row that count as death, if nothing flows
	flowing   = 5 * time.Second // an answer's bytes within this time prove life; above any gap between chunked prefills
)

// checked takes the result of a health check: why it failed, "" if it did not; fatal if that proves death, else it was
// silence.
func (p *Pool) checked(id uint64, now time.Time, why string, fatal bool) {
	p.mu.Lock()
	w := p.watched[id]
	if w == nil {
		p.mu.Unlock()
		return
	}
	var events []event
	h := &w.health
	switch {
	case w.gone:
		p.checkedGone(w, now, why, fatal)
	case why == "":
		h.silent = 0
		h.good(byHealth)
		if h.state != up {
			events = p.raise(w, p.sec(now))
		}
	default:
		h.note(why, now, byHealth)
		if p.dead(w, now, fatal) {
			events = p.fell(w, p.sec(now), why)
		}
	}
	p.mu.Unlock()
	p.tell(now, events...)
}

// dead takes a check that failed and says whether it proves death.
func (p *Pool) dead(w *Worker, now time.Time, fatal bool) bool {
	h := &w.health
	h.silent++
	last := w.flow.Load()
	flows := last > 0 && now.Sub(p.began)-time.Duration(last) < flowing
	return fatal || h.state == starting || h.silent >= maxSilent && !flows
}

// raise marks w up. The caller holds p.mu.
func (p *Pool) raise(w *Worker, now float64) []event {
	h := &w.health
	if h.state == down || h.late {
		p.startSlow(w, now)
	}
	h.state, h.streak, h.late, h.born, h.fell, h.errorOver = up, 0, false, now, 0, true
	p.up++
	p.panicked = false
	return []event{{w: w, kind: raised}}
}

// fell marks w down. The caller holds p.mu.
func (p *Pool) fell(w *Worker, now float64, why string) []event {
	h := &w.health
	if h.state == down {
		return nil
	}
	if h.state == up {
		p.up--
	}
	h.state, h.streak, h.fell = down, 0, now
	w.breaker.reset()
	p.graceFrom(w)
	w.forget()
	return []event{{w: w, kind: dropped, why: why}}
}
