package front

import (
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/warmpath/warmpath/cache/parts/bind"
	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/certificate"
	"github.com/warmpath/warmpath/daemon/transport/listen"
)

// Config is the configuration of a Server. Changing its limits needs a restart.
type Config struct {
	Log     *slog.Logger
	Meter   Meter
	Backend Backend

	Bind bind.Binder // of Listen; nil = the system

	Listener       net.Listener      // that the process was started with; nil = Listen is bound
	Listen         string            // host:port
	Certificate    *certificate.Pair // nil = plain HTTP
	MaxConns       int               // that the limit of open files has room for
	Connections    int               // max_connections: MaxConns may grow to it
	MaxHeaderBytes int
	ReadTimeout    time.Duration
	IdleTimeout    time.Duration
	WriteTimeout   time.Duration
}

// Server serves the clients.
type Server struct {
	handler
	app      *fiber.App
	listener *listen.Listener
}

// New binds the listener. Nothing is served before Run.
func New(c Config) (*Server, error) {
	s := &Server{}
	s.log = c.Log
	s.meter = c.Meter
	s.backend = c.Backend
	s.readBuffer = c.MaxHeaderBytes
	s.app = s.newApp(c)
	s.serveConn = s.app.Server().ServeConn
	raw := c.Listener
	var err error
	if raw == nil {
		raw, err = bind.Or(c.Bind).Listen("tcp", c.Listen)
	}
	if err != nil {
		return nil, fmt.Errorf("daemon: cannot listen for clients; change server.listen or free the port: %w", err)
	}
	s.listener, err = listen.New(raw, listen.Config{WriteTimeout: c.WriteTimeout, MaxConns: c.MaxConns,
		Certificate: c.Certificate, Log: c.Log,
		Parked: func(conn *listen.Conn) { s.awaitRequest(conn, s.backend.Epoch().IdleTimeout) }})
	if err != nil {
		raw.Close()
		return nil, fmt.Errorf("daemon: %w", err)
	}
	return s, nil
}

// writeBuffer has room for a piece of fasthttp's 4096 and its chunk's frame: one write.
const writeBuffer = 4096 + 16

// newApp makes the HTTP server: /health, /ping, /ready, the base URLs, and everything that goes to workers.
func (s *Server) newApp(c Config) *fiber.App {
	app := fiber.New(fiber.Config{
		DisableStartupMessage:        true,
		ErrorHandler:                 s.clientError,
		StreamRequestBody:            true,
		BodyLimit:                    1, // read ahead of the handler: bodyReader has the limit itself
		DisablePreParseMultipartForm: true,
		DisableDefaultContentType:    true,             // an answer without a type goes on as it is
		ReadBufferSize:               c.MaxHeaderBytes, // bounds all headers together
		WriteBufferSize:              writeBuffer,
		ReadTimeout:                  c.ReadTimeout,
		IdleTimeout:                  c.IdleTimeout,
		Concurrency:                  c.Connections + 1, // the listener counts; fasthttp's own limit closes without an answer
		DisableHeaderNormalizing:     true,
		UnescapePath:                 false,
		CaseSensitive:                true,
		StrictRouting:                true,
	})
	app.Server().HeaderReceived = beforeBody
	app.Server().ExpectHandler = s.expect
	app.Server().SecureErrorLogMessage = true // else its log lines hold header values, keys among them
	app.Get("/health", health)
	app.Get("/ping", health) // SageMaker asks it of a container
	app.Get("/ready", s.readiness)
	for _, base := range []string{"/", "/v1", "/v1/"} {
		app.Get(base, index) // and HEAD, as of all the above
	}
	app.Use(s.handle)
	app.Server().Handler = s.wrap(app.Server().Handler)
	return app
}

func health(c *fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, fiber.MIMETextPlainCharsetUTF8)
	return c.SendString("ok\n")
}

// index answers at a base URL of clients. Some ask there with HEAD whether anybody listens, before they show a key.
func index(c *fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, fiber.MIMETextPlainCharsetUTF8)
	return c.SendString("warmpath: the API is under /v1\n")
}

// readiness answers 200 while requests can be served.
func (s *Server) readiness(c *fiber.Ctx) error {
	ready, page := s.backend.Ready(s.traffic.leaving.Load() && !s.traffic.replaced.Load())
	status := fiber.StatusOK
	if !ready {
		status = fiber.StatusServiceUnavailable
	}
	return c.Status(status).JSON(page)
}

// Run serves until Drain, or until the listener fails.
func (s *Server) Run() error { return s.app.Listener(s.listener) }

// Draining reports whether Leave or Drain has begun.
func (s *Server) Draining() bool { return s.traffic.leaving.Load() }

// Close ends all requests. Run must have returned. A nil Server has none.
func (s *Server) Close() {
	if s == nil {
		return
	}
	s.traffic.lives.Cut(message.ErrDraining)
	s.listener.Close()
}

// OpenLog makes path the access log: a file's name, stdout or stderr; "" = none. A file is opened anew each time.
func (s *Server) OpenLog(path string) error { return s.access.open(path, s.log) }

// CloseLog writes the access log's lines that wait, and closes it. A nil Server has none.
func (s *Server) CloseLog() {
	if s != nil {
		s.access.close(s.log)
	}
}

// SetMaxConns changes how many connections are let in.
func (s *Server) SetMaxConns(n int) { s.listener.SetMaxConns(n) }

// Addr returns the address at which clients are served, host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Stats are the counts of the clients' side.
type Stats struct {
	Connections listen.Stats
	MaxConns    int // let in at a time
	InFlight    int64
	Sockets     int64  // WebSockets open
	LostLines   uint64 // of the access log
	Held        account.Sums
}

// Stats returns the counts so far.
func (s *Server) Stats() Stats {
	return Stats{Connections: s.listener.Stats(), MaxConns: s.listener.MaxConns(),
		InFlight: s.traffic.inFlight.Load(), Sockets: s.sockets.Load(),
		LostLines: s.access.lost.Load(), Held: s.books.Sums()}
}
