package exchange_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// wire is a connection to an engine, in memory and in virtual time.
type wire struct {
	to       *engine
	woken    chan struct{} // the state of the engine or of the wire has changed
	deadline time.Time
	apart    time.Duration // after which it learns what befalls all wires of the engine: no two at one instant

	// Guarded by the fleet's lock.
	ask    *ask // the one under way
	came   time.Duration
	rest   []piece // of its answer
	sick   bool    // the answer is no good one
	held   bool    // it holds a place of the engine's
	begun  bool    // output went to the router
	old    bool    // it has carried a request
	used   bool    // it had carried one before this
	broken bool
	told   bool // the router knows that it is broken
	closed bool
	shut   time.Duration // when that was
}

// dial connects to the engine.
func (e *engine) dial(context.Context) (net.Conn, error) {
	e.lock()
	defer e.unlock()
	if !e.listens {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	w := &wire{to: e, woken: make(chan struct{}, 1), apart: e.between(1e-4, 1e-2)}
	e.wires[w] = true
	return w, nil
}

func (w *wire) kick() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// Write takes a request, which comes in one piece.
func (w *wire) Write(p []byte) (int, error) {
	e := w.to
	e.lock()
	defer e.unlock()
	if w.broken || w.closed || !e.listens {
		return 0, syscall.EPIPE
	}
	_, id, _ := bytes.Cut(p, []byte("X-Request-Id: "))
	id, _, _ = bytes.Cut(id, []byte("\r\n"))
	a := e.asks[string(id)]
	e.step(a)
	w.begun = false
	if bytes.HasPrefix(p, []byte("GET ")) { // whether it is paused, beside a request that it has given up
		w.ask, w.came, w.sick, w.rest = a, e.now(), true, []piece{{time.Millisecond, whole(404, "{}")}}
	} else {
		e.take(w, a)
	}
	w.used, w.old = w.old, true
	return len(p), nil
}

// Read waits for the next piece of the answer.
func (w *wire) Read(p []byte) (int, error) {
	for {
		n, wait, err := w.next(p)
		if wait == 0 {
			return n, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-w.woken:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// next returns what there is, or how long it will take at least.
func (w *wire) next(p []byte) (n int, wait time.Duration, err error) {
	e := w.to
	e.lock()
	defer e.unlock()
	defer func() {
		if wait == 0 {
			e.step(w.ask)
		}
	}()
	now := e.now()
	switch {
	case w.closed && now < w.shut+w.apart:
		return 0, w.shut + w.apart - now, nil
	case w.closed:
		return 0, 0, net.ErrClosed
	case w.broken && now < w.came+w.apart:
		return 0, w.came + w.apart - now, nil
	case w.broken && w.ask != nil && w.begun:
		w.told = true
		return 0, 0, syscall.ECONNRESET
	case w.broken:
		w.told = true
		return 0, 0, io.EOF
	case !w.deadline.After(time.Now()):
		return 0, 0, os.ErrDeadlineExceeded
	}
	wait = time.Until(w.deadline)
	if len(w.rest) == 0 {
		return 0, wait, nil
	}
	due := w.came + w.rest[0].after
	if !w.sick || e.mood == hangs || e.mood == asleep {
		due = max(due, e.blocked+w.apart)
	}
	if now < due {
		return 0, min(wait, due-now), nil
	}
	if !e.flows() {
		return 0, min(wait, e.jitter(time.Second)), nil
	}
	if w.ask.kind == lethal {
		e.kill(w)
		return 0, w.apart, nil
	}
	n = copy(p, w.rest[0].text)
	w.rest[0].text = w.rest[0].text[n:]
	if w.rest[0].text == "" {
		w.rest = w.rest[1:]
		w.passed()
	}
	return n, 0, nil
}

// passed notes that a piece of the answer went to the router.
func (w *wire) passed() {
	e, streams := w.to, w.ask.streams
	if !w.sick {
		e.flow = e.now()
		w.begun = w.begun || !streams || len(w.rest) < 3
	}
	if len(w.rest) == 0 {
		if !w.sick {
			w.ask.served |= 1 << e.place
		}
		w.leave()
	}
}

// leave gives the engine's place back.
func (w *wire) leave() {
	if w.held {
		w.held = false
		w.to.busy = max(0, w.to.busy-1)
	}
}

// Close is the router's. A good answer that is still to come is given up.
func (w *wire) Close() error {
	e := w.to
	e.lock()
	defer e.unlock()
	if w.closed {
		return nil
	}
	w.closed, w.shut = true, e.now()
	w.kick()
	if w.broken && !w.told && w.ask != nil && w.ask.kind == lethal { // its client left just then: nobody has seen its end
		*w.ask.ended--
	}
	delete(e.wires, w)
	w.leave()
	if w.ask != nil && !w.broken && !w.sick && len(w.rest) > 0 && !w.ask.left {
		e.gaveUp(w)
	}
	return nil
}

func (w *wire) SetDeadline(t time.Time) error { w.deadline = t; return nil }

// The rest of net.Conn, which the transport does not use.
func (w *wire) LocalAddr() net.Addr                { return nil }
func (w *wire) RemoteAddr() net.Addr               { return nil }
func (w *wire) SetReadDeadline(t time.Time) error  { return w.SetDeadline(t) }
func (w *wire) SetWriteDeadline(t time.Time) error { return nil }
