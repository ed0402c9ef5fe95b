package kvcache

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore/arena"
	"github.com/warmpath/warmpath/cache/kvstore/spill"
	"github.com/warmpath/warmpath/cache/parts/bind"
)

// succession opens a cache whose folder or segment the process before this one still has. That process releases both
// once this one serves, and not before: if this one fails, the old cache goes on. Until then this process has no cache
// and no memory for one. Clients that connect wait in the socket, as between two processes under systemd.
type succession struct {
	config  Config
	stopped chan struct{}         // closed by close
	cache   atomic.Pointer[Cache] // nil = not open yet

	mu      sync.Mutex      // guards the rest, and cache's first value
	doors   []boundListener // bound already: a handed-over socket that no code takes would be closed
	members *Members        // set before the cache is open
	closed  bool
}

// boundListener is a listener that is not served yet.
type boundListener struct {
	addr string
	net.Listener
}

// heldFor bounds the wait. The process before closes its cache at once, within lastCommand and lastReader. Tests change
// it.
var heldFor = time.Minute

const askHeld = 50 * time.Millisecond

// Open takes the memory and opens the listeners; it serves nothing before Run. If no listener is configured, it takes
// nothing.
func Open(c Config) (*Cache, error) {
	if c.Succeeds && (c.SpillDir != "" || c.HyperPod != "") {
		return openLater(c)
	}
	return open(c)
}

// openLater binds the doors. Run does the rest.
func openLater(c Config) (*Cache, error) {
	s := &succession{config: c, stopped: make(chan struct{})}
	for _, addr := range []string{c.RESP, c.HyperPod} {
		if addr == "" {
			continue
		}
		l, err := bind.Or(c.Bind).Listen("tcp", addr)
		if err != nil {
			s.close()
			return nil, fmt.Errorf("kvcache: %w", err)
		}
		s.doors = append(s.doors, boundListener{addr, l})
	}
	s.config.Bind = s
	return &Cache{heir: s, log: c.Log}, nil
}

func (s *succession) now() *Cache { return s.cache.Load() }

// Listen returns the listener bound before: open binds its listeners after it has folder and segment.
func (s *succession) Listen(network, addr string) (net.Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, d := range s.doors {
		if d.addr == addr {
			s.doors = slices.Delete(s.doors, i, i+1)
			return d.Listener, nil
		}
	}
	return nil, fmt.Errorf("kvcache: %s %s: %w", network, addr, net.ErrClosed)
}

// run opens the cache as soon as it can, and runs it. If that fails, the router goes on without a cache.
func (s *succession) run() error {
	began := time.Now()
	for {
		k, err := open(s.config)
		held := errors.Is(err, spill.ErrHeld) || errors.Is(err, arena.ErrHeld)
		switch {
		case err == nil:
			return s.serve(k, time.Since(began))
		case !held || time.Since(began) > heldFor:
			s.config.Log.Error("there is no KV cache: correct what is wrong with its folder or segment, and restart warmpath",
				"waited", time.Since(began), "error", err)
			s.closeDoors()
			<-s.stopped
			return nil
		}
		select {
		case <-s.stopped:
			return nil
		case <-time.After(askHeld):
		}
	}
}

// serve makes k the cache.
func (s *succession) serve(k *Cache, waited time.Duration) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		k.Close()
		return nil
	}
	if s.members != nil {
		k.SetMembers(*s.members)
	}
	s.cache.Store(k)
	s.mu.Unlock()
	s.config.Log.Info("the KV cache was taken over from the process before", "waited", waited)
	return k.Run()
}

func (s *succession) setMembers(m Members) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.cache.Load(); k != nil {
		k.SetMembers(m)
		return
	}
	s.members = &m
}

// close closes the cache, or ends the wait for it.
func (s *succession) close() {
	s.mu.Lock()
	s.closed = true
	close(s.stopped)
	s.mu.Unlock()
	s.closeDoors()
	s.cache.Load().Close()
}

// closeDoors closes the listeners that are not served.
func (s *succession) closeDoors() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.doors {
		l.Close()
	}
	s.doors = nil
}
