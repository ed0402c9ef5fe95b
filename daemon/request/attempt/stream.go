package attempt

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// errBrokeOff ends an answer that broke off: the front then ends the client's connection without its last chunk.
var errBrokeOff = errors.New("attempt: the worker broke off in the middle of an answer")

// ErrBroken ends a stream that another worker may go on with: see [Attempt.HandOver]. The client has whole events, and
// knows nothing of the end.
var ErrBroken = errors.New("attempt: the worker broke off, and another one may go on with the answer")

// stream is a body on its way to the client, piece by piece. Every Attempt has one, as nobody knows before the head
// which answers are small.
type stream struct {
	body
	splitter splitter // of events
	err      error    // what comes after page and the tail
}

// HandOver has the stream end with ErrBroken where the worker breaks off, or reports that it fails. Then either
// BreakOff ends it for its client, or Concluded.
func (a *Attempt) HandOver() { a.answer.hands = true }

// BreakOff ends a stream that ended with ErrBroken as it would have ended without HandOver. What the client gets is
// still to be read. number is that of the next event, where events have numbers.
func (a *Attempt) BreakOff(number int) {
	s := &a.answer
	b := s.broke
	if b.cut == nil {
		s.warn(b.why, number)
		return
	}
	s.finish(b.why)
	b.tail, s.err = b.cut, io.EOF // the worker's own words
	if s.r.Shape() == message.OpenAI && !bytes.Contains(b.cut, []byte("[DONE]")) {
		b.tail = append(b.tail, "data: [DONE]\n\n"...)
	}
}

// Concluded records the end of a stream that ended with ErrBroken, and went on at another worker.
func (a *Attempt) Concluded(o judge.Outcome, whole bool) {
	s := &a.answer
	s.once.Do(func() { s.conclude(o, whole, time.Now()) })
	if whole {
		s.err = io.EOF
		s.tellWeights()
	}
}

// TellWeights notes the versions of the weights, for the head of the answer, and returns them.
func (a *Attempt) TellWeights() string {
	weights := a.Trip.Weights()
	a.answer.r.In.Seen.Made(weights)
	return weights
}

// Paused reports whether a pause of the worker has ended a stream that ended with ErrBroken.
func (a *Attempt) Paused(ctx context.Context, r *admission.Request) bool {
	return a.answer.broke.left.Kind == judge.Leaving && rested(ctx, r, &a.Trip)
}

// Lost returns what the client has not got of a stream that ended with ErrBroken: the event that reports the failure,
// and what came with it. Nil = the worker broke off without a word.
func (a *Attempt) Lost() []byte { return a.answer.broke.lost }

// Stream returns the answer, if it is a stream.
func (a *Attempt) Stream() *stream { return &a.answer }

// Read passes on what one read of the worker gave, up to the end of an event: an error event can then follow at any
// time.
func (s *stream) Read(p []byte) (int, error) {
	given := upstream.Given(p)
	return s.ReadRoom(&given)
}

// ReadRoom is Read into the memory of a room, of which it holds none while it waits for a worker without TLS.
func (s *stream) ReadRoom(room upstream.Room) (int, error) {
	if len(s.page.held) > 0 {
		return s.readPage(room.Take()), nil
	}
	if s.err == io.EOF {
		s.finish(io.EOF)
	}
	if s.err != nil {
		return s.readTail(room.Take())
	}
	kept := 0
	if !s.splitter.holds() {
		s.noteServed()
	}
	switch {
	case s.hands && s.a.leaves.Load() && !s.served && !s.splitter.inside:
		s.breakOff(errLeaves)
		return s.readTail(room.Take())
	case s.splitter.holds():
		p := room.Take()
		kept = s.splitter.prepend(p)
		if kept == len(p) {
			return kept, nil
		}
	}
	n, err := s.readWorker(room, kept)
	n += kept
	p := room.Take()
	switch {
	case s.failedInside() && (s.hands || !s.reply.ReportedError()) && !s.excused:
		all := p[:n]
		n = s.beforeFailure(all)
		s.broke = &breakage{lost: slices.Clone(all[n:])}
		if s.reply.ReportedError() {
			s.broke.cut = s.broke.lost
		}
		s.breakOff(errFailedInside)
	case err == io.EOF && !s.unfinished():
		s.err = io.EOF
		if s.failedInside() && s.r.EndsStreams() {
			s.err = errFailedInside // the door's own form of stream gets the same error
		}
		s.finish(io.EOF)
		s.tellWeights()
	case err == io.EOF:
		n = s.holdBack(p[:n], len(p))
		s.breakOff(io.ErrUnexpectedEOF)
	case err != nil:
		n = s.holdBack(p[:n], len(p))
		s.breakOff(err)
	default:
		return s.holdBack(p[:n], len(p)), nil
	}
	if n > 0 {
		return n, nil
	}
	return s.readTail(p)
}

// readWorker reads the next piece of the worker's answer behind what the room's memory keeps. Meanwhile the attempt
// waits for the worker.
func (s *stream) readWorker(room upstream.Room, kept int) (n int, err error) {
	s.a.waits.Store(forMore)
	if kept > 0 {
		n, err = s.read(room.Take()[kept:])
	} else {
		n, err = s.readRoom(room)
	}
	s.a.waits.Store(forClient)
	if n > 0 {
		s.a.Trip.Flow(time.Now())
		s.learn(room.Take()[kept : kept+n])
		s.noteFirstOutput()
	}
	return n, err
}

// readPage reads the page, which ends with the first output.
func (s *stream) readPage(p []byte) int {
	n := s.page.read(p)
	switch {
	case len(s.page.held) > 0:
		s.splitter.inside = true // the next piece goes on with it
		return n
	case s.err != nil:
		return n
	}
	return s.holdBack(p[:n], len(p))
}

// holdBack returns how much of p the client may have: whole events, if it has room for so much.
func (s *stream) holdBack(p []byte, room int) int {
	if !s.events {
		return len(p)
	}
	return s.splitter.split(p, room)
}

// beforeFailure returns how much of p, the last piece learnt, came before the event that reported a failure.
func (s *stream) beforeFailure(p []byte) int {
	n := max(0, len(p)-s.reply.BytesFromFailure())
	s.splitter.inside = s.splitter.inside && n == 0
	return n
}

// breakOff ends the answer in the middle. A stream of events gets an error event for the client. The connection then
// ends without the last chunk, never cleanly.
func (s *stream) breakOff(err error) {
	if s.broke == nil {
		s.broke = new(breakage)
	}
	cause := message.CauseOf(s.a.ctx)
	if s.hands && !s.splitter.inside && cause != message.ErrClientGone && cause != message.ErrDraining {
		s.broke.why, s.err = err, ErrBroken
		o := s.outcome(err)
		s.broke.left = &o
		s.leave(&o, false, time.Now())
		s.a.close()
		return
	}
	s.warn(err, 0)
}

// warn ends the answer for its client: by an error event, if it is a stream of events.
func (s *stream) warn(err error, number int) {
	reported := false
	if s.reply != nil { // finish gives it back
		reported, number = s.reply.ReportedError(), max(number, s.reply.NextNumber())
	}
	s.finish(err)
	s.err = errBrokeOff
	draining := message.CauseOf(s.a.ctx) == message.ErrDraining
	if s.r.EndsStreams() {
		s.err = err
		if draining {
			s.err = message.ErrDraining
		}
		return
	}
	if !s.events || !s.ok || reported {
		return
	}
	f := message.FaultBroken
	switch {
	case draining:
		f = message.FaultStopping
	case s.a.given.Load() != 0:
		f = message.FaultDown
	}
	if s.splitter.inside {
		s.broke.tail = append(s.broke.tail, "\n\n"...)
	}
	s.broke.tail = append(s.broke.tail, f.Event(s.r.Shape(), number)...)
}

// tellWeights has a stream of events end with a comment that names the versions of the weights, if there are two, or if
// its head went out before any was known.
func (s *stream) tellWeights() {
	seen := &s.r.In.Seen
	weights := seen.MadeWith()
	changed := strings.Contains(weights, "-")
	if !s.events || !s.ok || s.length() >= 0 || !changed && (seen.Comments == 0 || weights == "") {
		return
	}
	s.broke = &breakage{tail: []byte(": " + message.HeaderWeights + ": " + weights + "\n\n")}
}

// Peer returns where the client's frames go, once the worker has accepted a WebSocket.
func (s *stream) Peer() net.Conn { return s.resp.Peer() }

// HoldsPlace reports whether the answer keeps others from its worker until it has been read: something bounds what a
// worker has at a time.
func (s *stream) HoldsPlace() bool { return s.r.Pool.Limited }

// readTail reads the error event, then returns the error.
func (s *stream) readTail(p []byte) (int, error) {
	if s.broke == nil || len(s.broke.tail) == 0 {
		return 0, s.err
	}
	n := copy(p, s.broke.tail)
	s.broke.tail = s.broke.tail[n:]
	return n, nil
}

// Finish ends an attempt whose answer goes to the client whole.
func (a *Attempt) Finish() {
	a.answer.finish(io.EOF)
	a.answer.Close()
}

// Close ends the request. If the client left early, this cancels the worker's request.
func (s *stream) Close() error {
	s.finish(message.ErrClientGone)
	s.page.release()
	s.a.close()
	s.r.Release()
	return nil
}

var _ io.ReadCloser = (*stream)(nil)
