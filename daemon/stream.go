package daemon

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/prompt"
	"github.com/warmpath/warmpath/daemon/worker"
)

// body is the worker's answer on its way to the client. Whoever ends it, finish runs once.
type body struct {
	e      *exchange
	a      *attempt
	reply  *prompt.Reply // nil: nothing is learnt from it
	events bool          // server-sent events
	ok     bool          // the status is a success
	named  bool          // its id has been bound to the worker
	first  time.Duration
	buf    *[]byte // of held
	held   []byte  // read from the worker, not yet by the client
	inside bool    // the client has the beginning of an event
	tail   []byte  // an error event that is still to be read
	err    error   // what comes after held and tail
	once   sync.Once
	came   time.Time // when all of it had come; zero for a stream
}

// Read hands on what one read of the worker gave, up to the end of an event: an error event can then follow at any time.
func (b *body) Read(p []byte) (int, error) {
	if len(b.held) > 0 {
		return b.unhold(p), nil
	}
	if b.err == io.EOF {
		b.finish(io.EOF)
	}
	if b.err != nil {
		return b.rest(p)
	}
	n, err := b.a.resp.Read(p)
	if n > 0 {
		b.a.ticket.Flow(time.Now())
		b.feed(p[:n])
		b.progress()
		if b.told() {
			b.fail(errTold)
			return b.rest(p)
		}
		b.mark(p[:n])
	}
	switch {
	case err == io.EOF && b.cut():
		b.fail(io.ErrUnexpectedEOF)
	case err == io.EOF:
		b.finish(io.EOF)
		b.err = io.EOF
	case err != nil:
		b.fail(err)
	}
	if n > 0 {
		return n, nil
	}
	if err == nil {
		return 0, nil
	}
	return b.rest(p)
}

// unhold hands on what was read before the first output.
func (b *body) unhold(p []byte) int {
	n := copy(p, b.held)
	if b.held = b.held[n:]; len(b.held) == 0 {
		b.freeHeld()
	}
	b.mark(p[:n])
	return n
}

func (b *body) freeHeld() {
	if b.buf != nil {
		pieces.Put(b.buf)
		b.buf, b.held = nil, nil
	}
}

// mark notes whether the client is in the middle of an event after p.
func (b *body) mark(p []byte) {
	b.inside = b.events && !bytes.HasSuffix(p, []byte("\n\n")) && !bytes.HasSuffix(p, []byte("\r\n\r\n"))
}

// errTold is a failure that the worker told of in the middle of its stream.
var errTold = errors.New("the worker told of a failure inside its answer")

// told tells whether the worker has said that it failed, after the client got output. Its own words, a finish_reason that looks like
// an end or an error and then [DONE], would be taken for a whole answer.
func (b *body) told() bool { return b.events && b.reply != nil && b.reply.Failed() && !b.refused() }

// cut tells whether a stream that ended as HTTP should has not ended as an answer does: with a reason to finish, or [DONE].
func (b *body) cut() bool {
	return b.events && b.reply != nil && b.ok && b.e.req.Kind.Generates() && !b.reply.Clean() && b.reply.FinishReason() == ""
}

// fail ends the answer in the middle. In a stream of events the client is told by an error event; the connection then ends
// without the last chunk, never cleanly.
func (b *body) fail(err error) {
	b.finish(err)
	b.err = errBrokeOff
	if c := b.e.call; c != nil && c.Stream { // an exception of its own form tells
		if b.err = err; causeOf(b.a.ctx) == errDraining {
			b.err = errDraining
		}
		return
	}
	if !b.events || !b.ok {
		return
	}
	f := faultBroken
	if causeOf(b.a.ctx) == errDraining {
		f = faultStopping
	}
	if b.inside {
		b.tail = append(b.tail, "\n\n"...)
	}
	b.tail = append(b.tail, f.event(shapeOf(b.e.in.Path))...)
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

// Close ends the exchange. A client that left early cancels the worker's request by it.
func (b *body) Close() error {
	b.finish(errClientGone)
	b.freeHeld()
	b.a.close()
	b.e.release()
	return nil
}

// finish is the feedback: index, session, load, metrics. err is io.EOF at a proper end.
func (b *body) finish(err error) {
	b.once.Do(func() {
		o := b.outcome(err)
		if b.reply != nil {
			b.learn(&o, err == io.EOF)
		}
		b.giveBack()
		now := b.came
		if now.IsZero() {
			now = time.Now()
		}
		b.a.ticket.End(now, o)
		b.e.in.Seen.Tokens = o.Tokens
		b.e.d.metrics.ended(b, o, now)
	})
}

// outcome says what the end of the answer means for the worker.
func (b *body) outcome(err error) worker.Outcome {
	seen := &b.e.in.Seen
	cause := causeOf(b.a.ctx)
	switch {
	case errors.Is(err, errClientGone), err != io.EOF && cause == errClientGone:
		seen.End = "client_gone"
		return worker.Outcome{Kind: worker.Canceled}
	case err != io.EOF && cause == errDraining:
		seen.End = "drain_timeout"
		return worker.Outcome{Kind: worker.Canceled}
	case errors.Is(err, errTold):
		seen.End = "hidden_failure"
		if b.aborted() {
			return worker.Outcome{Kind: worker.Draining, Err: "aborts what it accepted"}
		}
		return worker.Outcome{Kind: worker.Failed, Err: errTold.Error()}
	case err != io.EOF:
		seen.End = "broken"
		b.e.pool.log.Warn("worker broke off in the middle of an answer", "worker", b.a.worker.ID(), "error", inWords(err))
		return worker.Outcome{Kind: worker.Broken, Err: inWords(err)}
	case b.a.resp.Status >= 500:
		return worker.Outcome{Kind: worker.Failed, Err: "HTTP status of 500 or more"}
	}
	return worker.Outcome{Kind: worker.Answered}
}

func (b *body) giveBack() {
	if b.reply != nil {
		replies.Put(b.reply)
		b.reply = nil
	}
	b.freeHeld()
}

// learn takes from the answer what it says: generated tokens, tokens a byte, cached tokens, and the text itself.
func (b *body) learn(o *worker.Outcome, ended bool) {
	ok, complete := b.reply.Finish()
	u := b.reply.Usage()
	o.Tokens = u.Completion
	e, slot := b.e, b.a.worker.Slot()
	if ok && u.OK && len(e.req.Chains) == 1 {
		c := &e.req.Chains[0]
		if c.Tokens == 0 {
			e.pool.scale.learn(u.Prompt, c.Bytes)
		}
		if u.CachedKnown {
			e.pool.caps.learn(slot, u.Cached, b.a.believed, u.Prompt)
		}
	}
	if !ended || !complete || o.Kind != worker.Answered {
		return
	}
	for i := range e.req.Chains {
		if c := &e.req.Chains[i]; b.reply.ExtendChoice(c, e.req.Choice(i)) {
			e.space.Touch(slot, c.Hashes)
		}
	}
}

var _ io.ReadCloser = (*body)(nil)
