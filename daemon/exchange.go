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
}

var parsers = sync.Pool{New: func() any { return new(prompt.Parser) }}

// kindOf tells which prompts are understood.
func kindOf(path string) prompt.Kind {
	switch path {
	case "/v1/chat/completions":
		return prompt.Chat
	case "/v1/completions":
		return prompt.Completion
	}
	return prompt.Other
}

// Serve answers one request. It never fails: what goes wrong is an OpenAI-shaped error. If ctx ends, so
// does the request at the worker.
func (d *Daemon) Serve(ctx context.Context, in *Inbound) *Outbound {
	if in.Path == "/v1/models" && in.Method == "GET" {
		return d.models()
	}
	if !plainPath(in.Path) {
		return faultURL.outbound()
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
	e.req, _ = e.parser.Parse(kindOf(e.in.Path), e.in.Body) // a fault in it is the worker's to tell
	if e.pool = e.d.poolFor(e.req.Model); e.pool == nil {
		return e.refuse(faultUnknownModel(e.req.Model)), false
	}
	switch e.view.snapshot(e.pool, e.req.Model, e.arrived) {
	case worker.NoneUp:
		return e.refuse(faultNoWorker), false
	case worker.UnknownModel:
		return e.refuse(faultUnknownModel(e.req.Model)), false
	}
	e.look()
	e.pick()
	if e.result.Reject {
		return e.refuse(faultRejected), false
	}
	e.d.log.Debug("routed", "pool", e.pool.name, "path", e.in.Path, "worker", e.view.workers[e.result.Row].ID(),
		"strategy", e.name, "fallback", e.result.Fallback, "prompt_tokens", e.length)
	return e.send(ctx)
}

// look fills the frame: who has what, and who the session is bound to.
func (e *exchange) look() {
	if e.session = e.in.get("X-Session-Id"); e.session == "" {
		e.session = e.req.SessionKey
	}
	e.view.header(e.pool, e.req, e.session, e.arrived)
	if e.req.HasPrompt {
		var seed uint64
		e.space, seed = e.pool.namespace(e.req)
		e.req.Hash(seed)
		e.length, e.block = e.view.prompt(e.pool, e.space, e.req)
	}
	if e.session != "" {
		if id := e.pool.sessions.Worker(e.sessionKey(), e.arrived); id != "" {
			e.view.bind(id)
		}
	}
}

// sessionKey keeps the sessions of tenants apart.
func (e *exchange) sessionKey() string { return e.req.CacheSalt + "\x00" + e.session }

// pick asks the strategy.
func (e *exchange) pick() {
	began := time.Now()
	e.name = e.pool.strategy.Strategy().Name()
	e.result = e.pool.strategy.Pick(&e.view.frame)
	e.d.metrics.picked(e, time.Since(began))
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
	out := f.outbound()
	if strings.HasPrefix(e.in.Path, "/v1/") {
		e.d.metrics.refused(e, f)
	}
	e.explain(out, -1)
	return out
}

// release gives the pooled parts back. Nothing of e may be used after it.
func (e *exchange) release() {
	parsers.Put(e.parser)
	views.Put(e.view)
	e.parser, e.view, e.req = nil, nil, nil
}
