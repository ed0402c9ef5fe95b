package daemon

import (
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/prompt"
	"github.com/warmpath/warmpath/daemon/worker"
)

// smallBody is up to where an answer of stated length is read whole before the client gets its head: one write, and a
// worker that breaks off in it is still an honest 502.
const smallBody = 256 << 10

// maxReply bounds what is kept of an answer for the index: 1 MiB is some 250,000 generated tokens.
const maxReply = 1 << 20

var replies = sync.Pool{New: func() any { return prompt.NewReply(prompt.Other, false, maxReply) }}

// answer turns a worker's response into the client's.
func (e *exchange) answer(a *attempt, row int) (out *Outbound, streaming bool) {
	out = &Outbound{Status: a.resp.Status, Header: forClient(nil, a.resp.Header), Length: a.resp.Length}
	e.explain(out, row)
	events := strings.HasPrefix(a.resp.Header.Get("Content-Type"), "text/event-stream")
	b := &body{e: e, a: a, events: events, ok: a.resp.Status < 300}
	if b.ok && e.req.Kind != prompt.Other {
		b.reply = replies.Get().(*prompt.Reply)
		b.reply.Reset(e.req.Kind, events, maxReply)
	}
	if !events && a.resp.Length >= 0 && a.resp.Length <= smallBody {
		return e.whole(out, b), true
	}
	out.Stream = b
	return out, true
}

// whole reads a small answer to its end.
func (e *exchange) whole(out *Outbound, b *body) *Outbound {
	buf := make([]byte, b.a.resp.Length)
	_, err := io.ReadFull(b, buf)
	if err == nil {
		_, err = b.Read(make([]byte, 1)) // its end, which also gives the connection back
	}
	b.Close()
	if err != nil && err != io.EOF {
		return faultBroken.outbound()
	}
	out.Body = buf
	return out
}

// body is the worker's answer on its way to the client. Whoever ends it, finish runs once.
type body struct {
	e      *exchange
	a      *attempt
	reply  *prompt.Reply // nil: nothing is learnt from it
	events bool
	ok     bool // the status is a success
	first  time.Duration
	tail   []byte // an error event that is still to be read
	err    error  // what comes after tail
	once   sync.Once
}

// Read hands on what one read of the worker gave. A worker that breaks off in a stream of events is told to the client by
// an error event, then by an error of the read: the connection must not end cleanly.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return b.rest(p)
	}
	n, err := b.a.resp.Read(p)
	if n > 0 {
		b.heard(p[:n])
	}
	if err == nil {
		return n, nil
	}
	b.finish(err)
	if err != io.EOF && b.events && b.ok {
		b.tail = append([]byte("\n\n"), faultBroken.event()...)
	}
	b.err = err
	if n > 0 {
		return n, nil
	}
	return b.rest(p)
}

// rest reads the error event, then gives the error.
func (b *body) rest(p []byte) (int, error) {
	if len(b.tail) == 0 {
		return 0, b.err
	}
	n := copy(p, b.tail)
	b.tail = b.tail[n:]
	return n, nil
}

func (b *body) heard(chunk []byte) {
	now := time.Now()
	if b.first == 0 {
		b.first = now.Sub(b.e.arrived)
		if b.ok {
			b.a.ticket.FirstByte(now)
			b.e.d.metrics.firstByte(b)
		}
	} else {
		b.a.ticket.Flow(now)
	}
	if b.reply != nil {
		b.reply.Feed(chunk)
	}
}

// Close ends the exchange. A client that left early cancels the worker's request by it.
func (b *body) Close() error {
	b.finish(errClientGone)
	return b.a.resp.Close()
}

var errClientGone = errors.New("the client left")

// finish is the feedback: index, session, load, metrics. err is io.EOF at a proper end.
func (b *body) finish(err error) {
	b.once.Do(func() {
		o := worker.Outcome{Kind: worker.Answered}
		switch {
		case errors.Is(err, errClientGone):
			o.Kind = worker.Canceled
		case err != io.EOF:
			o.Kind, o.Err = worker.Broken, inWords(err)
			b.e.pool.log.Warn("worker broke off in the middle of an answer", "worker", b.a.worker.ID(), "error", err)
		case b.a.resp.Status >= 500:
			o.Kind, o.Err = worker.Failed, "HTTP status of 500 or more"
		}
		if b.reply != nil {
			b.learn(&o, err == io.EOF)
			replies.Put(b.reply)
			b.reply = nil
		}
		b.a.end(o)
		b.e.d.metrics.ended(b, o)
		b.e.release()
	})
}

// learn takes from the answer what it says: generated tokens, tokens a byte, cached tokens, and the text itself.
func (b *body) learn(o *worker.Outcome, ended bool) {
	ok, complete := b.reply.Finish()
	if b.reply.Failed() {
		o.Kind, o.Err = worker.Failed, "the worker told of a failure inside its answer"
	}
	u := b.reply.Usage()
	o.Tokens = u.Completion
	e, slot := b.e, b.a.worker.Slot()
	if ok && u.OK && len(e.req.Chains) == 1 {
		c := &e.req.Chains[0]
		if c.Tokens == 0 {
			e.pool.scale.learn(u.Prompt, c.Bytes)
		}
		if u.CachedKnown {
			e.pool.caps.learn(slot, u.Cached, e.believedOf(b.a.worker), u.Prompt)
		}
	}
	if !ended || !complete || o.Kind == worker.Failed {
		return
	}
	for i := range e.req.Chains {
		if c := &e.req.Chains[i]; b.reply.ExtendChoice(c, e.req.Choice(i)) {
			e.space.Touch(slot, c.Hashes)
		}
	}
}

// believedOf is the prompt's tokens that the worker was taken to hold when it was chosen.
func (e *exchange) believedOf(w *worker.Worker) int {
	for i := range e.view.workers {
		if e.view.workers[i] == w {
			return e.believed(i)
		}
	}
	return 0
}

var _ io.ReadCloser = (*body)(nil)
