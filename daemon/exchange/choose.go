package exchange

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/gate"
	"github.com/warmpath/warmpath/daemon/prompt"
	"github.com/warmpath/warmpath/daemon/route"
	"github.com/warmpath/warmpath/daemon/session"
)

// choose goes through the request's life up to the choice. Its answer, if there is one, refuses the request.
func (r *request) choose(ctx context.Context) *Outbound {
	in := r.in
	r.read.read(in, r.entry.Model)
	in.Seen.Model = r.read.req.Model
	if f := r.forbidden(); f != nil {
		return r.refuse(*f)
	}
	silent := false
	if r.pool, silent = r.choosePool(); r.pool == nil {
		return r.refuse(FaultUnknownModel(r.read.req.Model))
	}
	in.Seen.Pool = r.pool.Name
	if f := r.read.hidesResponse(in, r.target()); f != nil {
		return r.refuse(*f)
	}
	ask := route.Ask{Prompt: r.read.req, Salt: r.entry.salt(r.read.req.CacheSalt), Claim: r.claim(),
		Caller: in.Caller.Name, Headers: &r.headers, Deadline: in.deadline(r.arrived),
		EndWithWorker: r.epoch.Sessions.EndWithWorker, Turn: r.pool.Arrive(r.read.req.Model, r.arrived), At: r.arrived}
	ask.Claim.Silent = silent
	if f := r.decide(ctx, ask); f != nil {
		return r.refuse(*f)
	}
	if from, to := r.choice.Moved(); from != "" {
		r.log().Info("session moves to another worker", "id", in.ID, "from", from, "to", to,
			"session", session.Fingerprint(r.choice.Session()))
	}
	return nil
}

// forbidden returns why the request is refused before a pool is chosen, or nil.
func (r *request) forbidden() *Fault {
	if r.entry.Op != Closing {
		if f := r.read.forbids(r.in); f != nil {
			return f
		}
	}
	if f := r.foreign(); f != nil {
		return f
	}
	if r.read.tooLongToTokenize(r.in) {
		return &FaultTokenize
	}
	return nil
}

// foreign returns why a stored response that the request names is not to be had by its key, or nil. A response
// belongs to the key that made it, and one of another key is answered as one that nobody made. Where there are no
// keys its id is all it takes.
func (r *request) foreign() *Fault {
	if r.in.Caller.Name == "" {
		return nil
	}
	for _, id := range r.responses() {
		if id == "" {
			continue
		}
		p, s := r.epoch.Living(r.in.Stored(id), r.arrived)
		if s == session.Silent {
			return &FaultSilent
		}
		if p == nil {
			f := FaultUnknownResponse(id)
			return &f
		}
	}
	return nil
}

// responses are the ids of the stored responses that the request refers to, in its body and its path.
func (r *request) responses() [2]string {
	of := [2]string{r.read.req.PreviousResponse}
	if r.in.Endpoint.Role == Worker {
		of[1] = r.in.Endpoint.ID
	}
	return of
}

// Stored is the name under which a response stands: of the key that made it, or of nobody where there are no keys.
func (in *Inbound) Stored(id string) session.Name {
	return session.Name{Kind: session.Response, Tenant: in.Caller.Name, ID: id}
}

// Opened is the name under which a session stands that its caller asked for.
func (in *Inbound) Opened(id string) session.Name {
	return session.Name{Kind: session.Opened, Tenant: in.Caller.Name, ID: id}
}

// choosePool is the pool that the path names, that of the session, that of the worker that made the response, or that
// of the model. silent: one of the pools could not say whether it has the session.
func (r *request) choosePool() (p *Pool, silent bool) {
	if p := r.epoch.Named(r.entry.Pool); p != nil {
		return p, false
	}
	if r.entry.Session != "" {
		p, s := r.epoch.Holding(r.in.Opened(r.entry.Session), r.arrived)
		if p != nil {
			return p, false
		}
		silent = s == session.Silent
	}
	if id := r.responses()[1]; id != "" {
		p, s := r.epoch.Living(r.in.Stored(id), r.arrived)
		if p != nil {
			return p, false
		}
		silent = s == session.Silent
	}
	return r.epoch.For(r.read.req.Model), silent
}

// maxName bounds what a client may call its session: what is longer names none.
const maxName = 1 << 10

// claim reads which session the request belongs to, the surest word first: the id of an opened one, a stored
// response, the header, a cookie of ours, a field of the body.
func (r *request) claim() (c route.Claim) {
	in, req, conf := r.in, r.read.req, &r.epoch.Sessions
	c.Closing = r.entry.Op == Closing
	switch {
	case r.entry.Op == Opening: // a name for strategies that place by it
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
	id := ""
	if conf.Header != "" {
		id = in.Get(conf.Header)
	}
	if session.Minted(id) {
		c.Maybe = in.Opened(id)
	}
	if id == "" && conf.Cookie != "" {
		id = r.cookieOf(conf.Cookie)
	}
	c.Binds = id != ""
	if id == "" && req.SessionKey != "" {
		for _, field := range conf.BodyFields {
			if id = req.SessionField(field); id != "" {
				break
			}
		}
	}
	if id == "" && conf.Cookie != "" && req.Kind.Generates() {
		id = session.MintID()
		c.Binds, c.Fresh, r.cookie = true, true, id
	}
	if len(id) > maxName {
		id = ""
	}
	c.Key = session.Name{Kind: session.Key, Tenant: in.Caller.Name + "\x00" + req.CacheSalt, ID: id}
	return c
}

// cookieOf is the router's own among the client's cookies, or "".
func (r *request) cookieOf(name string) string {
	cookies, _ := http.ParseCookie(r.in.All("Cookie"))
	for _, c := range cookies {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// firstCheck is how long a request waits for a worker's first health check: after a restart bindings are known at
// once, and the workers a moment later; a change may have replaced all workers.
const firstCheck = 2 * time.Second

// decide asks the pool for a choice, and waits as long as the verdict is that a first health check is still to come.
func (r *request) decide(ctx context.Context, ask route.Ask) *Fault {
	ask.Patient = true
	v := r.pool.Choose(&r.choice, ask)
	if v == route.Unheard {
		v = r.await(ctx, ask)
	}
	r.noteChoice(ctx, v)
	if v == route.Chosen {
		v = r.choice.Bind()
		r.in.Seen.Session = r.choice.SessionKind()
		if r.epoch.Access || r.server.log.Enabled(ctx, slog.LevelDebug) {
			r.in.Seen.Reason = r.choice.Reason()
		}
	}
	if v == route.Chosen {
		return nil
	}
	f := r.faultOf(v)
	return &f
}

// await asks again until a first health check must have come, or ctx ends.
func (r *request) await(ctx context.Context, ask route.Ask) route.Verdict {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(firstCheck); ; {
		select {
		case ask.At = <-tick.C:
		case <-ctx.Done():
		}
		ask.Patient = ctx.Err() == nil && ask.At.Before(end)
		if v := r.pool.Choose(&r.choice, ask); v != route.Unheard {
			return v
		}
	}
}

// noteChoice records the decision and counts it.
func (r *request) noteChoice(ctx context.Context, v route.Verdict) {
	if v != route.Chosen && v != route.Rejected {
		return
	}
	r.chosen = true
	seen := &r.in.Seen
	seen.Note(&r.choice)
	if r.epoch.Access {
		if logged, kept := r.epoch.Log.wanted(); kept {
			seen.Explain(&r.choice)
			seen.Logged = logged
		}
	}
	r.server.meter.Picked(seen)
	if seen.Fallback != "" {
		r.server.logFailedPick(r)
	}
	if v == route.Chosen && r.server.log.Enabled(ctx, slog.LevelDebug) { // the words of a line that nobody reads are six allocations
		r.log().Debug("routed", "id", r.in.ID, "path", gate.Cut(r.in.Path), "worker", r.choice.First().ID(),
			"strategy", seen.Strategy, "reason", r.choice.Reason(), "prompt_tokens", seen.PromptTokens)
	}
}

// faultOf is the answer to a verdict that refuses.
func (r *request) faultOf(v route.Verdict) Fault {
	switch v {
	case route.UnknownModel:
		return r.unlistedModel()
	case route.Full:
		return FaultFull
	case route.Rejected:
		return rejection(r.choice.Rejection())
	case route.SessionSilent:
		return FaultSilent
	case route.SessionUnknown:
		return FaultSession(session.Unknown)
	case route.SessionExpired:
		return FaultSession(session.Expired)
	case route.SessionClosed:
		return FaultSession(session.Closed)
	case route.SessionLost:
		if b, ended := r.choice.LoseSession(); ended {
			r.log().Warn("session lost with its worker", "id", r.in.ID, "worker", b.Worker, "kind", b.Kind,
				"session", session.Fingerprint(r.choice.Session()))
		}
		return FaultSession(session.Lost)
	case route.SessionResting:
		return FaultResting
	case route.SessionOtherModel:
		return FaultOtherModel
	}
	return FaultNoWorker
}

// rejection is the answer to a request that the strategy turns away: in its words where it has some.
func rejection(status int, text string, wait time.Duration) Fault {
	f := FaultRejected
	f.Status = status
	switch {
	case status >= 500:
		f.Kind = "service_unavailable"
	case status == 401:
		f.Kind = "authentication_error"
	case status == 403:
		f.Kind = "permission_error"
	case status != 429:
		f.Kind = "invalid_request_error"
	}
	if text != "" {
		f.Message = text
	}
	if wait > 0 {
		f.Retry = int(wait / time.Second)
	} else if status != 429 && status != 503 {
		f.Retry = 0 // to come again does not help
	}
	return f
}

// maxNamed bounds the models that a client is told.
const maxNamed = 8

// unlistedModel is the fault of a model that the pool is for and that none of its workers lists. Most likely one of
// the two is misspelt, so it names what they list: where explain is on, to callers who may use any model.
func (r *request) unlistedModel() Fault {
	f := FaultUnknownModel(r.read.req.Model)
	if !r.epoch.Explain || !r.in.Caller.Allows("") {
		return f
	}
	var names []string
	for _, m := range r.pool.Listed(r.arrived, maxNamed) {
		names = append(names, strconv.Quote(gate.Cut(m)))
	}
	if len(names) > 0 {
		f.Message += "; those of its pool list " + strings.Join(names, ", ")
	}
	return f
}

// target is the request's path at the worker, without the query.
func (r *request) target() string {
	if r.entry.Door != nil {
		return r.entry.Door.Target(r.pool)
	}
	return r.in.Path
}

// generates tells whether the answer is generated text.
func (r *request) generates() bool { return r.read.req.Kind.Generates() }

// understood tells whether answers of the request's kind are read.
func (r *request) understood() bool { return r.read.req.Kind != prompt.Other }
