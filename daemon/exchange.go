package daemon

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/prefix"
	"github.com/warmpath/warmpath/daemon/prompt"
	"github.com/warmpath/warmpath/daemon/worker"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// exchange is one request from arrival to feedback. It is used by one goroutine at a time: the handler's until the response
// head, then the one that reads the answer.
type exchange struct {
	d       *Daemon
	in      *Inbound
	pool    *pool
	arrived time.Time

	parser  *prompt.Parser
	req     *prompt.Request
	space   *prefix.Namespace
	session string

	view    *view
	result  host.Result
	name    string // the strategy's
	length  int    // of the prompt in tokens
	block   float64
	retries int
	late    bool // a worker was given up for its first byte: that is done once
	looked  bool // the fleet was looked at a second time
}

var parsers = sync.Pool{New: func() any { return new(prompt.Parser) }}

// Serve answers one request. It never fails: what goes wrong is an OpenAI-shaped error. If ctx ends, so
// does the request at the worker.
func (d *Daemon) Serve(ctx context.Context, in *Inbound) *Outbound {
	if in.Path == "/v1/models" && in.Method == "GET" {
		return d.models(in.Caller)
	}
	if !plainPath(in.Path) {
		return faultURL.outbound(shapeOf(in.Path))
	}
	e := &exchange{d: d, in: in, arrived: time.Now(), parser: parsers.Get().(*prompt.Parser), view: views.Get().(*view)}
	e.view.reset()
	out, streaming := e.run(ctx)
	if !streaming {
		e.release()
	}
	return out
}

// plainPath tells whether a path can be passed on: no control characters, and no dot segments, which a proxy in front of a
// worker might resolve to something outside /v1.
func plainPath(path string) bool {
	for i := range len(path) {
		if path[i] <= ' ' || path[i] == 0x7f {
			return false
		}
	}
	for segment := range strings.SplitSeq(strings.ReplaceAll(strings.ToLower(path), "%2e", "."), "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// run goes through the request's life up to the response head. If streaming is true the answer's reader releases e.
func (e *exchange) run(ctx context.Context) (out *Outbound, streaming bool) {
	e.read()
	if e.in.Seen.Model = e.req.Model; !e.in.Caller.Allows(e.req.Model) {
		return e.refuse(faultForbiddenModel(e.req.Model)), false
	}
	if tooLongToTokenize(e.req.Kind, e.in) {
		return e.refuse(faultTokenize), false
	}
	if e.pool = e.choosePool(); e.pool == nil {
		return e.refuse(faultUnknownModel(e.req.Model)), false
	}
	e.in.Seen.Pool = e.pool.name
	e.pool.workers.Request(e.arrived)
	if e.session = e.in.get("X-Session-Id"); e.session == "" {
		e.session = e.req.SessionKey
	}
	bound := e.boundTo()
	switch e.view.snapshot(e.pool, e.req.Model, bound, e.arrived) {
	case worker.NoneUp:
		return e.refuse(faultNoWorker), false
	case worker.UnknownModel:
		return e.refuse(faultUnknownModel(e.req.Model)), false
	case worker.Full:
		return e.refuse(faultFull), false
	}
	e.look(bound)
	e.pick()
	if e.result.Reject {
		return e.refuse(faultRejected), false
	}
	e.d.log.Debug("routed", "pool", e.pool.name, "path", e.in.Path, "worker", e.view.workers[e.result.Row].ID(),
		"strategy", e.name, "fallback", e.result.Fallback, "prompt_tokens", e.length)
	return e.send(ctx)
}

// read takes from the body what routing needs. A fault in it is the worker's to tell.
func (e *exchange) read() {
	if form := e.in.get("Content-Type"); strings.HasPrefix(form, "multipart/") {
		e.req, _ = e.parser.Parse(prompt.Other, nil)
		e.req.Model, e.req.Stream, _ = prompt.Multipart(form, e.in.Body)
		return
	}
	e.req, _ = e.parser.Parse(prompt.KindOf(e.in.Method, e.in.Path), e.in.Body)
}

// choosePool is the pool of the model, or of the worker that made the response that the path names.
func (e *exchange) choosePool() *pool {
	if id := responseID(e.in.Path); id != "" {
		for _, p := range e.d.state.Load().pools {
			if p.sessions.Worker(responseKey(id), e.arrived) != "" {
				return p
			}
		}
	}
	return e.d.poolFor(e.req.Model)
}

// responseKey is under which a response's worker is bound: its state is on that worker only.
func responseKey(id string) string { return "\x00response\x00" + id }

// look fills the frame: who has what, and who the session is bound to.
func (e *exchange) look(bound string) {
	e.view.header(e.pool, e.req, e.session, e.arrived)
	if e.req.HasPrompt {
		var seed uint64
		e.space, seed = e.pool.namespace(e.req)
		e.req.Hash(seed)
		e.length, e.block = e.view.prompt(e.pool, e.space, e.req)
	}
	if bound != "" {
		e.view.bind(bound)
	}
	e.in.Seen.Blocks = int(e.view.frame.Header.PromptBlocks)
}

// boundTo is the id of the worker that the request must go to while that is up, or "".
func (e *exchange) boundTo() string {
	for _, response := range [...]string{e.req.PreviousResponse, responseID(e.in.Path)} {
		if response != "" {
			if id := e.pool.sessions.Worker(responseKey(response), e.arrived); id != "" {
				return id
			}
		}
	}
	if e.session != "" {
		return e.pool.sessions.Worker(e.sessionKey(), e.arrived)
	}
	return ""
}

// sessionKey keeps the sessions of tenants apart.
func (e *exchange) sessionKey() string { return e.req.CacheSalt + "\x00" + e.session }

// pick asks the strategy.
func (e *exchange) pick() {
	began := time.Now()
	e.name = e.pool.strategy.Strategy().Name()
	e.result = e.pool.strategy.Pick(&e.view.frame)
	e.d.metrics.picked(e, time.Since(began))
	e.in.Seen.Strategy, e.in.Seen.Fallback = e.name, e.result.Fallback
}

// believed is how many of the prompt's tokens row i is taken to hold.
func (e *exchange) believed(i int) int {
	return min(e.length, int(float64(e.view.frame.Rows[i].GPU)*e.block))
}

// bindTo keeps the session at the worker that got the request, if the strategy asked for it or it was bound already.
func (e *exchange) bindTo(w *worker.Worker) {
	if e.session != "" && e.result.Flags&abi.FlagBind != 0 {
		e.pool.sessions.Bind(e.sessionKey(), w.ID(), e.arrived)
	}
}

// refuse answers with an error of our own.
func (e *exchange) refuse(f fault) *Outbound {
	out := f.outbound(shapeOf(e.in.Path))
	e.d.metrics.refused(e, f)
	e.in.Seen.End = f.code
	e.explain(out, -1)
	return out
}

// freeView gives the picture of the fleet back, once the decision has been explained.
func (e *exchange) freeView() {
	if e.view != nil {
		views.Put(e.view)
		e.view = nil
	}
}

// release gives the pooled parts back. Nothing of e may be used after it.
func (e *exchange) release() {
	parsers.Put(e.parser)
	e.freeView()
	e.parser, e.req = nil, nil
}
