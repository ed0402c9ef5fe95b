package exchange

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/warmpath/warmpath/daemon/route"
	"github.com/warmpath/warmpath/daemon/worker"
)

// Read hands on what one read of the worker gave, up to the end of an event: an error event can then follow at any
// time.
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
	kept := copy(p, b.part)
	b.part = b.part[:0]
	b.a.idle.Store(false)
	n, err := b.a.resp.Read(p[kept:])
	b.a.idle.Store(true)
	if n > 0 {
		b.a.trip.Flow(time.Now())
		b.feed(p[kept : kept+n])
		b.progress()
	}
	n += kept
	switch {
	case b.told() && !b.reply.ReportedError():
		n = b.sound(p[:n])
		b.fail(errTold)
	case err == io.EOF && !b.cut():
		b.err = io.EOF
		if b.told() && b.r.endsStreams() {
			b.err = errTold // the door's own form of stream tells of it too
		}
		b.finish(io.EOF)
	case err == io.EOF:
		n = b.keep(p[:n], len(p))
		b.fail(io.ErrUnexpectedEOF)
	case err != nil:
		n = b.keep(p[:n], len(p))
		b.fail(err)
	default:
		return b.keep(p[:n], len(p)), nil
	}
	if n > 0 {
		return n, nil
	}
	return b.rest(p)
}

// keep holds back what stands in p behind the last end of an event, and returns how much is before it. An event that
// is larger than the reader's room goes on in pieces.
func (b *body) keep(p []byte, room int) int {
	if !b.events || len(p) == 0 {
		return len(p)
	}
	end := endOfEvents(p)
	switch {
	case end == len(p):
		b.inside = false
	case end > 0:
		b.inside = false
		b.part = append(b.part[:0], p[end:]...)
	case b.inside || len(p) == room:
		b.inside = true
		return len(p)
	default:
		b.part = append(b.part[:0], p...)
	}
	return end
}

// endOfEvents is the place behind the last empty line. Nearly always it is the end.
func endOfEvents(p []byte) int {
	if bytes.HasSuffix(p, []byte("\n\n")) {
		return len(p)
	}
	end := 0
	for _, mark := range []string{"\n\n", "\r\n\r\n"} {
		if i := bytes.LastIndex(p, []byte(mark)); i >= 0 {
			end = max(end, i+len(mark))
		}
	}
	return end
}

// sound is how much of p, the last of what was fed, came before the event that told of a failure.
func (b *body) sound(p []byte) int {
	n := max(0, len(p)-b.reply.BytesFromFailure())
	b.inside = b.inside && n == 0
	return n
}

// unhold hands on what was read before the first output.
func (b *body) unhold(p []byte) int {
	n := copy(p, b.held)
	b.held = b.held[n:]
	if len(b.held) > 0 {
		b.inside = true // the next piece goes on with it
		return n
	}
	b.freeHeld()
	if b.err != nil {
		return n
	}
	return b.keep(p[:n], len(p))
}

func (b *body) freeHeld() {
	if b.buf != nil {
		pieces.Put(b.buf)
		b.buf, b.held = nil, nil
	}
}

// errTold is a failure that the worker told of in the middle of its stream.
var errTold = errors.New("the worker told of a failure inside its answer")

// told tells whether the worker has said that it failed, after the client got output. An error event of its own goes
// to the client as it is, and the stream ends as the worker ends it: a broken end can make a client lose the event
// before it reads it. A finish_reason that looks like an end, with [DONE] behind it, would be taken for a whole
// answer and is replaced.
func (b *body) told() bool { return b.events && b.reply != nil && b.reply.Failed() && !b.refused() }

// cut tells whether a stream that ended as HTTP should has not ended as an answer does: with a reason to finish, or
// [DONE].
func (b *body) cut() bool {
	return b.events && b.reply != nil && b.ok && b.reply.Understood() && b.r.generates() && !b.reply.Clean() && b.reply.FinishReason() == "" &&
		!b.reply.ReportedError()
}

// fail ends the answer in the middle. In a stream of events the client is told by an error event; the connection then
// ends without the last chunk, never cleanly.
func (b *body) fail(err error) {
	told := b.reply != nil && b.reply.ReportedError()
	b.finish(err)
	b.err = errBrokeOff
	if b.r.endsStreams() {
		b.err = err
		if causeOf(b.a.ctx) == ErrDraining {
			b.err = ErrDraining
		}
		return
	}
	if !b.events || !b.ok || told {
		return
	}
	f := FaultBroken
	switch {
	case causeOf(b.a.ctx) == ErrDraining:
		f = FaultStopping
	case b.a.down.Load():
		f = FaultDown
	}
	if b.inside {
		b.tail = append(b.tail, "\n\n"...)
	}
	b.tail = append(b.tail, f.event(b.r.shape())...)
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
	b.finish(ErrClientGone)
	b.freeHeld()
	b.a.close()
	b.r.release()
	return nil
}

// finish gives all feedback: to the index, the session, the worker's load, the metrics. err is io.EOF at a proper end.
func (b *body) finish(err error) {
	b.once.Do(func() {
		o := b.outcome(err)
		now := b.came
		if now.IsZero() {
			now = time.Now()
		}
		seen := &b.r.in.Seen
		seen.Usage = b.a.trip.End(&o, route.End{Reply: b.reply, Whole: err == io.EOF, Status: b.a.resp.Status,
			At: now})
		b.giveBack()
		seen.Total = now.Sub(b.r.arrived)
		b.r.server.meter.Ended(seen, End{Status: b.a.resp.Status, Outcome: o, Took: seen.Total, Translated: b.r.entry.Door != nil})
	})
}

// outcome says what the end of the answer means for the worker.
func (b *body) outcome(err error) worker.Outcome {
	seen := &b.r.in.Seen
	cause := causeOf(b.a.ctx)
	switch {
	case errors.Is(err, ErrClientGone), err != io.EOF && cause == ErrClientGone:
		seen.End = "client_gone"
		return worker.Outcome{Kind: worker.Canceled}
	case err != io.EOF && cause == ErrDraining:
		seen.End = "drain_timeout"
		return worker.Outcome{Kind: worker.Canceled}
	case b.told():
		seen.End = "hidden_failure"
		b.r.log().Warn("worker told of a failure in the middle of an answer", "id", b.r.in.ID, "worker", b.a.trip.Worker().ID(), "code", b.reply.FailedCode())
		if b.aborted() {
			return worker.Outcome{Kind: worker.Leaving, Err: "aborts what it accepted"}
		}
		return worker.Outcome{Kind: worker.Failed, Err: errTold.Error()}
	case err != io.EOF:
		seen.End = "broken"
		words := inWords(err)
		if b.a.down.Load() {
			words = errDown.Error()
		}
		b.r.log().Warn("worker broke off in the middle of an answer", "id", b.r.in.ID, "worker", b.a.trip.Worker().ID(), "error", words)
		return worker.Outcome{Kind: worker.Broken, Err: words}
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

var _ io.ReadCloser = (*body)(nil)
