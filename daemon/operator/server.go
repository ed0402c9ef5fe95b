package operator

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/gofiber/fiber/v2/middleware/pprof"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/warmpath/warmpath/cache/lmcache"
	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/daemon/kvcache"
)

// Config is what a Server is made of. Its functions return what holds at the moment of the call.
type Config struct {
	Log      *slog.Logger
	Metrics  *Metrics
	Pools    func() []*Pool
	Clients  func() ClientStats
	Store    func() tier.Stats
	KVCache  func() (kvcache.Stats, bool) // false = it has no door
	LMCache  func() lmcache.Stats         // nil = there is none
	Draining func() bool
	Pprof    func() bool // profiles may be taken without a token

	Admin          string // host:port
	AdminTokenFile string // "" = no token
	Connections    int    // at a time
	ReadTimeout    time.Duration
	IdleTimeout    time.Duration
	Wrap           func(net.Listener) net.Listener // makes a listener outlast accepts that fail; nil = as it is
}

// Server is the operator's listener.
type Server struct {
	app      *fiber.App
	listener net.Listener
	pools    func() []*Pool
	draining func() bool
}

// New binds the listener. Nothing is served before Run.
func New(c Config) (*Server, error) {
	s := &Server{pools: c.Pools, draining: c.Draining}
	token, err := readToken(c.AdminTokenFile)
	if err != nil {
		return nil, fmt.Errorf("daemon: server.admin_token_file cannot be read: %w", err)
	}
	c.Metrics.registry.MustRegister(
		collector{process: c.Metrics.process, pools: c.Pools, clients: c.Clients, store: c.Store, kv: c.KVCache,
			lmcache: c.LMCache})
	s.app = s.newApp(c, token)
	raw, err := net.Listen("tcp", c.Admin)
	if err != nil {
		return nil, fmt.Errorf("daemon: cannot listen for the operator; change server.admin or free the port: %w", err)
	}
	s.listener = raw
	if c.Wrap != nil {
		s.listener = c.Wrap(raw)
	}
	return s, nil
}

// Run serves until Close.
func (s *Server) Run() error { return s.app.Listener(s.listener) }

// Addr is where the operator is served.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends the server. Only scrapes are lost. A nil Server has ended.
func (s *Server) Close() {
	if s == nil {
		return
	}
	_ = s.app.ShutdownWithTimeout(time.Second)
	s.listener.Close()
}

// readToken reads the operator's token. "" = no file, no token.
func readToken(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(raw))
	if len(token) < 8 {
		return "", errors.New("it holds no token of at least 8 characters")
	}
	return token, nil
}

// newApp makes the routes.
func (s *Server) newApp(c Config, token string) *fiber.App {
	app := fiber.New(fiber.Config{
		DisableStartupMessage: true,
		ReadTimeout:           c.ReadTimeout,
		IdleTimeout:           c.IdleTimeout,
		ErrorHandler:          adminError,
		Concurrency:           c.Connections,
	})
	app.Server().SecureErrorLogMessage = true
	app.Use(ownPagesOnly(token != "", c.Admin))
	app.Get("/health", health)
	app.Get("/ready", s.readiness)
	if token != "" {
		app.Use(requireToken(token))
	}
	app.Get("/metrics", adaptor.HTTPHandler(promhttp.HandlerFor(c.Metrics.registry, promhttp.HandlerOpts{})))
	app.Use("/debug/pprof", profilesAllowed(token != "", c.Pprof))
	app.Use(pprof.New()) // shows what takes the time, at three in the morning too
	app.Get("/", apiIndex)
	app.Get("/api/v1", apiIndex)
	app.Get("/api/v1/pools", func(c *fiber.Ctx) error { return c.JSON(Describe(s.pools())) })
	app.Get("/api/v1/sessions", func(c *fiber.Ctx) error { return sessionsPage(c, s.pools()) })
	app.Get("/api/v1/lmcache", func(r *fiber.Ctx) error { return lmcachePage(r, c.LMCache) })
	app.Post("/api/v1/pools/:pool/workers/:worker/drain", func(c *fiber.Ctx) error { return s.drainWorker(c, true) })
	app.Delete("/api/v1/pools/:pool/workers/:worker/drain", func(c *fiber.Ctx) error { return s.drainWorker(c, false) })
	return app
}

func health(c *fiber.Ctx) error { return c.SendString("ok\n") }

func (s *Server) readiness(c *fiber.Ctx) error {
	ready, page := Readiness(s.pools(), s.draining())
	status := fiber.StatusOK
	if !ready {
		status = fiber.StatusServiceUnavailable
	}
	return c.Status(status).JSON(page)
}

// apiIndex lists what the operator's listener serves.
func apiIndex(c *fiber.Ctx) error {
	return c.JSON(fiber.Map{
		"GET /metrics":         "for Prometheus",
		"GET /health":          "200 while the process runs",
		"GET /ready":           "200 while a pool can serve; 503 from SIGTERM on",
		"GET /api/v1/pools":    "pools and workers as they are now",
		"GET /api/v1/sessions": "how many sessions live at each worker",
		"GET /api/v1/lmcache":  "LMCache's instances: state, hash, keys by location, gaps, syncs",
		"POST /api/v1/pools/POOL/workers/WORKER/drain": "take a worker out: its requests run to their end; ?rank=N for one " +
			"of its data-parallel ranks",
		"DELETE /api/v1/pools/POOL/workers/WORKER/drain": "put it back",
		"GET /debug/pprof": "profiles of this process, with a token or server.pprof = true",
	})
}

// adminError answers what a handler failed with. It repeats nothing of the request.
func adminError(c *fiber.Ctx, err error) error {
	status := fiber.StatusInternalServerError
	if fe := (*fiber.Error)(nil); errors.As(err, &fe) {
		status = fe.Code
	}
	return c.SendStatus(status)
}

// workerParam returns the id of the worker that a request is about: WORKER in its path, and with ?rank=N that rank of
// it. A rank's own id has a # and must be encoded in a URL, as gpu-1%232.
func workerParam(c *fiber.Ctx) string {
	id, err := url.PathUnescape(c.Params("worker"))
	if err != nil {
		return ""
	}
	if rank := c.Query("rank"); rank != "" {
		return id + "#" + rank
	}
	return id
}

// drainWorker takes a worker out of routing, or puts it back: its requests run to their end.
func (s *Server) drainWorker(c *fiber.Ctx, on bool) error {
	name, id := c.Params("pool"), workerParam(c)
	for _, p := range s.pools() {
		if p.Name != name || !p.Workers.Drain(id, on, time.Now()) {
			continue
		}
		answer := fiber.Map{"pool": name, "worker": id, "draining": on}
		if on {
			answer["until"] = "DELETE of this path, or the end of this process"
		}
		if on && p.Workers.Up(time.Now()) == 0 {
			answer["warning"] = "the pool has no other worker that is up: its requests get 503 until one is, or this one is " +
				"put back"
		}
		return c.JSON(answer)
	}
	return c.Status(fiber.StatusNotFound).JSON(fiber.Map{
		"error": "there is no such pool or worker; /api/v1/pools lists them"})
}
