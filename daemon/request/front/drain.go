package front

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/warmpath/warmpath/daemon/request/message"
)

// Leave answers 503 on /ready and ends each connection with its answer, while new ones are still served: load balancers
// and clients turn elsewhere before Drain refuses them. It returns after the delay; 0 = at once.
//
// Once another process is at the same address, clients need not turn elsewhere. /ready keeps its answer, and clients
// come back to that address as soon as an answer has ended their connection, for which they have keepGrace.
func (s *Server) Leave(delay time.Duration, replaced bool) {
	s.traffic.replaced.Store(replaced)
	if replaced {
		s.traffic.leaving.Store(true)
		s.awaitAnswered(keepGrace)
		return
	}
	if delay <= 0 {
		return
	}
	s.traffic.leaving.Store(true)
	s.log.Info("leaving: /ready is 503, and the drain begins after server.drain_delay", "delay", delay,
		"in_flight", s.traffic.inFlight.Load())
	time.Sleep(delay)
}

// keepGrace is for clients that send a request every few seconds on a connection that they keep. A client loses the
// request that it sends just as its connection is closed.
const keepGrace = 5 * time.Second

// Drain answers 503 on /ready and accepts no connection. Those that are open have as long as grace to send a request,
// which is answered; open answers run to their end within the limit, then streams are ended with an error event. Its
// error is nil after a clean drain.
func (s *Server) Drain(limit time.Duration) error {
	t := &s.traffic
	t.leaving.Store(true)
	s.log.Info("draining", "timeout", limit, "in_flight", t.inFlight.Load())
	began := time.Now()
	s.listener.Close()
	s.awaitAnswered(min(grace, limit))
	t.beginDrain()
	err := s.shutdown(time.Until(began.Add(limit)))
	if open := s.awaitEnd(began.Add(limit)); open > 0 { // fasthttp does not know of streams
		err = fmt.Errorf("daemon: %d answers were still open after server.drain_timeout (%v)", open, limit)
		t.lives.Cut(message.ErrDraining)
		until := time.Now().Add(lastWords)
		t.awaitNone(until)
		s.awaitAnswered(time.Until(until)) // a broken stream to HTTP/1.0 waits for the client to get its end
	} else if errors.Is(err, context.DeadlineExceeded) {
		err = nil // only connections without a request were open
	}
	if err == nil {
		s.log.Info("drained", "after", time.Since(began), "requests_ended", t.endedLate.Load())
	}
	return err
}

// lastWords is for the error events of streams that outlive the drain.
const lastWords = 2 * time.Second

// awaitAnswered waits until no connection is open but those of requests under way, or until limit is over.
func (s *Server) awaitAnswered(limit time.Duration) {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if int64(s.listener.Stats().Open) <= s.traffic.inFlight.Load() {
			return
		}
	}
}

// awaitEnd waits until no request is served, or until end. A client whose answer has just ended has as long as grace to
// send another. It returns how many requests still are.
func (s *Server) awaitEnd(end time.Time) int64 {
	for {
		if open := s.traffic.awaitNone(end); open > 0 {
			return open
		}
		s.awaitAnswered(min(grace, time.Until(end)))
		if s.traffic.inFlight.Load() == 0 || !time.Now().Before(end) {
			return s.traffic.inFlight.Load()
		}
	}
}

// shutdown waits until fasthttp has no connection left, but no longer than half a second after the last answer: a
// browser opens connections ahead, and a connection can stay in the middle of a header.
func (s *Server) shutdown(limit time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- s.app.ShutdownWithTimeout(limit) }()
	idle := 0
	for {
		select {
		case err := <-ended:
			if errors.Is(err, net.ErrClosed) { // the listener is
				err = nil
			}
			return err
		case <-time.After(50 * time.Millisecond):
		}
		idle++
		if s.traffic.inFlight.Load() > 0 || s.listener.Answering() {
			idle = 0
		}
		if idle >= 10 {
			return nil
		}
	}
}
