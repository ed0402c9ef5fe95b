package worker

import "time"

// state is what the health checks say of a worker.
type state uint8

const (
	starting state = iota // no check has passed or failed yet
	up
	down
)

func (s state) String() string { return [...]string{"starting", "up", "down"}[s] }

// health is guarded by the pool's lock. Times are the pool's seconds.
type health struct {
	state     state
	silent    int     // health checks in a row without an answer
	streak    int     // failed answers in a row
	born      float64 // when its process was first known to be up: what was sent before was another's
	late      bool    // came after the pool had begun: its first up is a slow start too
	lastError string
	errorAt   time.Time
}

const (
	maxSilent = 2               // silent checks in a row that count as death, if nothing flows
	flowing   = 5 * time.Second // an answer's bytes within this time prove life; above any gap between chunked prefills
)

// checked takes the result of a health check: why it failed, "" if it did not; fatal if that proves death (nothing
// listens, or the engine says 5xx), else it was silence.
func (p *Pool) checked(w *Worker, now time.Time, why string, fatal bool) {
	p.mu.Lock()
	var events []event
	h := &w.health
	switch {
	case w.gone:
	case why == "":
		h.silent = 0
		if h.state != up {
			events = p.raise(w, p.sec(now))
		}
	default:
		h.silent++
		h.note(why, now)
		flows := now.Sub(time.Unix(0, w.flow.Load())) < flowing
		if fatal || h.state == starting || h.silent >= maxSilent && !flows {
			events = p.fell(w, why)
		}
	}
	p.mu.Unlock()
	p.tell(events...)
}

func (h *health) note(why string, now time.Time) { h.lastError, h.errorAt = why, now }

// raise marks w up. The caller holds p.mu.
func (p *Pool) raise(w *Worker, now float64) []event {
	h := &w.health
	if h.state == down || h.late {
		p.startSlow(w, now)
	}
	h.state, h.streak, h.late, h.born = up, 0, false, now
	p.up++
	p.panicked = false
	return []event{{w: w, kind: raised}}
}

// fell marks w down. The caller holds p.mu.
func (p *Pool) fell(w *Worker, why string) []event {
	h := &w.health
	if h.state == down {
		return nil
	}
	if h.state == up {
		p.up--
	}
	h.state, h.streak = down, 0
	w.breaker.reset()
	w.forget()
	return []event{{w: w, kind: dropped, why: why}}
}
