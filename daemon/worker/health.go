package worker

import (
	"cmp"
	"time"
)

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
	back      float64 // back-off of the next ejection; 0 = the first
	ejected   float64 // ejected until then
	slow      float64 // slow start until then
	late      bool    // came after the pool had begun: its first up is a slow start too
	lastError string
	errorAt   time.Time
}

const (
	maxSilent  = 2               // silent checks in a row that count as death, if nothing flows
	flowing    = 5 * time.Second // an answer's bytes within this time prove life; above any gap between chunked prefills
	maxStreak  = 5               // failed answers in a row that eject
	maxBackOff = 30.0            // seconds
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
		h.slow = now + p.conf.SlowStart.Seconds()
	}
	h.state, h.streak, h.late = up, 0, false
	p.up++
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
	h.state, h.ejected, h.back, h.streak = down, 0, 0, 0
	w.forget()
	return []event{{w: w, kind: dropped, why: why}}
}

// passive takes what an exchange says of w. The caller holds p.mu.
func (p *Pool) passive(w *Worker, now float64, o Outcome) []event {
	h := &w.health
	why := o.Err
	switch o.Kind {
	case Answered:
		w.totals.answered++
		h.streak = 0
		if h.back > 0 && now > h.slow {
			h.back = 0
		}
		return nil
	case Refused:
		w.totals.refused++
		why = cmp.Or(why, "connection refused")
	case Failed:
		w.totals.failed++
		why = cmp.Or(why, "failed answer")
	case Broken:
		w.totals.broken++
		why = cmp.Or(why, "connection broke")
	default:
		return nil
	}
	h.note(why, p.began.Add(time.Duration(now*float64(time.Second))))
	select { // let the health check decide now, not in two seconds
	case w.kick <- struct{}{}:
	default:
	}
	if o.Kind == Refused {
		return p.fell(w, why)
	}
	h.streak++
	if h.state != up || h.streak < maxStreak || now < h.ejected || !p.mayEject(now) {
		return nil
	}
	return p.eject(w, now, why)
}

// mayEject keeps half of the workers that are up: if all fail, the fault is in the requests or in what the workers share.
func (p *Pool) mayEject(now float64) bool {
	n := 1
	for _, w := range p.workers {
		if now < w.health.ejected {
			n++
		}
	}
	return 2*n <= p.up
}

func (p *Pool) eject(w *Worker, now float64, why string) []event {
	h := &w.health
	h.back = min(maxBackOff, max(p.conf.HealthInterval.Seconds(), 2*h.back))
	h.ejected = now + h.back
	h.slow = h.ejected + p.conf.SlowStart.Seconds()
	h.streak = 0
	w.totals.ejected++
	return []event{{w: w, kind: ejected, why: why, wait: time.Duration(h.back * float64(time.Second))}}
}
