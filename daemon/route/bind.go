package route

import (
	"time"

	"github.com/warmpath/warmpath/daemon/session"
	"github.com/warmpath/warmpath/daemon/worker"
)

// Bind makes the choice's session last, binds one that is free, or moves one whose worker is down, and puts the
// worker first that has it now: another request may have been first. SessionClosed: it ended meanwhile.
func (c *Choice) Bind() Verdict {
	s, b, at := &c.stay, c.pool.Sessions, c.ask.At
	if s.state == bound {
		b.Use(s.name)
		return Chosen
	}
	if !c.binds() {
		return Chosen
	}
	chosen := c.First().ID()
	if s.state == moving {
		s.at = b.Rebind(s.name, s.from, chosen, at)
		if s.at == "" && s.name.Kind == session.Opened {
			return SessionClosed
		}
	}
	if s.at == "" {
		enter := b.Bind
		if s.silent {
			enter = b.Keep
		}
		s.at, s.mine = enter(s.name, chosen, at)
	}
	if s.at != chosen || s.state == open && !s.mine {
		c.putFirst(s.at)
	}
	return Chosen
}

// putFirst puts the worker that has the session first in the order, if it is a candidate.
func (c *Choice) putFirst(id string) {
	c.fleet.frame.Header.Bound = int32(c.fleet.row(id))
	for i, row := range c.result.Order {
		if c.fleet.workers[row].ID() == id {
			copy(c.result.Order[1:i+1], c.result.Order[:i])
			c.result.Order[0], c.result.Row = row, int(row)
			return
		}
	}
}

// Moved tells from which worker Bind moved the session, and to which; "" and "" if it moved none.
func (c *Choice) Moved() (from, to string) {
	if c.stay.state != moving {
		return "", ""
	}
	return c.stay.from, c.stay.at
}

// Unreached notes that a worker could not be connected to, or went down with the request.
func (c *Choice) Unreached(w *worker.Worker) {
	if w.ID() == c.stay.worker() {
		c.stay.refused = true
	}
}

// Answered confirms the session's binding: a session begins with its first good answer, and lives where that came
// from. It reports false if the answer was none that a session begins with; then a binding of this request's own is
// taken back.
func (c *Choice) Answered(w *worker.Worker, good bool) bool {
	s := &c.stay
	at := s.at
	switch {
	case at != "" && !good:
		c.Unbind()
		return false
	case at == "" && s.refused && s.name.Kind != session.Response:
		at = s.binding.Worker
	}
	if at != "" && at != w.ID() {
		c.pool.Sessions.Rebind(s.name, at, w.ID(), c.ask.At)
	}
	return true
}

// Unbind takes back what Bind bound for this request: nobody has answered it well.
func (c *Choice) Unbind() {
	s := &c.stay
	if s.mine {
		c.pool.Sessions.Close(s.name, c.ask.At)
		s.at, s.mine = "", false
	}
}

// LoseSession ends a session whose state died with its worker, after the verdict SessionLost. It returns where that
// lived, and reports false if the session had ended before.
func (c *Choice) LoseSession() (session.Binding, bool) {
	if c.stay.state != dying {
		return session.Binding{}, false
	}
	c.pool.Sessions.Lose(c.stay.name, c.ask.At)
	return c.stay.binding, true
}

// Session returns the name of the request's session; its ID is "" if it has none.
func (c *Choice) Session() session.Name { return c.stay.name }

// Binding returns where the request's session lived when it came; Worker is "" if it was free.
func (c *Choice) Binding() session.Binding {
	if c.stay.state != bound {
		return session.Binding{}
	}
	return c.stay.binding
}

// Rejection returns what the strategy wants the client to be told, after the verdict Rejected: a status, a text and a
// time to wait; "" and 0 are the router's to fill.
func (c *Choice) Rejection() (status int, text string, wait time.Duration) {
	if r := c.result.Reject; r != nil {
		return r.Status, r.Text, r.RetryAfter
	}
	return 0, "", 0
}
