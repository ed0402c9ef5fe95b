package route

import (
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// state is where a request's session stands.
//
//	state   meaning                                             the choice           Bind does
//	none    the request has no session                          free                 nothing
//	placing Key places a session that is not opened yet         free                 nothing
//	open    nobody has bound Key, or nothing is to bind it      free; or by home.go  binds, if Binds or FlagBind say so
//	bound   it lives at a worker                                that worker          makes the binding last
//	moving  it lived at a worker that is down                   free; or by home.go  moves the binding
//	apart   it lives elsewhere, and this request goes alone     free                 makes the binding last
//	dying   it ends, as its worker is down and holds its state  SessionLost          LoseSession ends it
type state uint8

const (
	none state = iota
	placing
	open
	bound
	moving
	apart
	dying
)

// stay is a request's session.
type stay struct {
	name    session.Name
	binding session.Binding // of a bound or dying session
	from    string          // the worker that is down, of a moving one
	at      string          // the worker that it is bound to since Bind; "" = Bind bound and moved nothing
	state   state
	silent  bool // the store does not answer: a free choice is the one that every router makes alike
	mine    bool // Bind bound it
	refused bool // the bound worker could not be reached
}

// find looks for the session that the request claims.
func (s *stay) find(p *Pool, a *Ask) Verdict {
	c, b := &a.Claim, p.Sessions
	*s = stay{}
	if c.Opened.ID != "" {
		found, status := b.Peek(c.Opened, a.At)
		if status == session.Unknown && c.Silent { // it may live in another pool
			status = session.Silent
		}
		s.bindTo(c.Opened, found)
		return refusal(status)
	}
	for _, name := range c.Stored {
		if name.ID == "" {
			continue
		}
		switch found, status := b.Peek(name, a.At); {
		case status == session.Found:
			s.bindTo(name, found)
			return Chosen
		case status == session.Silent, status == session.Unknown && c.Silent:
			return SessionSilent // any other worker would answer that there is no such response
		}
	}
	if c.Key.ID == "" {
		return Chosen
	}
	s.name, s.state = c.Key, open
	if c.Placing {
		s.state = placing
		return Chosen
	}
	return s.findKey(p, a)
}

// findKey looks for a session by the client's own name for it. Where nothing binds sessions the name is a hint: a
// binding that another strategy has left is not looked for.
func (s *stay) findKey(p *Pool, a *Ask) Verdict {
	c, b := &a.Claim, p.Sessions
	if c.Maybe.ID != "" {
		switch found, status := b.Peek(c.Maybe, a.At); status {
		case session.Found:
			s.bindTo(c.Maybe, found)
			return Chosen
		case session.Unknown: // a name of the client's own that looks like ours
		default:
			return refusal(status)
		}
	}
	if !binds(p, a) {
		return Chosen
	}
	if c.Fresh {
		s.silent = b.Alone()
		return Chosen
	}
	found, status := b.Peek(c.Key, a.At)
	if status == session.Found {
		s.bindTo(c.Key, found)
	}
	s.silent = status == session.Silent
	return Chosen
}

// binds reports whether the request's session is bound: the configuration says so, or the strategy that serves it binds
// sessions.
func binds(p *Pool, a *Ask) bool {
	if a.Claim.Binds {
		return true
	}
	s := a.By
	if s == nil {
		s = p.canaries.serving(&p.Strategy, a, a.Claim.Key.ID).Strategy()
	}
	return s != nil && s.Binds()
}

func (s *stay) bindTo(name session.Name, b session.Binding) {
	s.state = bound
	s.name = name
	s.binding = b
}

// worker returns the one that the session is bound to, "" if none.
func (s *stay) worker() string {
	if s.state != bound {
		return ""
	}
	return s.binding.Worker
}

// free reports whether the strategy chooses for a session.
func (s *stay) free() bool { return s.state == open || s.state == placing || s.state == moving }

// staysPut reports whether the session ends with its worker: the worker holds its state, or the configuration asks for
// it.
func (s *stay) staysPut(a *Ask) bool {
	return s.binding.Minted || a.EndWithWorker && s.binding.Kind != session.Response
}

// leave decides what becomes of a bound session whose worker is not among the candidates.
func (s *stay) leave(why worker.Standing, a *Ask) Verdict {
	switch stays := s.staysPut(a); {
	case why == worker.Full:
		return Full
	case a.Claim.Closing: // nobody else can free what that worker holds
		return SessionResting
	case why == worker.Lacking && s.binding.Minted:
		return SessionOtherModel
	case why == worker.Lacking:
		s.state = apart
		return Chosen
	case stays && (why == worker.Down || why == worker.Gone):
		s.state = dying
		return SessionLost
	case stays:
		return SessionResting
	case s.binding.Kind == session.Response, why == worker.Ready: // Ready: it came back and went again meanwhile
		s.state = apart
		return Chosen
	}
	s.state, s.from = moving, s.binding.Worker
	return Chosen
}
