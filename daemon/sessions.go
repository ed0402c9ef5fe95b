package daemon

import (
	"context"
	"net/http"
	"time"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/sagemaker"
	"github.com/warmpath/warmpath/daemon/session"
	"github.com/warmpath/warmpath/daemon/worker"
	"github.com/warmpath/warmpath/sdk/abi"
)

// stay is what a request has to do with a session.
type stay struct {
	name   session.Name    // ID "" = none
	binds  bool            // a free choice binds it, whatever the strategy says
	bound  session.Binding // Worker "" = none: the choice is free
	opened string          // the worker that it was bound to when this request came to bind it
	mine   bool            // this request has bound it
	header bool            // the name came in sessions.header
	silent bool            // the store is silent: a free choice is the one that every router makes alike
	moved  string          // the worker that is down, from which it moves
	pinned bool            // nobody else is to be asked
	cookie string          // the one to set, if the answer is a success
}

// maxName bounds what a client may call its session: what is longer names none.
const maxName = 1 << 10

// nameSession reads which session the request belongs to, the surest word first.
func (e *exchange) nameSession(c *conf.Sessions) {
	if e.call != nil && e.call.Op == sagemaker.Open {
		e.stay.name.ID = session.MintID()   // a name for strategies that place by it
		e.stay.name.Kind = session.Response // nothing is bound before the answer
		return
	}
	id := ""
	if c.Header != "" {
		id = e.in.get(c.Header)
	}
	header := id != ""
	if id == "" && c.Cookie != "" {
		id = e.cookie(c.Cookie)
	}
	e.stay.header, e.stay.binds = header, id != ""
	if id == "" && e.req.SessionKey != "" {
		for _, field := range c.BodyFields {
			if id = e.req.SessionField(field); id != "" {
				break
			}
		}
	}
	if id == "" && c.Cookie != "" && e.req.Kind.Generates() {
		id = session.MintID()
		e.stay.binds, e.stay.cookie = true, id
	}
	if len(id) > maxName {
		id = ""
	}
	e.stay.name = session.Name{Kind: session.Key, Tenant: e.in.Caller.Name + "\x00" + e.req.CacheSalt, ID: id}
}

// cookie is the router's own among the client's cookies, or "".
func (e *exchange) cookie(name string) string {
	cookies, _ := http.ParseCookie(e.in.all("Cookie"))
	for _, c := range cookies {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// opened is the name under which a session stands that its caller asked for.
func (in *Inbound) opened(id string) session.Name {
	return session.Name{Kind: session.Opened, Tenant: in.Caller.Name, ID: id}
}

// findSession finds where the request's session lives. A fault says that an opened one has ended.
func (e *exchange) findSession() *fault {
	if c := e.call; c != nil && (c.Op == sagemaker.Use || c.Op == sagemaker.Close) {
		name := e.in.opened(c.Session)
		b, s := e.pool.sessions.Find(name, e.arrived)
		if s == session.Unknown && e.stay.silent { // it may live in another pool
			s = session.Silent
		}
		e.stay = stay{name: name, bound: b}
		if s != session.Found {
			f := faultSession(s)
			return &f
		}
		return nil
	}
	for _, id := range [...]string{e.req.PreviousResponse, responseID(e.in.Method, e.in.Path)} {
		if id == "" {
			continue
		}
		name := e.in.stored(id)
		switch b, s := e.pool.sessions.Find(name, e.arrived); s {
		case session.Found:
			e.stay = stay{name: name, bound: b}
			return nil
		case session.Unknown:
			if e.stay.silent {
				return &faultSilent
			}
		case session.Silent: // any other worker would say that there is no such response
			return &faultSilent
		}
	}
	if e.stay.name.ID == "" || e.stay.name.Kind == session.Response {
		return nil
	}
	if e.stay.header && session.Minted(e.stay.name.ID) {
		name := e.in.opened(e.stay.name.ID)
		b, s := e.pool.sessions.Find(name, e.arrived)
		switch s {
		case session.Found:
			e.stay = stay{name: name, bound: b}
			return nil
		case session.Unknown: // a name of the client's own that looks like ours
		default:
			f := faultSession(s)
			return &f
		}
	}
	if e.stay.cookie == "" { // else nobody has heard of it yet
		var s session.Status
		e.stay.bound, s = e.pool.sessions.Find(e.stay.name, e.arrived)
		e.stay.silent = s == session.Silent
	} else {
		e.stay.silent = e.pool.sessions.Alone()
	}
	return nil
}

// draw draws the rows, and settles what becomes of a session whose worker is not among them.
func (e *exchange) draw(ctx context.Context) *fault {
	id := e.stay.bound.Worker
	status := e.snapshot(ctx, id)
	if id != "" && !e.view.bind(id) {
		standing := e.pool.workers.Standing(id, e.req.Model, e.arrived)
		if standing == worker.Starting {
			status, standing = e.awaitWorker(ctx, id)
		}
		if f := e.away(standing); f != nil {
			return f
		}
		if e.stay.moved != "" && e.pool.sessions.Alone() {
			e.stay.silent = true
			status = e.snapshot(ctx, "")
		}
	}
	var f fault
	switch status {
	case worker.Down, worker.Starting:
		f = faultNoWorker
	case worker.Lacking:
		f = e.unlistedModel()
	case worker.Full:
		f = faultFull
	default:
		if e.stay.bound.Worker == "" && e.stay.name.ID != "" {
			e.pool.crowd.fill(e.view.frame.Rows, e.view.workers)
		}
		return nil
	}
	return &f
}

// firstCheck is how long a request waits for a worker's first health check: after a restart bindings are known at once, and
// the workers a moment later.
const firstCheck = 2 * time.Second

// awaitCheck asks until done, until ctx ends, or until a first health check must have come; at once for the first time.
func awaitCheck(ctx context.Context, done func() bool) {
	end := time.Now().Add(firstCheck)
	if done() {
		return
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(end) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if done() {
			return
		}
	}
}

func (e *exchange) awaitWorker(ctx context.Context, id string) (status, s worker.Standing) {
	awaitCheck(ctx, func() bool {
		s = e.pool.workers.Standing(id, e.req.Model, time.Now())
		return s != worker.Starting
	})
	return e.view.snapshot(e.pool, e.req.Model, id, time.Now()), s
}

// away decides on a session whose worker gets no request now.
func (e *exchange) away(s worker.Standing) *fault {
	b := &e.stay.bound
	stays := b.Minted || e.d.state.Load().conf.Sessions.OnWorkerDown == "error" && b.Kind != session.Response
	switch {
	case s == worker.Ready: // meanwhile
		return nil
	case s == worker.Full:
		return &faultFull
	case e.call != nil && e.call.Op == sagemaker.Close: // nobody else can free what that worker holds
		return &faultResting
	case s == worker.Lacking && b.Minted:
		return &faultOtherModel
	case s == worker.Lacking: // this request alone goes elsewhere
	case stays && (s == worker.Ejected || s == worker.Draining || s == worker.Starting):
		return &faultResting
	case stays:
		e.pool.sessions.Lose(e.stay.name, e.arrived)
		e.pool.log.Warn("session lost with its worker", "id", e.in.ID, "worker", b.Worker, "session", session.Fingerprint(e.stay.name), "kind", b.Kind)
		f := faultSession(session.Lost)
		return &f
	case b.Kind != session.Response:
		e.stay.moved = b.Worker
	}
	if e.stay.moved == "" {
		e.stay.name.ID = "" // what happens to this request is nothing to the session
	}
	e.stay.bound = session.Binding{}
	return nil
}

// settle binds a session that is free or moves, and puts the worker first that has it now: another request may have been first.
func (e *exchange) settle() *fault {
	st := &e.stay
	if st.bound.Worker != "" {
		policy := e.d.state.Load().conf.Sessions.OnWorkerDown
		closing := e.call != nil && e.call.Op == sagemaker.Close
		if st.pinned = closing || st.bound.Minted || policy == "error" && st.bound.Kind != session.Response; st.pinned {
			e.result.Order, e.looked = e.result.Order[:1], true
		}
		return nil
	}
	if st.name.ID == "" || st.name.Kind == session.Response {
		return nil
	}
	binds := st.binds || st.moved != "" || e.result.Flags&abi.FlagBind != 0
	if st.silent && binds {
		e.chooseAlike()
	}
	chosen := e.view.workers[e.result.Row].ID()
	at := ""
	if st.moved != "" {
		if at = e.pool.sessions.Rebind(st.name, st.moved, chosen, e.arrived); at == chosen {
			e.pool.crowd.add(chosen, 1)
			e.pool.crowd.add(st.moved, -1)
		}
		if at == "" && st.name.Kind == session.Opened {
			f := faultSession(session.Closed)
			return &f
		}
		e.pool.log.Info("session moves to another worker", "id", e.in.ID, "from", st.moved, "to", at, "session", session.Fingerprint(st.name))
	}
	if at == "" {
		if !binds {
			return nil
		}
		enter := e.pool.sessions.Bind
		if st.silent {
			enter = e.pool.sessions.Keep
		}
		at, st.mine = enter(st.name, chosen, e.arrived)
		if st.opened = at; st.mine {
			e.pool.crowd.add(at, 1)
		}
	}
	if at != chosen {
		e.lead(at)
	}
	return nil
}

// lead puts a worker first in the choice, if it is a candidate.
func (e *exchange) lead(id string) {
	for i, row := range e.result.Order {
		if e.view.workers[row].ID() == id {
			copy(e.result.Order[1:i+1], e.result.Order[:i])
			e.result.Order[0], e.result.Row = row, int(row)
			return
		}
	}
}

// served notes who answered, and with what: a session begins with its first good answer, and where that came from.
func (e *exchange) served(w *worker.Worker, status int, out *Outbound) {
	st := &e.stay
	at := st.opened
	switch {
	case at != "" && status >= 400:
		e.unbind()
		return
	case at == "" && e.refused && st.name.Kind != session.Response: // its worker could not be connected to
		at = st.bound.Worker
	}
	if at != "" && at != w.ID() {
		e.pool.sessions.Rebind(st.name, at, w.ID(), e.arrived)
	}
	if st.cookie != "" {
		c := http.Cookie{Name: e.d.state.Load().conf.Sessions.Cookie, Value: st.cookie, Path: "/", HttpOnly: true,
			SameSite: http.SameSiteLaxMode, Secure: e.in.TLS}
		out.set("Set-Cookie", c.String())
	}
}

// unbind takes back what this request has bound: nobody has answered it well.
func (e *exchange) unbind() {
	if e.stay.mine {
		e.pool.sessions.Close(e.stay.name, e.arrived)
		e.pool.crowd.add(e.stay.opened, -1)
		e.stay.opened, e.stay.mine = "", false
	}
}

// responsePool is the pool that knows a stored response; nil: none does (Unknown), or nobody can say (Silent).
func (d *Daemon) responsePool(name session.Name, now time.Time) (*pool, session.Status) {
	none := session.Unknown
	for _, p := range d.state.Load().pools {
		switch _, s := p.sessions.Peek(name, now); s {
		case session.Found:
			return p, s
		case session.Silent:
			none = s
		}
	}
	return nil, none
}

// bindResponse binds a response's name to its worker: the state is there only, and what refers to it must come here.
func (p *pool) bindResponse(name session.Name, w *worker.Worker) {
	p.sessions.Bind(name, w.ID(), time.Now())
}
