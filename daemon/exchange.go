package daemon

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/prefix"
	"github.com/warmpath/warmpath/daemon/gate"
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
	clear  bool   // the body was understood to its end
	named  string // the body's model; a header may name another
	stay   stay
	call   *sagemaker.Call // on the paths that take SageMaker's fields
	by     *worker.Worker  // who answered

	view    *view
	result  host.Result
	name    string // the strategy's
	length  int    // of the prompt in tokens; of a list, of all of them
	longest int    // of the longest of them
	held    int    // tokens believed in the cache of the worker that was asked last
	block   float64
	retries int
	late    bool // a worker was given up for its first byte: that is done once
	another bool // worker is left in the choice
	doubted bool // a 500 was not taken for the request's own: that is done once
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
	if id, ok := modelPath(in); ok {
		return d.model(in, id)
	}
	if speaksSageMaker(in) { // the endpoint's name is the only part of the path that counts, and is checked
		return d.invoke(ctx, in)
	}
	path, plain := plainPath(in.Path)
	if !plain {
		in.Seen.End = faultURL.code
		return faultURL.outbound(shapeOf(in.Path))
	}
	if in.Path = path; path == "/v1/models" && in.Method == "GET" {
		return d.models(in)
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

// route goes through the request's life up to the choice. Its answer, if there is one, refuses the request.
func (e *exchange) route(ctx context.Context) *Outbound {
	e.read()
	e.in.Seen.Model = e.req.Model
	if e.call == nil || e.call.Op != sagemaker.Close { // that names no model
		if f := e.forbids(); f != nil {
			return e.refuse(*f)
		}
	}
	if f := e.foreign(); f != nil {
		return e.refuse(*f)
	}
	if tooLongToTokenize(e.req.Kind, e.in) {
		return e.refuse(faultTokenize)
	}
	if e.pool = e.choosePool(); e.pool == nil {
		return e.refuse(faultUnknownModel(e.req.Model))
	}
	e.in.Seen.Pool = e.pool.name
	if f := e.hidesResponse(); f != nil {
		return e.refuse(*f)
	}
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
	if e.d.access.on.Load() {
		e.in.Seen.Reason = e.reason()
	}
	if e.result.Reject != nil {
		return e.refuse(faultRejectedBy(e.result.Reject))
	}
	if f := e.settle(); f != nil {
		return e.refuse(*f)
	}
	if e.stay.bound.Worker != "" || e.stay.opened != "" {
		e.in.Seen.Session = e.stay.name.Kind.String()
	}
	if e.d.log.Enabled(ctx, slog.LevelDebug) { // the words of a line that nobody reads are six allocations
		e.logChoice()
	}
	return nil
}

// logChoice tells what was decided.
func (e *exchange) logChoice() {
	e.pool.log.Debug("routed", "id", e.in.ID, "path", gate.Cut(e.in.Path), "worker", e.view.workers[e.result.Row].ID(),
		"strategy", e.name, "reason", e.reason(), "believed_prompt_tokens", e.length)
}

// snapshot draws the rows. While no worker is up, but one has not been heard yet, it waits for that: a change may have replaced
// them all.
func (e *exchange) snapshot(ctx context.Context, bound string) worker.Standing {
	var status worker.Standing
	awaitCheck(ctx, func() bool {
		if e.stay.silent {
			bound = e.home()
		}
		status = e.view.snapshot(e.pool, e.req.Model, bound, time.Now())
		return status != worker.Starting
	})
	return status
}

// read takes from the body what routing needs. A fault in it is the worker's to tell.
func (e *exchange) read() {
	if kind := e.in.get("Content-Type"); len(kind) > 10 && strings.EqualFold(kind[:10], "multipart/") {
		e.readForm(kind)
		e.named = e.req.Model
		return
	}
	path := e.in.Path
	if e.call != nil && shapeOf(path) == aws {
		path = invocations
	}
	var err error
	e.req, err = e.parser.Parse(prompt.KindOf(e.in.Method, path), e.in.Body)
	e.clear, e.named = err == nil, e.req.Model
	if e.call != nil {
		if adapter := e.in.get(sagemaker.HeaderAdapter); adapter != "" {
			e.req.Model = adapter
		}
	}
}

// choosePool is the pool of the model, or of the worker that made the response that the path names.
func (e *exchange) choosePool() *pool {
	if e.call != nil {
		p, s := e.d.callPool(e.in, e.call)
		if p != nil {
			return p
		}
		e.stay.silent = s == session.Silent
	}
	if id := responseID(e.in.Method, e.in.Path); id != "" {
		p, s := e.d.responsePool(e.in.stored(id), e.arrived)
		if p != nil {
			return p
		}
		e.stay.silent = s == session.Silent
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
		e.length, e.longest, e.block = e.view.prompt(e.pool, e.space, e.req)
	}
	e.view.bind(e.stay.bound.Worker)
	e.in.Seen.Blocks = int(e.view.frame.Header.PromptBlocks)
}

// pick asks the strategy.
func (e *exchange) pick() {
	began := time.Now()
	e.name = e.pool.strategy.Strategy().Name()
	e.view.frame.Began = began
	e.result = e.pool.strategy.Pick(&e.view.frame)
	e.d.metrics.picked(e, time.Since(began))
	e.in.Seen.Strategy, e.in.Seen.Fallback = e.name, e.result.Fallback
	if e.result.Fallback != "" {
		e.logFailedPick()
	}
}

// believed is how many of the prompt's tokens row i is taken to hold; of a list, of all its prompts together. It is asked before
// the prompt enters the index.
func (e *exchange) believed(i int) int {
	w, matched := e.view.workers[i], e.view.frame.Rows[i].GPU
	if len(e.req.Chains) < 2 || e.req.BypassesCache {
		return inBlocks(float64(matched)*e.block, e.length, w.BlockTokens())
	}
	sum, slot, out := 0, [1]uint32{w.Slot()}, [1]uint32{}
	for k := range e.req.Chains {
		c := &e.req.Chains[k]
		length, block := e.pool.scale.tokens(c)
		e.space.Match(c.Hashes, slot[:], out[:])
		sum += inBlocks(float64(out[0])*block, length, w.BlockTokens())
	}
	return sum
}

// inBlocks is what an engine finds of so many held tokens of a prompt: whole blocks, and never the last token, which it always
// computes. size is the tokens of a block, 0 if it is not known.
func inBlocks(held float64, length, size int) int {
	n := max(0, min(length-1, int(held)))
	if size > 0 {
		n -= n % size
	}
	return n
}

// refuse answers with an error of our own.
func (e *exchange) refuse(f fault) *Outbound {
	e.unbind()
	out := f.outbound(shapeOf(e.in.Path))
	e.d.metrics.refused(e, f, out.Status)
	if strings.HasPrefix(f.code, "session_") {
		e.d.metrics.sessionRefused(e.poolName(), f)
		e.d.log.Info("session refused", "id", e.in.ID, "pool", e.poolName(), "reason", f.code, "path", gate.Cut(e.in.Path),
			"session", session.Fingerprint(e.stay.name))
	}
	e.in.Seen.End = f.code
	e.explain(out, -1)
	return out
}

// poolName is the name of the pool, or "" if none has been chosen.
func (e *exchange) poolName() string {
	if e.pool == nil {
		return ""
	}
	return e.pool.name
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
