package front

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/warmpath/warmpath/daemon/exchange"
)

// Leave answers 503 on /ready and ends each connection with its answer, while new ones are still served: load balancers
// and clients turn elsewhere before Drain refuses them. It returns after the delay; 0 = at once.
func (s *Server) Leave(delay time.Duration) {
	if delay <= 0 {
		return
	}
	s.traffic.leaving.Store(true)
	s.log.Info("leaving: /ready is 503, and the drain begins after server.drain_delay", "delay", delay,
		"in_flight", s.traffic.inFlight.Load())
	time.Sleep(delay)
}

// Drain answers 503 on /ready and accepts no connection. Open answers run to their end within the limit, then streams
// are ended with an error event. Its error is nil after a clean drain.
func (s *Server) Drain(limit time.Duration) error {
	t := &s.traffic
	t.beginDrain()
	s.log.Info("draining", "timeout", limit, "in_flight", t.inFlight.Load())
	began := time.Now()
	err := s.shutdown(limit)
	if open := t.awaitNone(began.Add(limit)); open > 0 { // fasthttp does not know of streams
		err = fmt.Errorf("daemon: %d answers were still open after server.drain_timeout (%v)", open, limit)
		t.lives.Cut(exchange.ErrDraining)
		t.awaitNone(time.Now().Add(lastWords))
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

// shutdown closes the listener and waits until fasthttp has no connection left, but no longer than a second after the
// last request: a browser opens connections ahead, and a connection can stay in the middle of a header.
func (s *Server) shutdown(limit time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- s.app.ShutdownWithTimeout(limit) }()
	idle := 0
	for {
		select {
		case err := <-ended:
			return err
		case <-time.After(50 * time.Millisecond):
		}
		idle++
		if s.traffic.inFlight.Load() > 0 {
			idle = 0
		}
		if idle >= 20 {
			return nil
		}
	}
}
