package unit

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"sync"
)

// gate is a listener that another process may have opened, and may take over. Accept waits while the other process
// accepts: before open, and after hand until Close. So a server does not notice the change, and does not end.
type gate struct {
	net.Listener
	key string // by which a successor finds it

	ours, over chan struct{} // closed by open; by Close
	once       sync.Once     // of over

	mu     sync.Mutex // guards handed
	handed bool
}

// Accept implements net.Listener.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case <-g.ours:
	case <-g.over:
		return nil, fmt.Errorf("unit: %w", net.ErrClosed)
	}
	conn, err := g.Listener.Accept()
	if err != nil && g.isHanded() {
		<-g.over
		err = fmt.Errorf("unit: %w", net.ErrClosed)
	}
	return conn, err
}

// Close implements net.Listener.
func (g *gate) Close() error {
	g.once.Do(func() { close(g.over) })
	if g.isHanded() {
		return nil
	}
	return g.Listener.Close()
}

func (g *gate) isHanded() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.handed
}

// hand stops accepting. The socket stays open in the process that has it now.
func (g *gate) hand() {
	g.mu.Lock()
	g.handed = true
	g.mu.Unlock()
	if u, ok := g.Listener.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	_ = g.Listener.Close() // it may be closed already
}

// file returns a second descriptor of the socket; nil = it is closed.
func (g *gate) file() (*os.File, error) {
	f, err := second(g.Listener)
	select {
	case <-g.over: // before, or meanwhile
		if f != nil {
			f.Close()
		}
		return nil, nil
	default:
		return f, err
	}
}

// gates holds all listeners of the process. Safe for concurrent use.
type gates struct {
	ours chan struct{} // closed once this process may accept

	mu        sync.Mutex // guards the rest
	all       []*gate
	inherited map[string][]net.Listener // by key, those that no Listen has taken yet
}

// add makes a gate of a listener.
func (s *gates) add(key string, l net.Listener) net.Listener {
	g := &gate{Listener: l, key: key, ours: s.ours, over: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, g)
	return g
}

// take returns the inherited listener with that key, or nil.
func (s *gates) take(key string) net.Listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.inherited[key]
	if len(left) == 0 {
		return nil
	}
	s.inherited[key] = left[1:]
	return left[0]
}

// held returns the address of an inherited socket that has the port of addr and is not taken, or "".
func (s *gates) held(addr string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, port, _ := net.SplitHostPort(addr)
	for _, left := range s.inherited {
		for _, l := range left {
			if _, p, _ := net.SplitHostPort(l.Addr().String()); p == port {
				return l.Addr().String()
			}
		}
	}
	return ""
}

// open makes every gate accept, and closes inherited sockets that no Listen has taken: the configuration has changed.
func (s *gates) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, left := range s.inherited {
		for _, l := range left {
			l.Close()
		}
	}
	s.inherited = nil
	close(s.ours)
}

// hand stops all gates.
func (s *gates) hand() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.all {
		g.hand()
	}
}

// files returns a second descriptor of each open gate, and their keys in the form of LISTEN_FDNAMES, in which a colon
// separates two names.
func (s *gates) files() (files []*os.File, names []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.all {
		f, err := g.file()
		if err != nil {
			closeAll(files)
			return nil, nil, err
		}
		if f != nil {
			files = append(files, f)
			names = append(names, url.QueryEscape(g.key))
		}
	}
	return files, names, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
