package route

import (
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/sdk/abi"
)

// bind binds a free session to the chosen worker, or moves one whose worker is down. If another request was first, at
// is that request's worker. SessionClosed means that the session ended meanwhile.
func (s *stay) bind(b *session.Bindings, chosen string, at time.Time) Verdict {
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
	return Chosen
}

// overtaken reports whether another request, here or at a second router, has bound or moved the session first.
func (s *stay) overtaken(chosen string) bool { return s.at != chosen || s.state == open && !s.mine }

// confirm moves the session to the worker that gave it a good answer, if it lives elsewhere and cannot be served there.
func (s *stay) confirm(b *session.Bindings, by string, at time.Time) {
	lives := s.at
	if lives == "" && s.refused && s.name.Kind != session.Response {
		lives = s.binding.Worker
	}
	if lives != "" && lives != by {
		b.Rebind(s.name, lives, by, at)
	}
}

// Bind makes the choice's session last: it counts a use of a bound one, binds a free one, or moves one whose worker is
// down. If another request was first, the worker that the session has now comes first in the order. SessionClosed means
// that the session ended meanwhile.
func (c *Choice) Bind() Verdict {
	s, b := &c.stay, c.pool.Sessions
	if s.binding.Worker != "" { // wherever the request goes
		b.Use(s.name)
	}
	if !c.binds() {
		return Chosen
	}
	chosen := c.First().ID()
	if v := s.bind(b, chosen, c.at); v != Chosen {
		return v
	}
	if s.overtaken(chosen) {
		row := c.fleet.row(s.at)
		c.fleet.frame.Header.Bound = int32(row)
		c.order.putFirst(row)
	}
	return Chosen
}

// Moved returns from which worker Bind moved the session, and to which. Both are "" if it moved none.
func (c *Choice) Moved() (from, to string) {
	if c.stay.state != moving {
		return "", ""
	}
	return c.stay.from, c.stay.at
}

// Unreached records that no connection to a worker was made, or that the worker went down with the request.
func (c *Choice) Unreached(w *worker.Worker) {
	if w.ID() == c.stay.worker() {
		c.stay.refused = true
	}
}

// Answered confirms the session's binding: a session begins with its first good answer, and lives at the worker that
// gave it. It returns false if no session begins with this answer. It then takes back a binding that this request made.
func (c *Choice) Answered(w *worker.Worker, good bool) bool {
	if c.stay.at != "" && !good {
		c.Unbind()
		return false
	}
	c.stay.confirm(c.pool.Sessions, w.ID(), c.at)
	return true
}

// Unbind takes back what Bind bound for this request, which got no good answer.
func (c *Choice) Unbind() {
	if s := &c.stay; s.mine {
		c.pool.Sessions.Close(s.name, c.at)
		s.at, s.mine = "", false
	}
}

// LoseSession ends a session whose state died with its worker, after the verdict SessionLost. It returns the session's
// binding, and false if the session had ended before.
func (c *Choice) LoseSession() (session.Binding, bool) {
	if c.stay.state != dying {
		return session.Binding{}, false
	}
	c.pool.Sessions.Lose(c.stay.name, c.at)
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

// SessionKind returns the kind of the session that the request belongs to, "" if it belongs to none.
func (c *Choice) SessionKind() string {
	if c.stay.worker() == "" && c.stay.at == "" {
		return ""
	}
	return c.stay.name.Kind.String()
}

// KeepLonger leaves the workers in the order, after those tried, that list more than so many tokens as the length of
// the model, or list none. It reports whether there are any.
func (c *Choice) KeepLonger(tokens int, at time.Time) bool {
	if c.stay.tied(&c.ask) {
		return false
	}
	c.outgrew = tokens + 1
	o := &c.order
	if c.dropShort(); o.left() == 0 && c.MayWiden(at) {
		c.lookAgain(at)
	}
	return o.left() > 0
}

// dropShort removes the workers from the rest of the order for which the request has become too long.
func (c *Choice) dropShort() {
	o, p := &c.order, c.pool.Workers
	rest := slices.DeleteFunc(o.rows[o.next:], func(row int32) bool {
		n := p.Length(c.fleet.workers[row], c.prompt.Model)
		return n > 0 && n < c.outgrew // one that lists no length may be longer
	})
	o.rows = o.rows[:o.next+len(rest)]
}

// PassedOn reports whether the worker that was tried last got the request because the one before it failed, or took
// none.
func (c *Choice) PassedOn() bool { return c.order.by != byChoice }

// Alone leaves one worker in the order, so that the request goes to no other: the first that is not in but, and rather
// only if there is no other one. It returns false if no worker is left.
func (c *Choice) Alone(but []*worker.Worker, rather *worker.Worker, at time.Time) bool {
	first := func(avoid *worker.Worker) bool {
		i := slices.IndexFunc(c.order.rows, func(row int32) bool {
			w := c.fleet.workers[row]
			return w != avoid && !slices.Contains(but, w)
		})
		if i > 0 {
			c.order.putFirst(int(c.order.rows[i]))
		}
		return i >= 0
	}
	if !first(rather) && !first(nil) {
		c.order.tried = append(c.order.tried, but...)
		c.lookAgain(at)
		if c.order.left() == 0 {
			return false
		}
	}
	c.order.pin()
	return true
}

// askForOthers asks the strategy who may take a request that its session's worker does not answer: a binding is
// honoured without asking, and a strategy may keep a request to some workers (abi.FlagOnly) or turn it away. For any
// other strategy the order stays as it is.
func askForOthers(c *Choice) {
	f, o := &c.fleet.frame, &c.order
	c.unasked = false
	if o.pinned {
		return
	}
	rows := slices.Clone(o.rows) // they are the frame's, which the strategy writes into
	bound := f.Header.Bound
	f.Header.Bound = -1
	r := c.serving.Pick(f)
	f.Header.Bound = bound
	switch {
	case r.Reject != nil:
		o.fence(nil, &c.fleet)
		rows = rows[:o.next]
	case r.Flags&abi.FlagOnly != 0:
		o.fence(r.Order, &c.fleet)
		rows = append(rows[:o.next], slices.DeleteFunc(r.Order, func(row int32) bool {
			return slices.Contains(o.tried, c.fleet.workers[row])
		})...)
		o.named = len(rows)
	}
	o.rows = rows
}

// lacksOnly is Lacks for a request that the strategy keeps to some workers.
func lacksOnly(c *Choice, at time.Time) Verdict {
	found := NoWorker
	for _, w := range c.order.only {
		v := alone(c.pool.Workers.Standing(w.ID(), c.prompt.Model, c.ask.Fence, at))
		if slices.Contains(c.order.tried, w) && (v != Unheard || c.sent > 0) { // Unheard: another has taken its place
			continue
		}
		switch v {
		case Chosen:
			return v
		case Full:
			found = v
		case Unheard:
			if found != Full {
				found = v
			}
		}
	}
	return found
}
