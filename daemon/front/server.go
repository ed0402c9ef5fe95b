package front

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/exchange"
	"github.com/warmpath/warmpath/daemon/gate"
	"github.com/warmpath/warmpath/daemon/listen"
)

// Epoch is what is in force when a request comes in. A reload makes another. It is never changed.
type Epoch struct {
	exchange.Epoch
	CORS        gate.CORS
	Keys        *gate.Keys
	MaxBody     int // bytes of a body
	BufferBody  int // of these held in memory
	MaxInFlight int
	ReadTimeout time.Duration
	IdleTimeout time.Duration
}

// Meter counts what the front answers. [exchange.Meter] counts the rest.
type Meter interface {
	// Answered counts a request that nothing else has counted.
	Answered(s *exchange.Seen)
	// Shed counts load that was turned away.
	Shed(pool, reason string)
}

// Config is what a Server is made of. Changing its limits needs a restart.
type Config struct {
	Log   *slog.Logger
	Meter Meter
	Epoch func() *Epoch // in force now
	Serve func(ctx context.Context, in *exchange.Inbound) *exchange.Outbound
	Ready func(draining bool) (ready bool, page any) // what /ready answers

	Listen         string // host:port
	TLSCert        string // files; "" = plain HTTP
	TLSKey         string
	MaxConns       int // that the limit of open files has room for
	Connections    int // max_connections: MaxConns may grow to it
	MaxHeaderBytes int
	ReadTimeout    time.Duration
	IdleTimeout    time.Duration
	WriteTimeout   time.Duration
}

// Server serves the clients.
type Server struct {
	log   *slog.Logger
	meter Meter
	epoch func() *Epoch
	serve func(ctx context.Context, in *exchange.Inbound) *exchange.Outbound
	ready func(draining bool) (ready bool, page any)

	access   accessLog
	app      *fiber.App
	listener *listen.Listener

	draining  atomic.Bool
	inFlight  atomic.Int64
	endedLate atomic.Int64   // requests that ended in the drain
	idle      sync.Map       // of *listen.Conn: those that wait for a request after a stream
	lives     exchange.Lives // of the requests
}

// New binds the listener. Nothing is served before Run.
func New(c Config) (*Server, error) {
	s := &Server{log: c.Log, meter: c.Meter, epoch: c.Epoch, serve: c.Serve, ready: c.Ready}
	s.app = s.newApp(c)
	raw, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("daemon: cannot listen for clients; change server.listen or free the port: %w", err)
	}
	s.listener, err = listen.New(raw, listen.Config{WriteTimeout: c.WriteTimeout, MaxConns: c.MaxConns,
		CertFile: c.TLSCert, KeyFile: c.TLSKey, Log: c.Log})
	if err != nil {
		raw.Close()
		return nil, fmt.Errorf("daemon: %w", err)
	}
	return s, nil
}

// newApp makes the HTTP server: /health, /ping, /ready, and everything that goes to workers.
func (s *Server) newApp(c Config) *fiber.App {
	app := fiber.New(fiber.Config{
		DisableStartupMessage:        true,
		ErrorHandler:                 s.clientError,
		StreamRequestBody:            true,
		BodyLimit:                    1, // read ahead of the handler: the limit itself is in intake
		DisablePreParseMultipartForm: true,
		ReadBufferSize:               c.MaxHeaderBytes, // bounds all headers together
		WriteBufferSize:              4096 + 16,        // a piece of fasthttp's 4096 and its chunk's frame: one write
		ReadTimeout:                  c.ReadTimeout,
		IdleTimeout:                  c.IdleTimeout,
		Concurrency:                  c.Connections + 1, // the listener counts; fasthttp's own limit closes without a word
		DisableHeaderNormalizing:     true,
		UnescapePath:                 false,
		CaseSensitive:                true,
		StrictRouting:                true,
	})
	app.Server().HeaderReceived = s.early
	app.Server().ExpectHandler = s.expect
	app.Server().SecureErrorLogMessage = true // else header values, keys among them, stand in its log lines
	app.Get("/health", health)
	app.Get("/ping", health) // SageMaker asks it of a container
	app.Get("/ready", s.readiness)
	app.Use(s.handle)
	app.Server().Handler = nextHead(s.past(s.guard(app.Server().Handler)))
	return app
}

// nextHead tells the connection that what is read after a request is the head of the next.
func nextHead(handle fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(fc *fasthttp.RequestCtx) {
		handle(fc)
		if conn := listen.From(fc.Conn()); conn != nil {
			conn.NextRequest()
		}
	}
}

// attended marks requests whose body is the visit's to care for.
const attended = "attended"

// guard keeps the framing of requests that fiber answers without a look at their body: an unread one would be the next
// request.
func (s *Server) guard(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(fc *fasthttp.RequestCtx) {
		h := &fc.Request.Header
		if _, sound := readHeader(nil, h.RawHeaders(), h.IsHTTP11()); !sound || !plainTarget(fc) {
			fc.SetConnectionClose()
			s.refuseUnread(fc, exchange.FaultFraming, true)
			s.allowPage(fc)
			return
		}
		next(fc)
		if fc.UserValue(attended) != nil {
			return
		}
		s.allowPage(fc)
		if fc.RequestBodyStream() != nil {
			fc.SetConnectionClose()
		}
	}
}

// clientError answers what fiber and fasthttp refuse by themselves. Nothing of the request is repeated in it.
func (s *Server) clientError(c *fiber.Ctx, err error) error {
	var fe *fiber.Error
	f := exchange.FaultFraming
	if conn := listen.From(c.Context().Conn()); conn != nil {
		conn.Linger() // fasthttp closes after this answer
		if errors.As(err, &fe) && fe.Code == fiber.StatusRequestTimeout {
			conn.LingerBriefly()
		}
		if conn.EndedBare() {
			f.Message = listen.BareLF
		}
	}
	if errors.As(err, &fe) {
		switch fe.Code {
		case fiber.StatusNotFound, fiber.StatusMethodNotAllowed:
			f = exchange.FaultUnknownURL
		case fiber.StatusRequestHeaderFieldsTooLarge:
			f = exchange.FaultHeaders
		case fiber.StatusRequestTimeout:
			f = exchange.FaultSlowBody
		}
	}
	if fe != nil && fe.Code == fiber.StatusBadGateway { // fiber's word for a connection that broke: nobody reads an answer
		respond(c.Context(), f.Outbound(exchange.OpenAI))
		return nil
	}
	s.refuseUnread(c.Context(), f, len(c.Context().Request.Header.RawHeaders()) > 0)
	s.allowPage(c.Context())
	return nil
}

func health(c *fiber.Ctx) error { return c.SendString("ok\n") }

// readiness is 200 while requests can be served.
func (s *Server) readiness(c *fiber.Ctx) error {
	ready, page := s.ready(s.draining.Load())
	status := fiber.StatusOK
	if !ready {
		status = fiber.StatusServiceUnavailable
	}
	return c.Status(status).JSON(page)
}

// OpenLog makes path the access log: a file's name, stdout or stderr; "" = none. A file is opened anew each time.
func (s *Server) OpenLog(path string) error { return s.access.open(path, s.log) }

// ReloadTLS reads the certificate again. On an error the one in force stays.
func (s *Server) ReloadTLS() error { return s.listener.Reload() }

// SetMaxConns changes how many connections are let in.
func (s *Server) SetMaxConns(n int) { s.listener.SetMaxConns(n) }

// Addr is where clients are served, host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Stats is what the clients' side counts.
type Stats struct {
	Connections listen.Stats
	MaxConns    int // let in at a time
	InFlight    int64
	LostLines   uint64 // of the access log
}

// Stats returns the counts so far.
func (s *Server) Stats() Stats {
	return Stats{Connections: s.listener.Stats(), MaxConns: s.listener.MaxConns(), InFlight: s.inFlight.Load(), LostLines: s.access.lost.Load()}
}
