package daemon

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/gofiber/fiber/v2/middleware/pprof"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/gate"
	"github.com/warmpath/warmpath/daemon/listen"
)

// front is what the clients' side needs of the configuration at each request. A reload makes a new one.
type front struct {
	cors        gate.CORS
	keys        *gate.Keys
	maxBody     int
	bufferBody  int
	maxInFlight int
	readTimeout time.Duration
	idleTimeout time.Duration
}

func newFront(c *conf.Config) (*front, error) {
	keys := make([]gate.Key, 0, len(c.Keys))
	for _, k := range c.Keys {
		secret, err := k.Secret()
		if err != nil {
			return nil, fmt.Errorf("daemon: %w", err)
		}
		keys = append(keys, gate.Key{Name: k.Name, Secret: secret, Models: k.Models})
	}
	s := c.Server
	return &front{cors: gate.NewCORS(s.CORSOrigins), keys: gate.NewKeys(keys), maxBody: s.MaxBodyBytes,
		bufferBody: min(s.BufferBody, s.MaxBodyBytes), maxInFlight: s.MaxInFlight, readTimeout: s.ReadTimeout, idleTimeout: s.IdleTimeout}, nil
}

// clients makes the clients' server: /health, /ping, /ready, and everything that goes to workers.
func (d *Daemon) clients(c conf.Server, connections int) *fiber.App {
	app := fiber.New(fiber.Config{
		DisableStartupMessage:        true,
		ErrorHandler:                 d.clientError,
		StreamRequestBody:            true,
		BodyLimit:                    1, // read ahead of the handler: the limit itself is in intake
		DisablePreParseMultipartForm: true,
		ReadBufferSize:               c.MaxHeaderBytes, // bounds all headers together
		WriteBufferSize:              4096 + 16,        // a piece of fasthttp's 4096 and its chunk's frame: one write
		ReadTimeout:                  c.ReadTimeout,
		IdleTimeout:                  c.IdleTimeout,
		Concurrency:                  connections + 1, // the listener counts; fasthttp's own limit closes without a word
		DisableHeaderNormalizing:     true,
		UnescapePath:                 false,
		CaseSensitive:                true,
		StrictRouting:                true,
	})
	app.Server().HeaderReceived = d.early
	app.Server().ExpectHandler = d.expect
	app.Server().SecureErrorLogMessage = true // else header values, keys among them, stand in its log lines
	app.Get("/health", d.health)
	app.Get("/ping", d.health) // SageMaker asks it of a container
	app.Get("/ready", d.ready)
	app.Use(d.serve)
	app.Server().Handler = nextHead(d.past(d.guard(app.Server().Handler)))
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
func (d *Daemon) guard(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(fc *fasthttp.RequestCtx) {
		h := &fc.Request.Header
		if _, sound := readHeader(nil, h.RawHeaders(), h.IsHTTP11()); !sound || !plainTarget(fc) {
			fc.SetConnectionClose()
			d.refuseUnread(fc, faultFraming, true)
			d.allowPage(fc)
			return
		}
		next(fc)
		if fc.UserValue(attended) != nil {
			return
		}
		d.allowPage(fc)
		if fc.RequestBodyStream() != nil {
			fc.SetConnectionClose()
		}
	}
}

// admin makes the operator's listener.
func (d *Daemon) admin(c conf.Server, connections int) (*fiber.App, error) {
	app := fiber.New(fiber.Config{DisableStartupMessage: true, ReadTimeout: c.ReadTimeout, IdleTimeout: c.IdleTimeout,
		ErrorHandler: adminError, Concurrency: connections})
	app.Server().SecureErrorLogMessage = true
	hasToken := c.AdminTokenFile != ""
	app.Use(ownPagesOnly(hasToken, c.Admin))
	app.Get("/health", d.health)
	app.Get("/ready", d.ready)
	if hasToken {
		raw, err := os.ReadFile(c.AdminTokenFile)
		if err != nil {
			return nil, err
		}
		token := strings.TrimSpace(string(raw))
		if len(token) < 8 {
			return nil, errors.New("it holds no token of at least 8 characters")
		}
		app.Use(requireToken(token))
	}
	app.Get("/metrics", adaptor.HTTPHandler(promhttp.HandlerFor(d.metrics.registry, promhttp.HandlerOpts{})))
	app.Use("/debug/pprof", d.profilesAllowed(hasToken))
	app.Use(pprof.New()) // what takes the time, at three in the morning too
	app.Get("/", apiIndex)
	app.Get("/api/v1", apiIndex)
	app.Get("/api/v1/pools", func(c *fiber.Ctx) error { return c.JSON(d.describe()) })
	app.Get("/api/v1/sessions", d.sessionsPage)
	app.Post("/api/v1/pools/:pool/workers/:worker/drain", func(c *fiber.Ctx) error { return d.drainWorker(c, true) })
	app.Delete("/api/v1/pools/:pool/workers/:worker/drain", func(c *fiber.Ctx) error { return d.drainWorker(c, false) })
	return app, nil
}

// apiIndex lists what the operator's listener serves.
func apiIndex(c *fiber.Ctx) error {
	return c.JSON(fiber.Map{
		"GET /metrics": "for Prometheus", "GET /health": "200 while the process runs", "GET /ready": "200 while a pool can serve; 503 from SIGTERM on",
		"GET /api/v1/pools": "pools and workers as they are now", "GET /api/v1/sessions": "how many sessions live at each worker",
		"POST /api/v1/pools/POOL/workers/WORKER/drain":   "take a worker out: its requests run to their end",
		"DELETE /api/v1/pools/POOL/workers/WORKER/drain": "put it back", "GET /debug/pprof": "profiles of this process, with a token or server.pprof = true"})
}

// adminError repeats nothing of the request.
func adminError(c *fiber.Ctx, err error) error {
	status := fiber.StatusInternalServerError
	if fe := (*fiber.Error)(nil); errors.As(err, &fe) {
		status = fe.Code
	}
	return c.SendStatus(status)
}

// drainWorker takes a worker out of routing, or puts it back: its requests run to their end.
func (d *Daemon) drainWorker(c *fiber.Ctx, on bool) error {
	name, id := c.Params("pool"), c.Params("worker")
	for _, p := range d.state.Load().pools {
		if p.name != name || !p.workers.Drain(id, on, time.Now()) {
			continue
		}
		answer := fiber.Map{"pool": name, "worker": id, "draining": on}
		if on {
			answer["until"] = "DELETE of this path, or the end of this process"
		}
		if on && p.workers.Up(time.Now()) == 0 {
			answer["warning"] = "the pool has no other worker that is up: its requests get 503 until one is, or this one is put back"
		}
		return c.JSON(answer)
	}
	return c.Status(fiber.StatusNotFound).JSON(fiber.Map{"error": "there is no such pool or worker; /api/v1/pools lists them"})
}

// requireToken lets in who shows the token as a bearer. The comparison's time says nothing of where they differ.
func requireToken(token string) fiber.Handler {
	want := []byte("Bearer " + token)
	return func(c *fiber.Ctx) error {
		if subtle.ConstantTimeCompare(c.Request().Header.Peek("Authorization"), want) != 1 {
			return fiber.ErrUnauthorized
		}
		return c.Next()
	}
}

// clientError answers what fiber and fasthttp refuse by themselves. Nothing of the request is repeated in it.
func (d *Daemon) clientError(c *fiber.Ctx, err error) error {
	var fe *fiber.Error
	f := faultFraming
	if conn := listen.From(c.Context().Conn()); conn != nil {
		conn.Linger() // fasthttp closes after this answer
		if errors.As(err, &fe) && fe.Code == fiber.StatusRequestTimeout {
			conn.LingerBriefly()
		}
		if conn.EndedBare() {
			f.message = listen.BareLF
		}
	}
	if errors.As(err, &fe) {
		switch fe.Code {
		case fiber.StatusNotFound, fiber.StatusMethodNotAllowed:
			f = faultUnknownURL
		case fiber.StatusRequestHeaderFieldsTooLarge:
			f = faultHeaders
		case fiber.StatusRequestTimeout:
			f = faultSlowBody
		}
	}
	if fe != nil && fe.Code == fiber.StatusBadGateway { // fiber's word for a connection that broke: nobody reads an answer
		respond(c.Context(), f.outbound(openAI))
		return nil
	}
	d.refuseUnread(c.Context(), f, len(c.Context().Request.Header.RawHeaders()) > 0)
	d.allowPage(c.Context())
	return nil
}

func (d *Daemon) health(c *fiber.Ctx) error { return c.SendString("ok\n") }

// ready is 200 while requests can be served: not draining, and at least one pool can. One that cannot is named with its reason
// and makes nothing of the rest unready: a load balancer would take all models away for the lack of one.
func (d *Daemon) ready(c *fiber.Ctx) error {
	pools := d.brief()
	status := fiber.StatusServiceUnavailable
	if !d.draining.Load() {
		for _, p := range pools {
			if p.Ready || p.WhyNot == whyUnfit { // who names such a pool as an endpoint is served
				status = fiber.StatusOK
			}
		}
	}
	return c.Status(status).JSON(fiber.Map{"ready": status == fiber.StatusOK, "draining": d.draining.Load(), "pools": pools})
}
