package exchange

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// errBrokeOff ends an answer that broke off: the front then ends the client's connection without its last chunk.
var errBrokeOff = errors.New("exchange: the worker broke off in the middle of an answer")

// stream is a body on its way to the client, piece by piece. Every Exchange has one, as nobody knows before the head
// which answers are small.
type stream struct {
	body
	splitter splitter // of events
	tail     []byte   // an error event that is still to be read
	err      error    // what comes after page and tail
}

// awaitOutput reads an answer until its first byte, and a stream that is understood until its first output. A worker
// that fails before that is replaced, and the client never knows. The head shows nothing, as vLLM sends it before the
// prefill, and the first event of a chat holds only the assistant's role. weigh decides on a stream that reports a
// failure before its output, by what came of it; nil = the client gets it.
func (s *stream) awaitOutput(weigh func(held []byte) *failure) *failure {
	understood := s.reply != nil && s.events && s.r.Understood()
	if understood {
		s.a.resp.SetChunkTimeout(s.r.Pool.HeaderTimeout) // the head of a stream comes before the prefill
	}
	for {
		n, err := s.read(s.page.room())
		if n > 0 {
			s.a.trip.Flow(time.Now())
		}
		piece := s.page.grow(n)
		s.learn(piece)
		if s.foreign() {
			return s.discardForeign()
		}
		failed := s.fails(understood, err == io.EOF)
		if failed {
			if f := weigh(s.page.held); f != nil {
				return f
			}
		}
		switch {
		case err == io.EOF && s.unfinished():
			return s.discardBroken(io.ErrUnexpectedEOF)
		case err == io.EOF:
			s.err = io.EOF
		case err != nil:
			return s.discardBroken(err)
		case understood && !failed && s.withholds(piece):
			continue // a ping or a comment keeps a connection alive through whatever stands before us: it must go on
		}
		s.a.resp.SetChunkTimeout(0)
		s.a.resp.Release()
		if !s.a.stopTimer() {
			return s.discardBroken(errLate)
		}
		s.a.waits.Store(forClient)
		s.noteFirstOutput()
		return nil
	}
}

// fails reports whether what came shows that it is no answer: a stream that is understood reports a failure, or what is
// no stream has no form of an answer.
func (s *stream) fails(understood, ended bool) bool {
	if understood {
		return s.reply.Failed() && !s.rejects()
	}
	return s.formless(s.page.held, ended && len(s.page.held) == 0)
}

// withholds reports whether what came so far is held back: it is no output, and the piece that came last has no ping
// and is no comment.
func (s *stream) withholds(piece []byte) bool {
	return !s.reply.Output() && !s.page.full() && !s.reply.Pinged() && !bytes.HasPrefix(piece, []byte(":"))
}

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
	} else {
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
	case s.failedInside() && !s.reply.ReportedError() && !s.excused:
		n = s.beforeFailure(p[:n])
		s.breakOff(errFailedInside)
	case err == io.EOF && !s.unfinished():
		s.err = io.EOF
		if s.failedInside() && s.r.EndsStreams() {
			s.err = errFailedInside // the door's own form of stream gets the same error
		}
		s.finish(io.EOF)
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
		s.a.trip.Flow(time.Now())
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
	reported, number := false, 0
	if s.reply != nil { // finish gives it back
		reported, number = s.reply.ReportedError(), s.reply.NextNumber()
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
	case s.a.given.Load() != notGiven:
		f = message.FaultDown
	}
	if s.splitter.inside {
		s.tail = append(s.tail, "\n\n"...)
	}
	s.tail = append(s.tail, f.Event(s.r.Shape(), number)...)
}

// HoldsPlace reports whether the answer keeps others from its worker until it has been read: something bounds what a
// worker has at a time.
func (s *stream) HoldsPlace() bool { return s.r.Pool.Limited }

// readTail reads the error event, then returns the error.
func (s *stream) readTail(p []byte) (int, error) {
	if len(s.tail) == 0 {
		return 0, s.err
	}
	n := copy(p, s.tail)
	s.tail = s.tail[n:]
	return n, nil
}

// Close ends the exchange. If the client left early, this cancels the worker's request.
func (s *stream) Close() error {
	s.finish(message.ErrClientGone)
	s.page.release()
	s.a.close()
	s.r.Release()
	return nil
}

var _ io.ReadCloser = (*stream)(nil)
