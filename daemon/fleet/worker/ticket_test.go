package worker

import "time"

// TryBegin is Begin with memory of its own for the ticket; nil if the worker takes no request.
func (p *Pool) TryBegin(w *Worker, d Dispatch, now time.Time) (*Ticket, bool) {
	t := new(Ticket)
	if !p.Begin(t, w, d, now) {
		return nil, false
	}
	return t, true
}
