package route

import (
	"math"
	"time"

	"github.com/warmpath/warmpath/daemon/request/breaks"
	"github.com/warmpath/warmpath/daemon/request/identity"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// talk is the conversation that a request names, in the pool's book. It is a hint for strategies: no request waits for
// it or stays at a worker because of it.
type talk struct {
	key   identity.Key
	of    identity.Kind
	final bool
}

// conversation returns the name of the conversation that the client says the request belongs to; ID "" = none.
func (c *Claim) conversation() session.Name {
	switch {
	case c.Opened.ID != "":
		return c.Opened
	case c.Placing || c.Fresh:
		return session.Name{}
	}
	return c.Key
}

// findTalk finds the conversation of a request whose answer is generated.
func (c *Choice) findTalk() {
	name := c.ask.Claim.conversation()
	if name.ID == "" || !c.prompt.Kind.Generates() {
		return
	}
	c.talk = talk{key: c.pool.book.Of(name.Tenant, name.ID), of: identity.Kind{Owner: name.Owner, By: c.ask.Claim.By},
		final: c.ask.Claim.Final}
}

// describeTalk writes the conversation into the frame, whose rows are there.
func (c *Choice) describeTalk() {
	h, claim := &c.fleet.frame.Header, &c.ask.Claim
	h.ExpectedOutput = c.prompt.Expected
	if c.talk.key == (identity.Key{}) || h.Session == 0 {
		return
	}
	known, more := c.pool.book.Look(c.talk.key, c.talk.of)
	h.Turn, h.ExpectedTurns = known.Turns+1, uint32(min(more, math.MaxUint32))
	if known.Turns > 0 {
		h.SinceLast = float32(max(0, c.at.Sub(known.Last).Seconds()))
	}
	if h.ExpectedOutput == 0 {
		h.ExpectedOutput = uint32(known.Output)
	}
	if claim.Parent != "" {
		h.Parent = hashIn(claim.Key.Tenant, claim.Parent)
	}
	c.placeTalk(known.Worker)
}

// placeTalk writes into the frame in which rows the workers are that the conversation and its parent went to.
func (c *Choice) placeTalk(last uint64) {
	h, claim := &c.fleet.frame.Header, &c.ask.Claim
	h.Last, h.ParentRow = c.fleet.rowOf(last), -1
	if claim.Parent != "" {
		parent, _ := c.pool.book.Look(c.pool.book.Of(claim.Key.Tenant, claim.Parent), c.talk.of)
		h.ParentRow = c.fleet.rowOf(parent.Worker)
	}
}

// moveTalk writes the places into the frame again, after a look at the fleet that changed the rows.
func (c *Choice) moveTalk() {
	if c.fleet.frame.Header.Turn > 0 {
		known, _ := c.pool.book.Look(c.talk.key, c.talk.of)
		c.placeTalk(known.Worker)
	}
}

// rowOf returns the row of the worker with that key, -1 if it is no candidate.
func (f *fleet) rowOf(key uint64) int32 {
	for i := range f.frame.Rows {
		if f.frame.Rows[i].Key == key {
			return int32(i)
		}
	}
	return -1
}

// turn counts the request in its conversation when the first worker gets it.
func (c *Choice) turn(worker uint64, at time.Time) {
	if c.talk.key == (identity.Key{}) || c.sent != 1 {
		return
	}
	if chains := c.prompt.Chains; len(chains) == 1 && chains[0].Tokens == 0 {
		c.pool.breaks.Note(&breaks.Turn{Key: c.ask.Caller, Session: c.talk.key, Chain: &chains[0], At: at})
	}
	if c.talk.final {
		c.pool.book.Forget(c.talk.key)
	} else {
		c.pool.book.Turn(c.talk.key, c.talk.of, worker, at)
	}
}

// noteTalk writes the conversation into the record, under the names that pages and logs have for sessions.
func (r *Record) noteTalk(c *Choice) {
	if c.talk.key == (identity.Key{}) || r.Named != nil {
		return
	}
	claim := &c.ask.Claim
	r.Named = &Named{Identity: session.Fingerprint(claim.conversation()), NamedBy: claim.By,
		Turn: int(c.fleet.frame.Header.Turn)}
	if claim.Parent != "" {
		r.Parent = session.Fingerprint(session.Name{Tenant: claim.Key.Tenant, ID: claim.Parent})
	}
}

// binds reports whether the request's session is bound: the configuration says so, or the strategy that serves it binds
// sessions.
func (p *Pool) binds(a *Ask) bool {
	if a.Claim.Binds {
		return true
	}
	s := a.By
	if s == nil {
		s = p.canaries.serving(&p.Strategy, a, a.Claim.Key.ID).Strategy()
	}
	return s != nil && s.Binds()
}

// hashIn returns a session's number for strategies: that of its name, if it is nobody's in particular.
func hashIn(tenant, id string) uint64 {
	if tenant == "" || tenant == "\x00" || id == "" { // no key and no salt
		return hashOf(id)
	}
	return hashOf(tenant + "\x00" + id)
}
