package hyperpod

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
)

// Config says where the door is and what is behind it.
type Config struct {
	Listen string                                           // HOST:PORT
	Bind   func(network, addr string) (net.Listener, error) // default net.Listen
	Store  *kvstore.Store                                   // its arena is the segment that workers map
	Log    *slog.Logger                                     // default slog.Default()
}

// MaxLease is the longest lease that a worker gets. Who asks for a longer one gets an error: a worker that believes
// in a lease that is over would read another value's bytes.
const MaxLease = time.Minute

const (
	headerTime = 10 * time.Second
	pieceTime  = 30 * time.Second // for the next piece of a value
	idleTime   = 2 * time.Minute  // LMCache keeps a connection for 30 s
)

// Server is the door. New binds it, Run serves, Close ends both.
type Server struct {
	config   Config
	http     *http.Server
	listener net.Listener
	leases   *leases
	open     atomic.Int64
	counts   counters
}

// counters are what the door counts; see Stats.
type counters struct{ requests, failed, stalled, hits, misses, put, leased atomic.Uint64 }

// Stats is what the door has done since it opened.
type Stats struct {
	Connections      int
	Requests, Failed uint64 // requests; those that were answered an error, but for misses
	Stalled          uint64 // workers that stopped in the middle of a value
	Leases           int    // held now
	Granted, Expired uint64 // leases; those that were not released in time
	Hits, Misses     uint64 // of requests for a lease
	BytesIn          uint64 // of values that came through the door
	BytesLeased      uint64 // of values that workers were told where to read
}

// New binds the door. Nothing is served before Run.
func New(c Config) (*Server, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Bind == nil {
		c.Bind = net.Listen
	}
	l, err := c.Bind("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("hyperpod: %w", err)
	}
	s := &Server{config: c, listener: l, leases: newLeases()}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: 32 << 10,
		ErrorLog: log.New(discard{}, "", 0), ConnState: s.count}
	return s, nil
}

// discard takes net/http's lines: what matters of them is counted and logged here.
type discard struct{}

// Write drops the line.
func (discard) Write(p []byte) (int, error) { return len(p), nil }

func (s *Server) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.open.Add(-1)
	}
}

// Addr is where the door is, host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Run serves, and ends leases whose time is over, until Close.
func (s *Server) Run() error {
	done := make(chan struct{})
	defer close(done)
	go func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case now := <-tick.C:
				s.leases.expire(now)
			}
		}
	}()
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("hyperpod: %w", err)
	}
	return nil
}

// Close lets requests end, within ctx, and ends all leases: the memory is about to be given back.
func (s *Server) Close(ctx context.Context) {
	if s.http.Shutdown(ctx) != nil {
		s.http.Close()
	}
	s.listener.Close() // if Run was never called
	s.leases.expire(time.Now().Add(2 * MaxLease))
}

// Stats counts.
func (s *Server) Stats() Stats {
	held, granted, expired := s.leases.stats()
	return Stats{Connections: int(s.open.Load()), Requests: s.counts.requests.Load(), Failed: s.counts.failed.Load(),
		Stalled: s.counts.stalled.Load(), Leases: held, Granted: granted, Expired: expired,
		Hits: s.counts.hits.Load(), Misses: s.counts.misses.Load(), BytesIn: s.counts.put.Load(),
		BytesLeased: s.counts.leased.Load()}
}

// ServeHTTP finds the call that a path means. It looks at the path as it came: a key has slashes, which are escaped.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.counts.requests.Add(1)
	raw, _, _ := strings.Cut(r.RequestURI, "?")
	parts := strings.Split(raw, "/")
	switch {
	case len(parts) == 5 && parts[1] == "v1" && parts[2] == "leases" && parts[4] == "release":
		if allow(w, r, http.MethodPost) {
			s.release(w, parts[3])
		}
	case len(parts) < 5 || parts[1] != "v1" || parts[2] != "kv":
		s.fail(w, http.StatusNotFound, "there is no such path; known here: /v1/kv/{bucket}/{key}, its /leases, and "+
			"/v1/leases/{id}/release")
	case len(parts) == 5:
		if allow(w, r, http.MethodPut) {
			s.put(w, r, parts[3], parts[4])
		}
	case len(parts) == 6 && parts[5] == "leases":
		if allow(w, r, http.MethodPost) {
			s.lease(w, r, parts[3], parts[4])
		}
	case len(parts) == 7 && parts[5] == "leases":
		if allow(w, r, http.MethodDelete) {
			s.release(w, parts[6])
		}
	default:
		s.fail(w, http.StatusNotFound, "there is no such path; a slash in a key is to be written as %2F")
	}
}

func allow(w http.ResponseWriter, r *http.Request, method string) bool {
	if r.Method == method {
		return true
	}
	w.Header().Set("Allow", method)
	w.WriteHeader(http.StatusMethodNotAllowed)
	return false
}

// fail answers an error.
func (s *Server) fail(w http.ResponseWriter, status int, what string) {
	s.counts.failed.Add(1)
	answer(w, status, map[string]string{"error": what})
}

// nobody: leases keep values here, promises are the Redis door's.
var nobody netip.Addr
