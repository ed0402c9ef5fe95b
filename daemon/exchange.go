package daemon

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/prefix"
	"github.com/warmpath/warmpath/daemon/prompt"
	"github.com/warmpath/warmpath/daemon/sagemaker"
	"github.com/warmpath/warmpath/daemon/session"
	"github.com/warmpath/warmpath/daemon/upstream"
	"github.com/warmpath/warmpath/daemon/worker"
	"github.com/warmpath/warmpath/host"
)

// exchange is one request from arrival to feedback. It is used by one goroutine at a time: the handler's until the response
// head, then the one that reads the answer.
type exchange struct {
	d       *Daemon
	in      *Inbound
	pool    *pool
	arrived time.Time

	parser *prompt.Parser
	req    *prompt.Request
	space  *prefix.Namespace
	clear  bool // the body was understood to its end
	stay   stay
	call   *sagemaker.Call // on the paths that take SageMaker's fields
	by     *worker.Worker  // who answered

	view    *view
	result  host.Result
	name    string // the strategy's
	length  int    // of the prompt in tokens
	block   float64
	retries int
	late    bool // a worker was given up for its first byte: that is done once
	looked  bool // the fleet was looked at a second time
	refused bool // the session's worker could not be connected to

	room room
}

// room is the memory of a request's first attempt, nearly always its only one: one allocation with the exchange in place of
// five. A further attempt has its own, as a late callback may still look at the first.
type room struct {
	request upstream.Request
	tried   [4]*worker.Worker
	attempt attempt
	body    body
	out     Outbound
	used    bool // attempt is
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
	if speaksSageMaker(in) {
		return d.invoke(ctx, in)
	}
	if id, ok := sessionsPath(in.Path); ok {
		return d.sessions(ctx, in, id)
	}
	return d.begin(in).serve(ctx)
}

func (d *Daemon) begin(in *Inbound) *exchange {
	e := &exchange{d: d, in: in, arrived: time.Now(), parser: parsers.Get().(*prompt.Parser), view: views.Get().(*view)}
	e.view.reset()
	return e
}

// serve routes and sends.
func (e *exchange) serve(ctx context.Context) *Outbound {
	out, streaming := e.route(ctx), false
	if out == nil {
		out, streaming = e.send(ctx)
	}
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

// route goes through the request's life up to the choice. Its answer, if there is one, refuses the request.
func (e *exchange) route(ctx context.Context) *Outbound {
	e.read()
	closing := e.call != nil && e.call.Op == sagemaker.Close // that names no model
	if e.in.Seen.Model = e.req.Model; !closing && !e.mayUse() {
		return e.refuse(faultForbiddenModel(e.req.Model))
	}
	if tooLongToTokenize(e.req.Kind, e.in) {
		return e.refuse(faultTokenize)
	}
	if e.pool = e.choosePool(); e.pool == nil {
		return e.refuse(faultUnknownModel(e.req.Model))
	}
	e.in.Seen.Pool = e.pool.name
	e.pool.workers.Request(e.arrived)
	e.nameSession(&e.d.state.Load().conf.Sessions)
	if f := e.findSession(); f != nil {
		return e.refuse(*f)
	}
	if f := e.draw(ctx); f != nil {
		return e.refuse(*f)
	}
	e.look()
	e.pick()
	if e.result.Reject {
		return e.refuse(faultRejected)
	}
	if f := e.settle(); f != nil {
		return e.refuse(*f)
	}
	if e.d.log.Enabled(ctx, slog.LevelDebug) { // the words of a line that nobody reads are six allocations
		e.logChoice()
	}
	return nil
}

// logChoice tells what was decided.
func (e *exchange) logChoice() {
	e.d.log.Debug("routed", "pool", e.pool.name, "path", e.in.Path, "worker", e.view.workers[e.result.Row].ID(),
		"strategy", e.name, "fallback", e.result.Fallback, "prompt_tokens", e.length)
}

// snapshot draws the rows. While no worker is up, but one has not been heard yet, it waits for that: a change may have replaced
// them all.
func (e *exchange) snapshot(ctx context.Context, bound string) worker.Status {
	var status worker.Status
	awaitCheck(ctx, func() bool {
		status = e.view.snapshot(e.pool, e.req.Model, bound, time.Now())
		return status != worker.NoneUp || !e.pool.starting()
	})
	return status
}

// mayUse tells whether the key's models allow the request. A key for some models needs a body that was read to its end and
// understood: a worker may read more out of it, another model behind the first for one. A stored response is its own password.
func (e *exchange) mayUse() bool {
	c := e.in.Caller
	switch {
	case c.Allows(""): // any model
		return true
	case responseID(e.in.Path) != "":
		return true
	case strings.HasSuffix(e.in.Path, "load_lora_adapter"): // it would make a model of that name
		return false
	}
	return e.clear && e.in.Tail == nil && c.Allows(e.req.Model)
}

// maxClearParts is how many parts of a form are looked at with certainty.
const maxClearParts = 200

// read takes from the body what routing needs. A fault in it is the worker's to tell.
func (e *exchange) read() {
	if form := e.in.get("Content-Type"); strings.HasPrefix(form, "multipart/") {
		e.req, _ = e.parser.Parse(prompt.Other, nil)
		e.req.Model, e.req.Stream, e.clear = prompt.Multipart(form, e.in.Body)
		e.clear = e.clear && bytes.Count(e.in.Body, []byte("form-data")) <= maxClearParts
		return
	}
	path := e.in.Path
	if e.call != nil && shapeOf(path) == aws {
		path = invocations
	}
	var err error
	e.req, err = e.parser.Parse(prompt.KindOf(e.in.Method, path), e.in.Body)
	e.clear = err == nil
	if e.call != nil {
		if adapter := e.in.get(sagemaker.HeaderAdapter); adapter != "" {
			e.req.Model = adapter
		}
	}
}

// choosePool is the pool of the model, or of the worker that made the response that the path names.
func (e *exchange) choosePool() *pool {
	if e.call != nil {
		if p := e.d.callPool(e.in, e.call); p != nil {
			return p
		}
	}
	if id := responseID(e.in.Path); id != "" {
		for _, p := range e.d.state.Load().pools {
			if p.hasResponse(id, e.arrived) {
				return p
			}
		}
	}
	return e.d.poolFor(e.req.Model)
}

// look fills the frame: who has what, and who the session is bound to.
func (e *exchange) look() {
	e.view.header(e.pool, e.req, e.stay.name.ID, e.arrived)
	if e.req.HasPrompt {
		var seed uint64
		e.space, seed = e.pool.namespace(e.req, e.salted(e.req))
		e.req.Hash(seed)
		e.length, e.block = e.view.prompt(e.pool, e.space, e.req)
	}
	e.view.bind(e.stay.bound.Worker)
	e.in.Seen.Blocks = int(e.view.frame.Header.PromptBlocks)
}

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

// refuse answers with an error of our own.
func (e *exchange) refuse(f fault) *Outbound {
	e.unbind()
	out := f.outbound(shapeOf(e.in.Path))
	e.d.metrics.refused(e, f)
	if strings.HasPrefix(f.code, "session_") {
		e.d.metrics.sessionRefused(f)
		e.d.log.Info("session refused", "reason", f.code, "path", e.in.Path, "id", e.in.ID, "session", session.Fingerprint(e.stay.name))
	}
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
