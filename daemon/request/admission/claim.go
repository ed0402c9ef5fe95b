package admission

import (
	"strings"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/identity"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// Claim reads which session the request belongs to, from the most reliable source first: the id of an opened one, a
// stored response, a header field, a cookie of ours, a field of the body.
func (r *Request) Claim() (c route.Claim) {
	in := r.In
	c.Closing = r.Entry.Op == message.Closing
	switch {
	case r.Own(): // the session lives where the answer is made
		return c
	case r.Entry.Op == message.Opening: // a name for strategies that place by it
		c.Key, c.Placing = session.Name{Kind: session.Key, ID: session.MintID()}, true
		return c
	case r.Entry.Session != "":
		c.Opened = in.Opened(r.Entry.Session)
		return c
	}
	for i, id := range r.Responses() {
		if id != "" {
			c.Stored[i] = in.Stored(id)
		}
	}
	who := r.identify(&c)
	c.Key = session.Name{Kind: session.Key, Tenant: in.Caller.Name + "\x00" + r.Read.Req.CacheSalt,
		Owner: in.Caller.Name, ID: who.Session}
	if r.Fell != 0 { // what the session is bound to stays as it is: its model may come back
		c.Key.Tenant += "\x00" + r.Read.Req.Model
	}
	c.Parent, c.By, c.Final = who.Parent, who.By, who.Final
	return c
}

// identify returns the client's own name for its session, or one that the router makes up for a cookie.
func (r *Request) identify(c *route.Claim) identity.Identity {
	in, req, conf := r.In, r.Read.Req, &r.Epoch.Sessions
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
		if r.Cookie == "" { // an alias may have asked before
			r.Cookie = session.MintID()
		}
		who = named(r.Cookie)
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

// Responses returns the ids of the stored responses that the request refers to, in its body and its path. Of jobs the
// path's comes first: what else the body names is sent along by most clients.
func (r *Request) Responses() [2]string {
	e := &r.In.Endpoint
	if e.Job || e.Creates {
		return [2]string{e.ID, r.reference}
	}
	of := [2]string{r.Read.Req.PreviousResponse}
	if e.Role == message.Worker {
		of[1] = e.ID
	}
	return of
}

// Forbidden returns why the request is refused before a pool is chosen, or nil.
func (r *Request) Forbidden() *message.Fault {
	if r.Entry.Op != message.Closing {
		if f := r.Read.forbids(r.In); f != nil {
			return f
		}
	}
	if f := r.Read.unsalted(r.In); f != nil && r.Entry.Op == message.Use {
		return f
	}
	if f := r.foreign(); f != nil {
		return f
	}
	if r.Read.tooLongToTokenize(r.In) {
		return &message.FaultTokenize
	}
	if r.Read.hidesModel(r.In) && r.Entry.Session == "" && r.Epoch.Named(r.Entry.Pool) == nil &&
		(r.Epoch.Names != nil || !r.Epoch.ShareModel(r.Arrived)) {
		return &faultLateModel
	}
	return nil
}

// foreign returns why a stored response or a job that the request names may not be used with its key, or nil. It
// belongs to the key that made it. To another key the router answers as if there were none. Without keys its id is
// enough.
func (r *Request) foreign() *message.Fault {
	if r.In.Caller.Name == "" {
		return nil
	}
	for _, id := range r.Responses() {
		if id == "" {
			continue
		}
		p, s := r.Epoch.Living(r.In.Stored(id), r.Arrived)
		switch {
		case s == session.Silent:
			return &message.FaultSilent
		case r.In.Endpoint.Job || r.In.Endpoint.Creates:
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

// foreignJob returns why a job may not be used with the request's key, or nil. p is the pool where the key has it. A
// name that is not bound goes to a worker, whose 404 is authoritative, since the binding may have expired. A key for
// some models gets none of those, as it names no model.
func (r *Request) foreignJob(id string, p *epoch.Pool) *message.Fault {
	if p != nil {
		p.Sessions.Use(message.Owned(id, ""))
		return nil
	}
	others, s := r.Epoch.Living(message.Owned(id, ""), r.Arrived)
	if s == session.Silent {
		return &message.FaultSilent
	}
	if others == nil && (!r.In.Endpoint.Stored || r.In.Caller.Allows("")) {
		return nil
	}
	f := message.FaultUnknownJob(id)
	return &f
}

// FindReference reads which file or job the body of a new one names.
func (r *Request) FindReference() {
	in := r.In
	if !in.Endpoint.Creates || len(in.Body) == 0 {
		return
	}
	if message.IsJSON(in) {
		r.reference = prompt.Reference(in.Body)
	} else if kind := in.Get("Content-Type"); strings.HasPrefix(kind, "multipart/") {
		r.reference = prompt.FormReference(kind, in.Body)
	}
}
