package upstream

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// ErrRequest is returned for a request that HTTP cannot carry. No worker saw it.
var ErrRequest = errors.New("upstream: the request cannot be written")

// ErrStalled is returned when a body gave no byte for Config.ChunkTimeout, or a long request was not taken for so long.
var ErrStalled = errors.New("upstream: the worker sent or took nothing within the chunk timeout")

// ErrTail is returned when Request.Tail failed or ended too early: the fault is the client's. The worker saw the
// request break off.
var ErrTail = errors.New("upstream: the rest of the request's body could not be read")

// errGivenUp is returned when [Hearer].Ended was called although the context goes on: only this exchange was given up.
var errGivenUp = errors.New("upstream: the exchange was given up")

// errStale is returned for a pooled connection that was dead before anything was sent on it.
var errStale = errors.New("the connection was closed while it was idle")

// errAnswer is wrapped by the error for every breach of HTTP/1.1 by a worker.
var errAnswer = errors.New("the worker's answer is not valid HTTP/1.1")

// NotSent reports whether err came before any byte of the request reached the worker, so that a repeat cannot run
// twice.
func NotSent(err error) bool {
	var f *failure
	if errors.As(err, &f) {
		return f.notSent
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// Closed reports whether the worker's host refused the connection: nothing listens at the port. Any other failure to
// connect may be the network's, or that of a process that accepts late.
func Closed(err error) bool { return NotSent(err) && errors.Is(err, syscall.ECONNREFUSED) }

// NoDescriptor reports whether this process had no descriptor left for a connection: no fault of the worker's.
func NoDescriptor(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// Unanswered reports whether the worker closed or reset a fresh connection without one byte of an answer, or, after
// doing so to a pooled one, took no fresh one: it died, most likely. It may have begun to work on the request.
func Unanswered(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.unanswered
}

// failure is an error of Do.
type failure struct {
	what       string
	err        error
	notSent    bool
	unanswered bool
}

func (f *failure) Error() string { return "upstream: " + f.what + ": " + f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// sendFailure is an error of sending a request, where an error of reading the answer could come instead.
type sendFailure struct{ err error }

func (f *sendFailure) Error() string { return f.err.Error() }
func (f *sendFailure) Unwrap() error { return f.err }

// errClosed is Read's error after Close.
var errClosed = errors.New("upstream: the response was closed")

// isTimeout reports whether err is a passed deadline and not a broken connection.
func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout() && !errors.Is(err, syscall.ETIMEDOUT)
}

// errVanished is the end of a connection whose host acknowledged nothing for as long as vanished.
var errVanished = errors.New("the worker's host does not answer")

// named replaces the kernel's ETIMEDOUT, which callers would take for a passed deadline.
func named(err error) error {
	if errors.Is(err, syscall.ETIMEDOUT) {
		return errVanished
	}
	return err
}

// early returns the error of a connection that ended inside an answer.
func early(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return named(err)
}
