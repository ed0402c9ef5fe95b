package vllmsim

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// keepAlive is after how long vLLM closes an idle connection (VLLM_HTTP_TIMEOUT_KEEP_ALIVE).
const keepAlive = 5 * time.Second

// Server is a simulated worker: an engine behind vLLM's HTTP.
type Server struct {
	cfg      Config
	mux      *http.ServeMux
	engine   atomic.Pointer[engine]
	born     atomic.Int64 // unix ns of the engine's start
	load     atomic.Int64 // open inference requests
	paced    atomic.Int64 // requests that the engine knows nothing of
	fault    atomic.Pointer[fault]
	stored   atomic.Pointer[responses]
	sessions atomic.Pointer[sessions]
	open     sync.Map // net.Conn to nothing: the connections to reset at death

	mu     sync.Mutex // guards all below
	addr   string     // bound at the first Start; kept over death and revival
	http   *http.Server
	served chan struct{}
	timer  *time.Timer // ends the fault
	closed bool
}

// New makes a worker and starts its engine. Close ends it.
func New(cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg}
	s.fault.Store(&fault{Fault: Fault{Mode: FaultNone}})
	s.mux = s.routes()
	s.startEngine()
	return s, nil
}

func (s *Server) startEngine() {
	s.engine.Store(newEngine(s.cfg))
	s.stored.Store(newResponses())
	s.sessions.Store(newSessions(s.cfg.SessionLife))
	s.born.Store(time.Now().UnixNano())
}

// Start listens on addr, host:port with port 0 for any, and serves until Close.
func (s *Server) Start(addr string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listen(addr)
}

func (s *Server) listen(addr string) error {
	switch {
	case s.closed:
		return errors.New("vllmsim: the worker is closed; make a new one")
	case s.http != nil:
		return fmt.Errorf("vllmsim: the worker listens on %s already", s.addr)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("vllmsim: worker %q: %w; choose a free address", s.cfg.ID, err)
	}
	s.addr = l.Addr().String()
	h := &http.Server{Handler: s.Handler(), IdleTimeout: keepAlive, ReadHeaderTimeout: time.Minute, ConnState: s.watch}
	served := make(chan struct{})
	s.http, s.served = h, served
	go func() {
		defer close(served)
		h.Serve(l) // ends by Close only
	}()
	return nil
}

// Addr is the host:port that Start has bound.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

// URL is http:// and Addr.
func (s *Server) URL() string { return "http://" + s.Addr() }

// Stats is what the worker has done since its start or last revival.
func (s *Server) Stats() Stats {
	st := s.engine.Load().stats()
	st.Running += int(s.paced.Load())
	st.Sessions, st.SessionBytes, st.SessionUses = s.sessions.Load().count()
	return st
}

// Close ends listener, connections and engine. It is safe to call twice.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.kill()
	return nil
}

// watch keeps the list of open connections.
func (s *Server) watch(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.open.Store(c, nil)
	case http.StateHijacked, http.StateClosed:
		s.open.Delete(c)
	}
}

// kill ends listener, connections and engine at once, as SIGKILL would where requests are unread: with a RST.
func (s *Server) kill() {
	if s.http != nil {
		s.open.Range(func(c, _ any) bool {
			if tcp, ok := c.(*net.TCPConn); ok {
				tcp.SetLinger(0)
			}
			return true
		})
		s.http.Close()
		<-s.served
		s.http = nil
	}
	s.engine.Load().close()
}
