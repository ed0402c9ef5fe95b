package hyperpod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/cache/parts/bind"
	"github.com/warmpath/warmpath/cache/parts/seldom"
	"github.com/warmpath/warmpath/cache/parts/webpage"
	"github.com/warmpath/warmpath/daemon/transport/listen"
)

// Config configures the door and names the store behind it.
type Config struct {
	Listen string         // HOST:PORT
	Bind   bind.Binder    // nil = the system
	Store  *kvstore.Store // its arena is the segment that workers map

	MaxConns int          // further ones are closed at once; default 10,000, as at the Redis listener
	Log      *slog.Logger // default slog.Default()
}

// MaxLease is the longest lease of a worker. A request for a longer one gets an error: a worker that trusts an expired
// lease would read another value's bytes.
const MaxLease = time.Minute

const (
	headerTime = 10 * time.Second
	pieceTime  = 30 * time.Second // for the next piece of a value
	idleTime   = 2 * time.Minute  // LMCache keeps a connection for 30 s
	headerRoom = 32 << 10         // of a request's head
)

// Server is the door. New binds it, Run serves, Close ends both.
type Server struct {
	config   Config
	http     *fasthttp.Server
	listener *listen.Listener
	leases   *leases
	counts   counters
	stalls   seldom.Line // about workers that stopped in the middle of a value

	mu   sync.Mutex // guards open
	open map[net.Conn]struct{}
}

// counters are the door's counters; see Stats.
type counters struct{ requests, failed, stalled, hits, misses, put, leased atomic.Uint64 }

// Stats counts what the door has done since it opened.
type Stats struct {
	Connections      int
	Requests, Failed uint64 // requests; those that got an error, misses excepted
	Stalled          uint64 // workers that stopped in the middle of a value
	Leases           int    // held now
	Granted, Expired uint64 // leases; those that were not released in time
	Hits, Misses     uint64 // of requests for a lease
	BytesIn          uint64 // of values that came through the door
	BytesLeased      uint64 // of values that workers leased
}

// New binds the door. It serves nothing before Run.
func New(c Config) (*Server, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.MaxConns <= 0 {
		c.MaxConns = 10_000
	}
	bound, err := bind.Or(c.Bind).Listen("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("hyperpod: %w", err)
	}
	l, err := listen.New(bound, listen.Config{MaxConns: c.MaxConns, Limit: "kv_cache.max_connections", Log: c.Log})
	if err != nil {
		bound.Close()
		return nil, fmt.Errorf("hyperpod: %w", err)
	}
	s := &Server{config: c, listener: l, leases: newLeases(), open: map[net.Conn]struct{}{}}
	s.http = &fasthttp.Server{
		Handler:                      s.attend,
		ErrorHandler:                 s.unread,
		StreamRequestBody:            true,
		MaxRequestBodySize:           1, // bytes read before the handler runs: a value goes straight to its place
		DisablePreParseMultipartForm: true,
		ReadBufferSize:               headerRoom,
		ReadTimeout:                  headerTime,
		IdleTimeout:                  idleTime,
		Concurrency:                  c.MaxConns + 1, // the listener enforces the limit
		CloseOnShutdown:              true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		NoDefaultDate:                true,
		Logger:                       discard{},
		ConnState:                    s.count,
	}
	return s, nil
}

// discard drops fasthttp's log lines: this package counts and logs the important events itself.
type discard struct{}

// Printf drops the line.
func (discard) Printf(string, ...any) {}

// count tracks the open connections, for Close. fasthttp calls it at each request, too.
func (s *Server) count(c net.Conn, state fasthttp.ConnState) {
	if state != fasthttp.StateNew && state != fasthttp.StateClosed {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if state == fasthttp.StateNew {
		s.open[c] = struct{}{}
		return
	}
	delete(s.open, c)
}

// Addr returns the door's address, host:port.
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
	if err := s.http.Serve(s.listener); err != nil {
		return fmt.Errorf("hyperpod: %w", err)
	}
	return nil
}

// Close waits for requests to end, within ctx, and ends all leases, because the memory is freed next.
func (s *Server) Close(ctx context.Context) {
	_ = s.http.ShutdownWithContext(ctx) // its errors are those of ctx, and of a listener that is closed already
	s.listener.Close()                  // if Run was never called
	s.mu.Lock()
	left := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	for _, c := range left {
		listen.From(c).Abort()
	}
	s.leases.expire(time.Now().Add(2 * MaxLease))
}

// Stats returns the counts.
func (s *Server) Stats() Stats {
	held, granted, expired := s.leases.stats()
	return Stats{Connections: s.listener.Stats().Open, Requests: s.counts.requests.Load(), Failed: s.counts.failed.Load(),
		Stalled: s.counts.stalled.Load(), Leases: held, Granted: granted, Expired: expired,
		Hits: s.counts.hits.Load(), Misses: s.counts.misses.Load(), BytesIn: s.counts.put.Load(),
		BytesLeased: s.counts.leased.Load()}
}

// attend answers a request. It leaves the connection at the beginning of the next request, or closes it.
func (s *Server) attend(r *fasthttp.RequestCtx) {
	defer func() {
		if p := recover(); p != nil { // one request fails, not the process
			s.config.Log.Error("BUG: a request at the KV cache made the daemon panic", "panic", p,
				"stack", string(debug.Stack()))
			r.SetConnectionClose()
			s.fail(r, http.StatusInternalServerError, "the daemon made a mistake, which its log tells")
		}
	}()
	s.counts.requests.Add(1)
	s.answer(r)
	conn := listen.From(r.Conn())
	if !s.finish(r) {
		r.SetConnectionClose()
		conn.Linger()
	}
	conn.NextRequest()
}

// finish reads the rest of a body if it is short, and reports whether it reached the end.
func (s *Server) finish(r *fasthttp.RequestCtx) bool {
	switch n := r.Request.Header.ContentLength(); {
	case n == 0 || r.Response.ConnectionClose():
		return n == 0
	case n < 0:
		return false
	}
	_ = r.Conn().SetReadDeadline(time.Now().Add(pieceTime))
	_, err := io.CopyN(io.Discard, r.RequestBodyStream(), shortRest)
	return errors.Is(err, io.EOF)
}

// shortRest is read in less time than a new connection takes.
const shortRest = 256 << 10

// unread answers bytes that fasthttp could not read as a request, and closes the connection.
func (s *Server) unread(r *fasthttp.RequestCtx, why error) {
	conn := listen.From(r.Conn())
	if _, broken := errors.AsType[*net.OpError](why); broken { // a client that has left, or that sends nothing
		conn.LingerBriefly()
		answer(r, http.StatusRequestTimeout, map[string]string{"error": "no request came within " + headerTime.String()})
		return
	}
	conn.Linger()
	s.counts.requests.Add(1)
	if _, long := errors.AsType[*fasthttp.ErrSmallBuffer](why); long {
		s.fail(r, http.StatusRequestHeaderFieldsTooLarge, fmt.Sprintf("the head is longer than %d bytes", headerRoom))
		return
	}
	s.fail(r, http.StatusBadRequest, "this is no request of HTTP/1.1")
}

// answer runs the call for a path. It splits the raw path: a key has slashes, which are escaped.
func (s *Server) answer(r *fasthttp.RequestCtx) {
	if webpage.Sends(fields{r}) {
		s.fail(r, http.StatusForbidden, webpage.Refusal)
		return
	}
	raw, _, _ := strings.Cut(string(r.RequestURI()), "?")
	parts := strings.Split(raw, "/")
	switch {
	case len(parts) == 5 && parts[1] == "v1" && parts[2] == "leases" && parts[4] == "release":
		if allow(r, http.MethodPost) {
			s.release(r, parts[3], "")
		}
	case len(parts) < 5 || parts[1] != "v1" || parts[2] != "kv":
		s.fail(r, http.StatusNotFound, "there is no such path; known here: /v1/kv/{bucket}/{key}, its /leases, and "+
			"/v1/leases/{id}/release")
	case len(parts) == 5:
		if allow(r, http.MethodPut) {
			s.put(r, parts[3], parts[4])
		}
	case len(parts) == 6 && parts[5] == "leases":
		if allow(r, http.MethodPost) {
			s.lease(r, parts[3], parts[4])
		}
	case len(parts) == 7 && parts[5] == "leases":
		if allow(r, http.MethodDelete) {
			s.releaseOf(r, parts[3], parts[4], parts[6])
		}
	default:
		s.fail(r, http.StatusNotFound, "there is no such path; a slash in a key is to be written as %2F")
	}
}

// fields are those of a request.
type fields struct{ r *fasthttp.RequestCtx }

// Get implements webpage.Header.
func (f fields) Get(name string) string { return string(f.r.Request.Header.Peek(name)) }

func allow(r *fasthttp.RequestCtx, method string) bool {
	if string(r.Method()) == method {
		return true
	}
	r.Response.Header.Set("Allow", method)
	r.SetStatusCode(http.StatusMethodNotAllowed)
	return false
}

// fail sends an error.
func (s *Server) fail(r *fasthttp.RequestCtx, status int, what string) {
	s.counts.failed.Add(1)
	answer(r, status, map[string]string{"error": what})
}

// nobody is an owner without promises: here leases keep values, and only the Redis listener has promises.
var nobody netip.Addr
