package exchange

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/prompt"
	"github.com/warmpath/warmpath/daemon/route"
	"github.com/warmpath/warmpath/daemon/worker"
)

// smallBody is up to where an answer of stated length is read whole before the client gets its head: one write, and a
// worker that breaks off in it, or says in it that it failed, can still be replaced by another.
const smallBody = 256 << 10

// maxReply bounds what is kept of an answer for the index: 1 MiB is some 250,000 generated tokens.
const maxReply = 1 << 20

var replies = sync.Pool{New: func() any { return prompt.NewReply(prompt.Other, false, maxReply) }}

// body is the worker's answer on its way to the client. Whoever ends it, finish runs once.
type body struct {
	r      *request
	a      *attempt
	reply  *prompt.Reply // nil: nothing is learnt from it
	events bool          // server-sent events
	ok     bool          // the status is a success
	named  bool          // its id has been bound to the worker
	first  bool          // its first output has come
	buf    *[]byte       // of held
	held   []byte        // read from the worker, not yet by the client
	part   []byte        // the beginning of an event, read and held back
	inside bool          // the client has the beginning of an event
	tail   []byte        // an error event that is still to be read
	err    error         // what comes after held and tail
	once   sync.Once
	came   time.Time // when all of it had come; zero for a stream
}

// begin makes b the answer of an attempt.
func (b *body) begin(r *request, a *attempt) {
	*b = body{r: r, a: a, events: strings.HasPrefix(a.resp.Header.Get("Content-Type"), "text/event-stream"), ok: a.resp.Status < 300}
	if b.ok && r.understood() {
		b.reply = replies.Get().(*prompt.Reply)
		b.reply.Reset(r.read.req.Kind, b.events, maxReply)
	}
}

// small tells of an answer that is read whole.
func (b *body) small() bool { return !b.events && b.a.resp.Length >= 0 && b.a.resp.Length <= smallBody }

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
	return buf, nil
}

// understand reads an answer that came whole. One that says inside that it failed ends the attempt.
func (b *body) understand(answer []byte) *failure {
	if b.reply != nil {
		b.reply.Body(answer)
		if b.reply.Failed() && !b.refused() {
			return b.hidden()
		}
		b.name()
	}
	b.came = b.began()
	return nil
}

// dying ends an attempt whose answer is a 500 of a worker on its way out. vLLM 0.32 shuts its tokenizer down before
// its port, and then answers every prompt of text so; a dead engine is named as well.
func (b *body) dying(answer []byte) *failure {
	if b.a.resp.Status != 500 {
		return nil
	}
	switch {
	case bytes.Contains(answer, []byte("cannot schedule new futures after")):
		return b.discard(worker.Outcome{Kind: worker.Leaving, Err: "is shutting down"}, &failure{reason: reasonHidden, fault: FaultHidden})
	case bytes.Contains(answer, []byte("EngineCore encountered an issue")):
		return b.discard(worker.Outcome{Kind: worker.Failed, Err: "its engine is dead"}, &failure{reason: reasonHidden, fault: FaultHidden})
	}
	return nil
}

// refused tells of an error inside a 200 that is about the request, as old vLLM answers to embeddings of a model
// without them.
func (b *body) refused() bool {
	code := b.reply.FailedCode()
	return code >= 400 && code < 500
}

// broken ends an attempt whose answer broke off before the client saw any of it.
func (b *body) broken(err error) *failure {
	f, o := b.a.classify(err)
	return b.discard(o, f)
}

// hidden ends an attempt whose answer says inside a 200 that the worker failed (see prompt.Reply.Failed). A worker that
// aborts what it has just accepted is shutting down or paused: it is taken for draining.
func (b *body) hidden() *failure {
	o := worker.Outcome{Kind: worker.Failed, Err: "told of a failure inside its answer"}
	if b.aborted() {
		o = worker.Outcome{Kind: worker.Leaving, Err: "aborts what it accepts"}
	}
	return b.discard(o, &failure{reason: reasonHidden, fault: FaultHidden})
}

// aborted tells an abort, or an end without an answer, from an error that the worker names.
func (b *body) aborted() bool {
	return b.reply.FinishReason() == "abort" || b.reply.FailedCode() == 0 && b.reply.Clean()
}

func (b *body) discard(o worker.Outcome, f *failure) *failure {
	b.once.Do(func() {}) // finish has nothing to do any more
	b.a.trip.End(&o, route.End{At: time.Now()})
	b.a.close()
	b.giveBack()
	return f
}

// hold reads an answer until its first byte, a stream that is understood until its first output, so that a worker
// that fails before is replaced and the client never knows. The first event of a chat says only that the assistant
// speaks, and a head says nothing: vLLM sends it before the prefill.
func (b *body) hold() *failure {
	buf := pieces.Get().(*[]byte)
	b.buf = buf
	understood := b.reply != nil && b.events
	if understood {
		b.a.resp.SetChunkTimeout(b.r.pool.HeaderTimeout) // the head of a stream comes before the prefill
	}
	for {
		n, err := b.a.resp.Read((*buf)[len(b.held):cap(*buf)])
		b.a.trip.Flow(time.Now())
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
		if !b.a.stopTimer() {
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
	if !b.first && (b.reply == nil || b.reply.Output()) {
		b.began()
	}
}

// began notes the first byte of an answer that goes to the client.
func (b *body) began() (now time.Time) {
	b.a.stopTimer()
	now = time.Now()
	b.first = true
	if b.ok {
		b.a.trip.FirstByte(now)
		seen := &b.r.in.Seen
		seen.FirstByte, seen.Stream, seen.Worker = now.Sub(b.r.arrived), b.events, b.a.trip.Worker().ID()
		b.r.server.meter.FirstByte(seen)
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
	if b.named || b.r.read.req.Kind != prompt.Responses {
		return
	}
	if id := b.reply.ID(); id != "" {
		b.named = true
		b.r.pool.Sessions.Bind(b.r.in.Stored(id), b.a.trip.Worker().ID(), time.Now())
	}
}

var errBrokeOff = errors.New("exchange: the worker broke off in the middle of an answer")
