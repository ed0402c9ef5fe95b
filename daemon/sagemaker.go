package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/gate"
	"github.com/warmpath/warmpath/daemon/prompt"
	"github.com/warmpath/warmpath/daemon/sagemaker"
	"github.com/warmpath/warmpath/daemon/session"
	"github.com/warmpath/warmpath/daemon/upstream"
	"github.com/warmpath/warmpath/daemon/worker"
)

// invocations is the path under which workers take what comes in on SageMaker's.
const invocations = "/invocations"

// speaksSageMaker tells of the paths that take SageMaker's session fields.
func speaksSageMaker(in *Inbound) bool {
	return in.Method == http.MethodPost && (in.Path == invocations || shapeOf(in.Path) == aws)
}

// invoke serves SageMaker's paths, and /invocations with its session fields.
func (d *Daemon) invoke(ctx context.Context, in *Inbound) *Outbound {
	call, bad := sagemaker.Read(in.Path, in.lookup, sagemaker.RequestType(in.Body))
	if bad != nil {
		return d.refuseCall(in, fault{bad.Status, "invalid_request_error", "session_malformed", bad.Message, 0})
	}
	switch call.Op {
	case sagemaker.Open:
		return d.open(ctx, in, &call)
	case sagemaker.Close:
		return d.closeCall(ctx, in, &call)
	}
	e := d.begin(in)
	e.call = &call
	out := e.serve(ctx)
	ended := e.endedAtWorker(out)
	if ended == session.Lost {
		return d.refuseCall(in, faultSession(session.Lost))
	}
	if out = e.told(out); ended == session.Closed {
		out.set(sagemaker.HeaderClosedSession, call.Session)
	}
	return out
}

// endedAtWorker takes the worker's word for the end of a session that it holds, and unbinds it: Closed by the request that has just
// been answered, Lost if the worker knows nothing of it, as after a restart that no probe has seen. Found if neither.
func (e *exchange) endedAtWorker(out *Outbound) session.Status {
	b, status := e.stay.bound, session.Found
	if e.in.Seen.Worker == "" || !b.Minted || b.Worker != e.in.Seen.Worker {
		return status
	}
	switch {
	case out.Status == 200 && out.get(sagemaker.HeaderClosedSession) != "":
		status = session.Closed
	case out.Status == 400 && out.Stream == nil && bytes.Contains(bytes.ToLower(out.Body), []byte("session not found")):
		status = session.Lost
	default:
		return status
	}
	if e.pool.sessions.Close(e.in.opened(e.call.Session), time.Now()) {
		e.pool.crowd.add(b.Worker, -1)
	}
	return status
}

// refuseCall answers what is wrong before a pool is chosen: a log line, a counter, an error in the path's shape.
func (d *Daemon) refuseCall(in *Inbound, f fault) *Outbound {
	d.metrics.sessionRefused(in.Seen.Pool, f)
	d.log.Info("session refused", "id", in.ID, "pool", in.Seen.Pool, "reason", f.code, "path", gate.Cut(in.Path))
	in.Seen.End = f.code
	return f.outbound(shapeOf(in.Path))
}

// callPool is the pool that a call names: by the endpoint's name, or by its session. nil leaves it to the model: no pool has the
// session (Unknown), or any may have it (Silent).
func (d *Daemon) callPool(in *Inbound, c *sagemaker.Call) (*pool, session.Status) {
	pools := d.state.Load().pools
	for _, p := range pools {
		if c.Endpoint == p.name {
			return p, session.Found
		}
	}
	none := session.Unknown
	for _, p := range pools {
		if c.Session == "" {
			break
		}
		switch _, s := p.sessions.Peek(in.opened(c.Session), time.Now()); s {
		case session.Unknown:
		case session.Silent: // another pool may hold it here
			none = s
		default:
			return p, session.Found
		}
	}
	return nil, none
}

// keepsSessions tells whether a worker is taken to keep sessions of its own.
func (p *pool) keepsSessions(w *worker.Worker) bool {
	switch p.set.Load().conf.WorkerSessions {
	case "on":
		return true
	case "off":
		return false
	}
	_, without := p.without.Load(w.Slot())
	return !without
}

// target is the request's path at the worker.
func (e *exchange) target() string {
	path := e.targetPath()
	if e.in.Query != "" {
		path += "?" + e.in.Query
	}
	return path
}

// targetPath is target without the query.
func (e *exchange) targetPath() string {
	if e.call != nil {
		return e.pool.set.Load().conf.InvocationPath
	}
	return e.in.Path
}

// sessionFields appends what a worker is to know of the session.
func (e *exchange) sessionFields(out []upstream.Field) []upstream.Field {
	if own := e.d.state.Load().conf.Sessions.Cookie; own != "" {
		if rest := otherCookies(e.in.all("Cookie"), own); rest != "" {
			out = append(out, upstream.Field{Name: "Cookie", Value: rest})
		}
	}
	c := e.call
	if c == nil {
		return out
	}
	if c.Stream && c.Accept != "" {
		out = append(out, upstream.Field{Name: "Accept", Value: c.Accept})
	}
	switch {
	case e.stay.bound.Minted:
		out = append(out, upstream.Field{Name: sagemaker.HeaderSession, Value: e.stay.bound.Upstream(c.Session)})
	case c.Op == sagemaker.Open && !c.InBody && e.pool.set.Load().conf.WorkerSessions == "on":
		out = append(out, upstream.Field{Name: sagemaker.HeaderSession, Value: "NEW_SESSION"})
	}
	return out
}

// otherCookies is a Cookie field without the router's own.
func otherCookies(field, own string) string {
	var rest []string
	for part := range strings.SplitSeq(field, ";") {
		part = strings.TrimSpace(part)
		if name, _, _ := strings.Cut(part, "="); part != "" && name != own {
			rest = append(rest, part)
		}
	}
	return strings.Join(rest, "; ")
}

// told turns an answer into SageMaker's form.
func (e *exchange) told(out *Outbound) *Outbound { return told(out, e.in, e.call) }

func told(out *Outbound, in *Inbound, c *sagemaker.Call) *Outbound {
	if in.Seen.Worker == "" { // a fault of ours has its form already
		return out
	}
	kept := out.Header[:0]
	form := ""
	for _, f := range out.Header {
		if strings.EqualFold(f.Name, "Content-Type") {
			form = f.Value
		}
		if !c.StripAnswer(f.Name) {
			kept = append(kept, f)
		}
	}
	out.Header = kept
	if c.Endpoint == "" {
		return out
	}
	if out.Status < 200 || out.Status > 299 {
		text, _, _ := whole(out, maxTranslated)
		bad := sagemaker.Translate(out.Status, text)
		out = &Outbound{Status: bad.Status, Body: bad.Body()}
		for _, h := range bad.Headers(in.ID) {
			out.setOnce(h[0], h[1])
		}
		return out
	}
	out.set(sagemaker.HeaderVariant, in.Seen.Pool)
	if c.Stream {
		src := out.Stream
		if src == nil {
			src = io.NopCloser(bytes.NewReader(out.Body))
		}
		out.Stream, out.Body, out.Length = sagemaker.NewStream(src, exception), nil, -1
		out.set("Content-Type", sagemaker.StreamType)
		if form != "" {
			out.set(sagemaker.HeaderContentType, form)
		}
	}
	return out
}

// maxTranslated is what is read of a worker's error for its message, which has 2,048 characters at most.
const maxTranslated = 64 << 10

// exception is what a stream that broke off ends with.
func exception(err error) sagemaker.StreamError {
	if errors.Is(err, errDraining) {
		return sagemaker.InternalStreamFailure(faultStopping.message)
	}
	return sagemaker.ModelBroke(err)
}

// setOnce leaves out the request's id, which every answer gets at the front.
func (o *Outbound) setOnce(name, value string) {
	if name != headerAWSRequest {
		o.set(name, value)
	}
}

// headerAWSRequest tells the request's id to AWS's clients.
const headerAWSRequest = "x-amzn-RequestId"

// whole reads an answer to its end, or its first limit bytes: then it is cut.
func whole(out *Outbound, limit int64) (text []byte, cut bool, err error) {
	if out.Stream == nil {
		return out.Body, false, nil
	}
	defer out.Stream.Close()
	text, err = io.ReadAll(io.LimitReader(out.Stream, limit+1))
	if int64(len(text)) > limit {
		return text[:limit], true, err
	}
	return text, false, err
}

// salted is the namespace's salt: the application's and the body's.
func (e *exchange) salted(r *prompt.Request) string {
	if e.call != nil && e.call.PrefixAwareID != "" {
		return r.CacheSalt + "\x00" + e.call.PrefixAwareID
	}
	return r.CacheSalt
}
