package exchange

import (
	"strings"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/identity"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// claim reads which session the request belongs to, from the most reliable source first: the id of an opened one, a
// stored response, a header field, a cookie of ours, a field of the body.
func (r *request) claim() (c route.Claim) {
	in := r.in
	c.Closing = r.entry.Op == message.Closing
	switch {
	case r.entry.Op == message.Prefilling: // the session lives where the answer is made
		return c
	case r.entry.Op == message.Opening: // a name for strategies that place by it
		c.Key, c.Placing = session.Name{Kind: session.Key, ID: session.MintID()}, true
		return c
	case r.entry.Session != "":
		c.Opened = in.Opened(r.entry.Session)
		return c
	}
	for i, id := range r.responses() {
		if id != "" {
			c.Stored[i] = in.Stored(id)
		}
	}
	who := r.identify(&c)
	c.Key = session.Name{Kind: session.Key, Tenant: in.Caller.Name + "\x00" + r.read.req.CacheSalt,
		Owner: in.Caller.Name, ID: who.Session}
	if r.fell != 0 { // what the session is bound to stays as it is: its model may come back
		c.Key.Tenant += "\x00" + r.read.req.Model
	}
	c.Parent, c.By, c.Final = who.Parent, who.By, who.Final
	return c
}

// identify returns the client's own name for its session, or one that the router makes up for a cookie.
func (r *request) identify(c *route.Claim) identity.Identity {
	in, req, conf := r.in, r.read.req, &r.epoch.Sessions
	who := conf.Identity.InHeader(in.Header)
	if session.Minted(who.Session) {
		c.Maybe = in.Opened(who.Session)
	}
	if who.Session == "" && conf.Cookie != "" {
		who = named(message.CookieOf(in.Header, conf.Cookie))
	}
	c.Binds = conf.Always && who.Session != ""
	if who.Session == "" && req.Named() {
		who = conf.Identity.InBody(req)
	}
	if who.Session == "" && conf.Cookie != "" && req.Kind.Generates() {
		if r.seldom().cookie == "" { // an alias may have asked before
			r.rare = &rare{reference: r.seldom().reference, cookie: session.MintID()}
		}
		who = named(r.rare.cookie)
		c.Binds, c.Fresh = conf.Always, true
	}
	return who
}

// named returns the identity that a cookie names.
func named(cookie string) identity.Identity {
	if cookie == "" || len(cookie) > identity.MaxName {
		return identity.Identity{}
	}
	return identity.Identity{Session: cookie, By: "cookie"}
}

// responses returns the ids of the stored responses that the request refers to, in its body and its path. Of jobs the
// path's comes first: what else the body names is sent along by most clients.
func (r *request) responses() [2]string {
	e := &r.in.Endpoint
	if e.Job || e.Creates {
		return [2]string{e.ID, r.seldom().reference}
	}
	of := [2]string{r.read.req.PreviousResponse}
	if e.Role == message.Worker {
		of[1] = e.ID
	}
	return of
}

// forbidden returns why the request is refused before a pool is chosen, or nil.
func (r *request) forbidden() *message.Fault {
	if r.entry.Op != message.Closing {
		if f := r.read.forbids(r.in); f != nil {
			return f
		}
	}
	if f := r.read.unsalted(r.in); f != nil && r.entry.Op == message.Use {
		return f
	}
	if f := r.foreign(); f != nil {
		return f
	}
	if r.read.tooLongToTokenize(r.in) {
		return &message.FaultTokenize
	}
	if r.read.hidesModel(r.in) && r.entry.Session == "" && r.epoch.Named(r.entry.Pool) == nil &&
		(r.epoch.Names != nil || !r.epoch.ShareModel(r.arrived)) {
		return &faultLateModel
	}
	return nil
}

// foreign returns why a stored response or a job that the request names may not be used with its key, or nil. It
// belongs to the key that made it. To another key the router answers as if there were none. Without keys its id is
// enough.
func (r *request) foreign() *message.Fault {
	if r.in.Caller.Name == "" {
		return nil
	}
	for _, id := range r.responses() {
		if id == "" {
			continue
		}
		p, s := r.epoch.Living(r.in.Stored(id), r.arrived)
		switch {
		case s == session.Silent:
			return &message.FaultSilent
		case r.in.Endpoint.Job || r.in.Endpoint.Creates:
			if f := r.foreignJob(id, p); f != nil {
				return f
			}
		case p == nil:
			f := message.FaultUnknownResponse(id)
			return &f
		}
	}
	return nil
}

// foreignJob returns why a job may not be used with the request's key, or nil. p is the pool where the key has it. One
// that nobody has bound goes to a worker, whose 404 is the honest one: the binding may have expired. A key for some
// models gets none of those, as it names no model.
func (r *request) foreignJob(id string, p *epoch.Pool) *message.Fault {
	if p != nil {
		p.Sessions.Use(message.Owned(id, ""))
		return nil
	}
	others, s := r.epoch.Living(message.Owned(id, ""), r.arrived)
	if s == session.Silent {
		return &message.FaultSilent
	}
	if others == nil && (!r.in.Endpoint.Stored || r.in.Caller.Allows("")) {
		return nil
	}
	f := message.FaultUnknownJob(id)
	return &f
}

// findReference reads which file or job the body of a new one names.
func (r *request) findReference() {
	in := r.in
	if !in.Endpoint.Creates || len(in.Body) == 0 {
		return
	}
	if message.IsJSON(in) {
		r.rare = &rare{reference: prompt.Reference(in.Body)}
	} else if kind := in.Get("Content-Type"); strings.HasPrefix(kind, "multipart/") {
		r.rare = &rare{reference: prompt.FormReference(kind, in.Body)}
	}
}
