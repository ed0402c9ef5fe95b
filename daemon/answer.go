package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/prompt"
	"github.com/warmpath/warmpath/daemon/worker"
)

// smallBody is up to where an answer of stated length is read whole before the client gets its head: one write, and a
// worker that breaks off in it, or says in it that it failed, can still be replaced by another.
const smallBody = 256 << 10

// maxReply bounds what is kept of an answer for the index: 1 MiB is some 250,000 generated tokens.
const maxReply = 1 << 20

var replies = sync.Pool{New: func() any { return prompt.NewReply(prompt.Other, false, maxReply) }}

// answer turns a worker's response into the client's, or tells why it must not reach the client. On a failure the ticket has
// ended and the response is closed.
func (e *exchange) answer(a *attempt, row int, more bool) (*Outbound, *failure) {
	if a.resp.Status == 503 && more { // it says: not me, somebody else
		return nil, e.drop(a, worker.Outcome{Kind: worker.Failed, Err: "HTTP 503"}, &failure{reason: "worker_503", fault: faultNoWorker})
	}
	events := strings.HasPrefix(a.resp.Header.Get("Content-Type"), "text/event-stream")
	b := e.newBody(a)
	*b = body{e: e, a: a, events: events, ok: a.resp.Status < 300}
	if b.ok && e.req.Kind != prompt.Other {
		b.reply = replies.Get().(*prompt.Reply)
		b.reply.Reset(e.req.Kind, events, maxReply)
	}
	out := &e.room.out
	*out = Outbound{Status: a.resp.Status, Length: a.resp.Length}
	var f *failure
	switch {
	case !events && a.resp.Length >= 0 && a.resp.Length <= smallBody:
		out.Body, f = b.whole()
		out.Body = e.worded(out.Status, out.Body)
	default:
		out.Stream, f = b, b.hold()
	}
	if f != nil {
		return nil, f
	}
	e.in.Seen.Stream = events
	e.in.Seen.Worker, e.in.Seen.Matched = a.worker.ID(), int(e.view.frame.Rows[row].GPU)
	e.explain(out, row)
	e.by = a.worker
	e.served(a.worker, out.Status, out)
	out.Header = forClient(out.Header, a.resp.Header)
	if out.Status == 503 && a.resp.Header.Get("Retry-After") == "" {
		out.set("Retry-After", "1")
	}
	if out.Stream == nil {
		b.finish(io.EOF)
		b.Close()
	} else {
		e.freeView() // a stream may last for minutes, and rows of 256 workers are 32 KB
	}
	return out, nil
}

// newBody is the memory of an attempt's answer.
func (e *exchange) newBody(a *attempt) *body {
	if a == &e.room.attempt {
		return &e.room.body
	}
	return new(body)
}

// drop ends an attempt that brought nothing for the client.
func (e *exchange) drop(a *attempt, o worker.Outcome, f *failure) *failure {
	a.end(o)
	a.close()
	return f
}

// whole reads a small answer to its end.
func (b *body) whole() ([]byte, *failure) {
	buf := make([]byte, b.a.resp.Length+1)
	_, err := io.ReadFull(b.a.resp, buf[:b.a.resp.Length])
	if err == nil {
		if _, err = b.a.resp.Read(buf[b.a.resp.Length:]); err == io.EOF { // its end gives the connection back
			err = nil
		}
	}
	if buf = buf[:b.a.resp.Length]; err != nil {
		return nil, b.broken(err)
	}
	if f := b.dying(buf); f != nil {
		return nil, f
	}
	if b.reply != nil {
		b.reply.Body(buf)
		if b.reply.Failed() && !b.refused() {
			return nil, b.hidden()
		}
		b.name()
	}
	b.came = b.began()
	return buf, nil
}

// dying ends an attempt whose answer is a 500 of a worker on its way out. vLLM 0.32 shuts its tokenizer down before its port,
// and then answers every prompt of text so; a dead engine is named as well. Any other 500 is the request's own, unless this worker
// fails far more often than the others.
func (b *body) dying(answer []byte) *failure {
	if status := b.a.resp.Status; status == 502 || status == 504 { // of a proxy at the worker
		return b.doubt()
	} else if status != 500 {
		return nil
	}
	switch {
	case bytes.Contains(answer, []byte("cannot schedule new futures after")):
		return b.discard(worker.Outcome{Kind: worker.Leaving, Err: "is shutting down"}, &failure{reason: "hidden_failure", fault: faultHidden})
	case bytes.Contains(answer, []byte("EngineCore encountered an issue")):
		return b.discard(worker.Outcome{Kind: worker.Failed, Err: "its engine is dead"}, &failure{reason: "hidden_failure", fault: faultHidden})
	}
	return b.doubt()
}

// doubt ends an attempt whose failed answer is taken for the worker's fault, if another worker can be asked.
func (b *body) doubt() *failure {
	e := b.e
	if e.doubted || !e.another || e.consumed() || e.req.Kind == prompt.Other || !e.pool.workers.FailsAlone(b.a.worker) || !e.pool.workers.MayRetry(time.Now()) {
		return nil
	}
	e.doubted = true
	return b.discard(worker.Outcome{Kind: worker.Failed, Err: "HTTP status of 500 or more"},
		&failure{reason: "worker_500", fault: faultUpstream, paid: true})
}

// refused tells of an error inside a 200 that is about the request, as old vLLM answers to embeddings of a model without them.
func (b *body) refused() bool {
	code := b.reply.FailedCode()
	return code >= 400 && code < 500
}

// broken ends an attempt whose answer broke off before the client saw any of it.
func (b *body) broken(err error) *failure {
	f, o := b.e.classify(b.a, err)
	return b.discard(o, f)
}

// hidden ends an attempt whose answer says inside a 200 that the worker failed (see prompt.Reply.Failed). A worker that
// aborts what it has just accepted is shutting down or paused: it is taken for draining.
func (b *body) hidden() *failure {
	o := worker.Outcome{Kind: worker.Failed, Err: "told of a failure inside its answer"}
	if b.aborted() {
		o = worker.Outcome{Kind: worker.Leaving, Err: "aborts what it accepts"}
	}
	return b.discard(o, &failure{reason: "hidden_failure", fault: faultHidden})
}

// aborted tells an abort, or an end without an answer, from an error that the worker names.
func (b *body) aborted() bool {
	return b.reply.FinishReason() == "abort" || b.reply.FailedCode() == 0 && b.reply.Clean()
}

func (b *body) discard(o worker.Outcome, f *failure) *failure {
	b.once.Do(func() {})
	b.giveBack()
	return b.e.drop(b.a, o, f)
}

// hold reads an answer until its first byte, a stream that is understood until its first output, so that a worker that fails
// before is replaced and the client never knows. The first event of a chat says only that the assistant speaks, and a head says
// nothing: vLLM sends it before the prefill.
func (b *body) hold() *failure {
	buf := pieces.Get().(*[]byte)
	b.buf = buf
	understood := b.reply != nil && b.events
	if understood {
		b.a.resp.SetChunkTimeout(b.e.pool.headerTimeout()) // the head of a stream comes before the prefill
	}
	for {
		n, err := b.a.resp.Read((*buf)[len(b.held):cap(*buf)])
		b.a.ticket.Flow(time.Now())
		b.held = (*buf)[:len(b.held)+n]
		b.feed(b.held[len(b.held)-n:])
		switch {
		case understood && b.reply.Failed() && !b.refused():
			return b.hidden()
		case err == io.EOF && b.cut():
			return b.broken(io.ErrUnexpectedEOF)
		case err == io.EOF:
			b.err = io.EOF
		case err != nil:
			return b.broken(err)
		case understood && !b.reply.Output() && len(b.held) < cap(*buf) && !bytes.HasPrefix(b.held[len(b.held)-n:], []byte(":")):
			continue // a comment keeps a connection alive through whatever stands before us: it must go on
		}
		b.a.resp.SetChunkTimeout(0)
		if !b.a.heard() {
			return b.broken(errLate)
		}
		b.a.idle.Store(true)
		b.progress()
		return nil
	}
}

// pieces are the buffers of streams before their first output: a page holds several events.
var pieces = sync.Pool{New: func() any { p := make([]byte, 4096); return &p }}

// progress notes the first output of an answer that goes to the client.
func (b *body) progress() {
	if b.first == 0 && (b.reply == nil || b.reply.Output()) {
		b.began()
	}
}

// began notes the first byte of an answer that goes to the client.
func (b *body) began() (now time.Time) {
	b.a.heard()
	now = time.Now()
	b.first = now.Sub(b.e.arrived)
	if b.ok {
		b.a.ticket.FirstByte(now)
		b.e.d.metrics.firstByte(b)
		b.e.in.Seen.First = b.first
	}
	return now
}

// feed lets the reply hear a piece of the answer.
func (b *body) feed(p []byte) {
	if b.reply == nil || len(p) == 0 {
		return
	}
	b.reply.Feed(p)
	b.name()
}

// name binds a response's id to its worker: the state is there only, and what refers to it must come here.
func (b *body) name() {
	if b.named || b.e.req.Kind != prompt.Responses {
		return
	}
	if id := b.reply.ID(); id != "" {
		b.named = true
		b.e.pool.bindResponse(b.e.in.stored(id), b.a.worker)
	}
}

// causeOf is why the request was ended from our side, or nil.
func causeOf(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

var errBrokeOff = errors.New("daemon: the worker broke off in the middle of an answer")
