package operator

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/gofiber/fiber/v2/middleware/pprof"

	"github.com/warmpath/warmpath/cache/parts/bind"
	"github.com/warmpath/warmpath/daemon/admin/metrics"
)

// Server is the operator's listener.
type Server struct {
	c        Config
	began    time.Time
	app      *fiber.App
	listener net.Listener
	token    bearer

	decided decided
	trends  trends
}

// New binds the listener. It serves nothing before Run.
func New(c Config) (*Server, error) {
	s := &Server{c: c, began: time.Now()}
	s.decided.ring, s.decided.began = c.Ring, s.began
	s.decided.over = make(chan struct{})
	s.token.file = c.AdminTokenFile
	if err := s.token.read(); err != nil {
		return nil, err
	}
	raw, err := c.listen(s.token.exists())
	if err != nil {
		return nil, err
	}
	c.Metrics.Began(c.Succeeds, s.began)
	s.app = s.newApp(c)
	s.listener = raw
	if c.Wrap != nil {
		s.listener = c.Wrap(raw)
	}
	s.listener = lingering{s.listener}
	return s, nil
}

// listen binds the listener. If the process was started with one, listen sets Admin to its address, so that the rules
// for server.admin hold for it too.
func (c *Config) listen(token bool) (net.Listener, error) {
	if c.Listener == nil {
		l, err := bind.Or(c.Bind).Listen("tcp", c.Admin)
		if err != nil {
			return nil, fmt.Errorf("daemon: cannot listen for the operator; change server.admin or free the port: %w", err)
		}
		return l, nil
	}
	c.Admin = c.Listener.Addr().String()
	if a, ok := c.Listener.Addr().(*net.TCPAddr); !token && (!ok || !a.IP.IsLoopback()) {
		return nil, fmt.Errorf("daemon: the operator's socket that the process was started with, %s, is reachable from "+
			"outside and has no token; set server.admin_token_file, or have it listen on 127.0.0.1", c.Admin)
	}
	return c.Listener, nil
}

// answerTime bounds how long a client may take to read an answer: 128 MiB at 2 MB/s. The connections are few, and one
// that is not read would be held for ever. The live decisions have a deadline for each event in its place.
const answerTime = time.Minute

// Run serves until Close.
func (s *Server) Run() error { return s.app.Listener(s.listener) }

// ReloadToken reads the token's file again. On an error the token in force stays.
func (s *Server) ReloadToken() error { return s.token.read() }

// Tick watches the counters of lost and refused work. Call it once a second.
func (s *Server) Tick(now time.Time, log *slog.Logger) { s.trends.tick(&s.c, now, log) }

// Addr returns the address of the listener.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends the server. Only scrapes are cut off. It does nothing on a nil Server.
func (s *Server) Close() {
	if s == nil {
		return
	}
	s.decided.end()
	_ = s.app.ShutdownWithTimeout(time.Second)
	s.listener.Close()
}

// newApp makes the routes.
func (s *Server) newApp(c Config) *fiber.App {
	app := fiber.New(fiber.Config{
		DisableStartupMessage: true,
		ReadTimeout:           c.ReadTimeout,
		IdleTimeout:           c.IdleTimeout,
		WriteTimeout:          answerTime,
		ErrorHandler:          adminError,
		Concurrency:           c.Connections,
	})
	app.Server().SecureErrorLogMessage = true
	app.Use(closing(c.Process))
	app.Use(lingerUnread)
	app.Use(surviving(c.Log))
	app.Use(ownPagesOnly(s.token.exists(), c.Admin))
	app.Get("/health", health)
	app.Get("/ready", s.readiness)
	addPage(app)
	if s.token.exists() {
		app.Use(s.token.require)
	}
	app.Get("/metrics", adaptor.HTTPHandler(c.Metrics.Handler(metrics.Sources{
		Pools: c.Process.Pools, Clients: c.Process.Clients, Store: c.Store, KVCache: c.KVCache, LMCache: c.LMCache,
		Peers: c.Peers, Limits: c.Limits, Certificates: c.Certificates, Memory: c.Memory, Spans: c.Spans})))
	app.Use("/debug/pprof", profilesAllowed(s.token.exists(), c.Process))
	app.Use(pprof.New()) // shows where the time goes, even at three in the morning
	app.Get("/", apiIndex)
	app.Get("/api/v1", apiIndex)
	app.Get("/api/v1/openapi.json", openAPIPage)
	app.Get("/api/v1/pools", func(c *fiber.Ctx) error {
		all := Describe(s.c.Process.Pools())
		return inParts(c, len(all), func(i int) *PoolState { return &all[i] }, all)
	})
	app.Get("/api/v1/sessions", func(c *fiber.Ctx) error { return sessionsPage(c, s.c.Process.Pools()) })
	s.addActions(app)
	addStrategies(app, c.Strategies, c.Process, &s.token)
	addOrders(app, c.Process, &s.token)
	addRegister(app, &desk{all: c.Register, process: c.Registrar, pools: c.Process.Pools}, &s.token)
	app.Get("/api/v1/shadows", func(c *fiber.Ctx) error { return shadowsPage(c, s.c.Process.Pools()) })
	app.Get("/api/v1/decisions", s.decided.list)
	app.Get("/api/v1/decisions/:id", s.decided.one)
	cacheRoutes(app, c.KVCache)
	app.Get("/api/v1/routers", func(r *fiber.Ctx) error { return r.JSON(c.Peers.Stats()) })
	app.Get("/api/v1/lmcache", func(r *fiber.Ctx) error { return lmcachePage(r, c.LMCache.Stats()) })
	app.Post("/api/v1/pools/:pool/workers/:worker/drain", func(c *fiber.Ctx) error { return s.drainWorker(c, true) })
	app.Delete("/api/v1/pools/:pool/workers/:worker/drain", func(c *fiber.Ctx) error { return s.drainWorker(c, false) })
	return app
}

func health(c *fiber.Ctx) error { return c.SendString("ok\n") }

func (s *Server) readiness(c *fiber.Ctx) error {
	ready, page := Readiness(s.c.Process.Pools(), s.c.Process.Draining())
	status := fiber.StatusOK
	if !ready {
		status = fiber.StatusServiceUnavailable
	}
	return c.Status(status).JSON(page)
}

// apiIndex lists the routes of the operator's listener.
func apiIndex(c *fiber.Ctx) error {
	return c.JSON(fiber.Map{
		"GET /":                    "the page, for a browser",
		"GET /metrics":             "for Prometheus",
		"GET /health":              "200 while the process runs",
		"GET /ready":               "200 while a pool can serve; 503 from SIGTERM on",
		"GET /api/v1/pools":        "pools and workers as they are now",
		"GET /api/v1/openapi.json": "all of this as an OpenAPI file, with what each answer holds",
		"GET /api/v1/shadows":      "what each pool's shadows saw, beside the strategy that served",
		"GET /api/v1/sessions":     "how many sessions live at each worker",
		"GET /api/v1/overview":     "all of that at one look, with demand, tiers and the last reload; ?limit= as for pools",
		"GET /api/v1/recent":       "the last hour of each pool, in spans of half a minute",
		"GET /api/v1/timeline":     "the last hour: requests, load, events; ?pool=NAME; ?curves=1: of each worker",
		"GET /api/v1/keys":         "requests, refusals and tokens by the client's key, since the start",
		"GET /api/v1/config":       "the configuration in force, without its secrets",
		"POST /api/v1/reload":      "read the configuration's file again",
		"POST /api/v1/upgrade":     "start the binary at this process's path, hand it the sockets, and drain; ?timeout=1m",
		"POST /api/v1/whatif": "where a request would go, by each strategy, without sending it: " +
			`{"body": {...}, "path": "/v1/chat/completions", "session": "..."}`,
		"GET /api/v1/decisions": "the last requests, who served them and why; ?pool=&worker=&model=&key=&slower=2s&" +
			"open=1&failed=1&limit=50; with Accept: text/event-stream those to come",
		"GET /api/v1/decisions/ID": "why the request of that id went where it went",
		"GET /api/v1/cache":        "the workers' KV cache: tiers, tokens that it has room for; ?prefix=P counts keys",
		"GET /api/v1/cache/keys": "its keys in order, a page: ?prefix=P&after=KEY&limit=N, up to 1000; " +
			"resp/DATABASE/KEY or hyperpod/BUCKET/KEY, where bytes that do not print, spaces and % stand as %XX",
		"DELETE /api/v1/cache/keys": "?key=K deletes one, ?prefix=P all that begin so, 5000 a call: ?after=NEXT goes on",
		"GET /api/v1/cache/value":   "the bytes of ?key=K",
		"GET /api/v1/strategies":    "the strategies that there are, each with its SHA-256 and the pools that it serves",
		"PUT /api/v1/strategies/NAME": "bring a module, the body; it serves at once where its name is configured; " +
			`If-Match: "SHA256" of the one in whose place it comes; needs a token, as all that changes strategies`,
		"DELETE /api/v1/strategies/NAME": "remove a module that serves nobody",
		"PUT /api/v1/pools/POOL/strategy": "have a strategy serve in the place of the one that the file names, over " +
			`restarts too: {"strategy": "NAME"}`,
		"DELETE /api/v1/pools/POOL/strategy": "have the one serve that the file names",
		"GET /api/v1/routers":                "other routers that share the history: who is there, lag, messages, replay",
		"GET /api/v1/lmcache":                "LMCache's instances: state, hash, keys by location, gaps, syncs",
		"POST /api/v1/pools/POOL/workers/WORKER/drain": "take a worker out: its requests run to their end; ?rank=N for one " +
			"of its data-parallel ranks",
		"DELETE /api/v1/pools/POOL/workers/WORKER/drain": "put it back",
		"POST /api/v1/pools/POOL/workers": `register a worker, or renew its registration: {"url": "...", "id": "...", ` +
			`"ttl": "30s"} and the other keys of [[pools.workers]]; needs a token`,
		"GET /api/v1/pools/POOL/workers":           "the workers of a pool with their urls, and where each comes from",
		"DELETE /api/v1/pools/POOL/workers/WORKER": "end a registration: its requests run to their end; needs a token",
		"POST /workers": "the same in the form of SGLang's router, which also has GET /workers, DELETE /workers/WORKER, " +
			"POST /add_worker, POST /remove_worker and GET /list_workers",
		"POST /api/v1/pools/POOL/each": "send /pause, /resume, /sleep, /wake_up, /reset_prefix_cache or an update of " +
			"weights to all workers: ?path=/sleep%3Flevel=1&timeout=1m; needs a token",
		"GET /debug/pprof": "profiles of this process, with a token or server.pprof = true",
	})
}

// adminReasons say what is wrong with a request that no handler takes, and what to do.
var adminReasons = map[int]string{
	fiber.StatusUnauthorized:          "send the token of server.admin_token_file, as Authorization: Bearer TOKEN",
	fiber.StatusForbidden:             "a web page of another origin may change nothing here",
	fiber.StatusMethodNotAllowed:      "this path takes only the methods in the field Allow",
	fiber.StatusRequestEntityTooLarge: "the body is too long: 4 MiB, of a module 16 MiB",
}

// adminError answers with a handler's error. It repeats nothing of the request.
func adminError(c *fiber.Ctx, err error) error {
	status := fiber.StatusInternalServerError
	if fe := (*fiber.Error)(nil); errors.As(err, &fe) {
		status = fe.Code
	}
	if status == fiber.StatusUnauthorized {
		c.Set(fiber.HeaderWWWAuthenticate, "Bearer")
	}
	if reason := adminReasons[status]; reason != "" {
		return c.Status(status).JSON(fiber.Map{"error": reason})
	}
	return c.SendStatus(status)
}

// drainState is the answer to a drain, and to its end.
type drainState struct {
	Pool     string `json:"pool"`
	Worker   string `json:"worker"`
	Draining bool   `json:"draining"`
	Until    string `json:"until,omitempty"`   // what ends it
	Moves    *int   `json:"moves,omitempty"`   // conversations that are moved to other workers first (?hand_over=)
	Streams  *int   `json:"streams,omitempty"` // requests at the worker; others go on with those that stream (continue)
	Warning  string `json:"warning,omitempty"` // the pool has no other worker, or other routers hear nothing
}

// drainWorker takes a worker out of routing, or puts it back: its requests run to their end.
func (s *Server) drainWorker(c *fiber.Ctx, on bool) error {
	name, id := c.Params("pool"), workerParam(c)
	within, err := time.ParseDuration(c.Query("hand_over", "0s"))
	if err != nil || within < 0 {
		return c.Status(fiber.StatusBadRequest).JSON(fiber.Map{
			"error": "hand_over is no time; write within which the worker's conversations move, as 60s"})
	}
	why := "there is no such pool or worker; /api/v1/pools lists them"
	for _, p := range s.c.Process.Pools() {
		if p.Name != name {
			continue
		}
		answer := drainState{Pool: name, Worker: id, Draining: on}
		known := false
		if on && within > 0 {
			var n, streams int
			n, streams, known, err = p.Leaving.HandOver(id, within)
			answer.Moves, answer.Streams = &n, &streams
		} else {
			known = p.Workers.Drain(id, on, time.Now())
		}
		switch {
		case err != nil:
			return c.Status(fiber.StatusConflict).JSON(fiber.Map{"error": err.Error()})
		case !known:
			if p.Outside > 0 && p.Subset().Outside[id] != "" {
				why = id + " is not drained: this router does not use it, and " + p.Subset().Outside[id]
			}
			continue
		case !on && p.Leaving != nil:
			p.Leaving.Stay(id)
		}
		if on {
			answer.Until = "DELETE of this path, or the end of the daemon: an upgrade keeps it, a restart does not; drain = " +
				"true of the worker in the file lasts"
		}
		if on && p.Empty(time.Now()) {
			then := "get 503"
			if p.Rests(time.Now()) {
				then = "wait"
			}
			answer.Warning = "the pool has no other worker that is up: its requests " + then + " until one is, or this one is " +
				"put back"
		} else if h := s.c.Peers.Stats(); h.On && !h.Connected {
			answer.Warning = "Redis of [history] is lost: the other routers hear of this when it is back"
		}
		return c.JSON(answer)
	}
	return c.Status(fiber.StatusNotFound).JSON(fiber.Map{"error": why})
}
