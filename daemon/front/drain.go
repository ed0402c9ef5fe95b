package front

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/warmpath/warmpath/daemon/exchange"
	"github.com/warmpath/warmpath/daemon/listen"
)

// Run serves until Drain, or until the listener fails.
func (s *Server) Run() error { return s.app.Listener(s.listener) }

// Drain lets /ready say 503 and no connection in. Open answers run to their end within the limit, then streams are ended with an
// error event. Its error is nil after a clean drain.
func (s *Server) Drain(limit time.Duration) error {
	s.draining.Store(true)
	s.idle.Range(func(conn, _ any) bool { conn.(*listen.Conn).Close(); return true })
	s.log.Info("draining", "timeout", limit, "in_flight", s.inFlight.Load())
	began := time.Now()
	end := began.Add(limit)
	err := s.shutdown(limit)
	s.awaitEnd(end)
	if s.inFlight.Load() > 0 { // fasthttp does not know of streams
		err = fmt.Errorf("daemon: %d answers were still open after server.drain_timeout (%v)", s.inFlight.Load(), limit)
		s.lives.Cut(exchange.ErrDraining)
		s.awaitEnd(time.Now().Add(lastWords))
	} else if errors.Is(err, context.DeadlineExceeded) {
		err = nil // only connections without a request were open
	}
	if err == nil {
		s.log.Info("drained", "after", time.Since(began), "requests_ended", s.endedLate.Load())
	}
	return err
}

// Draining tells whether Drain has begun.
func (s *Server) Draining() bool { return s.draining.Load() }

// shutdown closes the listener and waits until fasthttp has no connection left; but no longer than a second after the last
// request, for a browser opens connections ahead, and a half-sent header may stay one.
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
		if s.inFlight.Load() > 0 {
			idle = 0
		}
		if idle >= 20 {
			return nil
		}
	}
}

// lastWords is for the error events of streams that outlive the drain.
const lastWords = 2 * time.Second

func (s *Server) awaitEnd(end time.Time) {
	for s.inFlight.Load() > 0 && time.Now().Before(end) {
		time.Sleep(10 * time.Millisecond)
	}
}

// Close ends all requests, and writes what waits for the access log. Run must have returned.
func (s *Server) Close() {
	s.lives.Cut(exchange.ErrDraining)
	s.listener.Close()
}

// CloseLog writes what waits for the access log.
func (s *Server) CloseLog() { s.access.close(s.log) }
