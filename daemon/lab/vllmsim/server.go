package vllmsim

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// keepAlive is after how long vLLM closes an idle connection (VLLM_HTTP_TIMEOUT_KEEP_ALIVE).
const keepAlive = 5 * time.Second

// Server is a simulated worker: an engine behind vLLM's HTTP.
type Server struct {
	cfg     Config
	process atomic.Pointer[process]
	fault   atomic.Pointer[fault]
	open    sync.Map // net.Conn to nothing: the connections to reset at death

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
	if err := s.startProcess(); err != nil {
		return nil, err
	}
	return s, nil
}

// startProcess replaces what has died.
func (s *Server) startProcess() error {
	p, err := newProcess(&s.cfg, s.fault.Load, s.handleFault)
	if err != nil {
		return err
	}
	s.process.Store(p)
	return nil
}

// Start listens on addr, host:port with port 0 for any, and serves until Close.
func (s *Server) Start(addr string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listen(addr)
}

// listen binds addr and serves. It wants mu.
func (s *Server) listen(addr string) error {
	switch {
	case s.closed:
		return errors.New("vllmsim: the worker is closed; make a new one")
	case s.http != nil:
		return fmt.Errorf("vllmsim: the worker listens on %s already", s.addr)
	}
	var l net.Listener
	var err error
	for i := 0; i <= portTries; i++ { // another may have the port that is found for 0
		l, err = net.Listen("tcp", anyPort(addr))
		if err == nil || !strings.HasSuffix(addr, ":0") {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("vllmsim: worker %q: %w; choose a free address", s.cfg.ID, err)
	}
	s.addr = l.Addr().String()
	h := &http.Server{
		Handler:           s.Handler(),
		IdleTimeout:       keepAlive,
		ReadHeaderTimeout: time.Minute,
		ConnState:         s.watch,
	}
	served := make(chan struct{})
	s.http = h
	s.served = served
	go func() {
		defer close(served)
		h.Serve(l) // ends by Close only
	}()
	return nil
}

// Addr returns the host:port that Start has bound.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

// URL returns http:// and Addr.
func (s *Server) URL() string { return "http://" + s.Addr() }

// Events returns where the worker publishes its KV events.
func (s *Server) Events() KVEvents { return s.cfg.KVEvents }

// Stats returns what the worker has done since its start or last revival.
func (s *Server) Stats() Stats {
	return s.process.Load().stats()
}

// Handler returns the worker's HTTP, for a server of the caller's.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.process.Load().serve(w, r) })
}

// Close ends listener, connections and engine. It is safe to call twice.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.process.Load().infer.ranks.leave()
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

// kill ends listener, connections and engine at once, as SIGKILL would where requests are unread: with a RST. It
// wants mu.
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
	s.process.Load().infer.ranks.close()
}
