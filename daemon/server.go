package daemon

import (
	"context"
	"crypto/subtle"
	"errors"
	"os"
	"runtime/debug"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/upstream"
)

// front makes the clients' listener: /health, /ready and everything under /v1.
func (d *Daemon) front(c conf.Server) *fiber.App {
	app := fiber.New(fiber.Config{
		DisableStartupMessage: true,
		ErrorHandler:          d.clientError,
		BodyLimit:             c.MaxBodyBytes,
		ReadBufferSize:        32 << 10, // bounds all headers together
		ReadTimeout:           c.ReadTimeout,
		IdleTimeout:           c.IdleTimeout,
		UnescapePath:          false,
		CaseSensitive:         true,
		StrictRouting:         true,
	})
	app.Get("/health", d.health)
	app.Get("/ready", d.ready)
	app.All("/v1/*", d.serveV1)
	return app
}

// admin makes the operator's listener.
func (d *Daemon) admin(c conf.Server) (*fiber.App, error) {
	app := fiber.New(fiber.Config{DisableStartupMessage: true, ReadTimeout: c.ReadTimeout, IdleTimeout: c.IdleTimeout})
	app.Get("/health", d.health)
	app.Get("/ready", d.ready)
	if c.AdminTokenFile != "" {
		raw, err := os.ReadFile(c.AdminTokenFile)
		if err != nil {
			return nil, err
		}
		app.Use(requireToken(strings.TrimSpace(string(raw))))
	}
	app.Get("/metrics", adaptor.HTTPHandler(promhttp.HandlerFor(d.metrics.registry, promhttp.HandlerOpts{})))
	app.Get("/api/v1/pools", func(c *fiber.Ctx) error { return c.JSON(d.describe()) })
	return app, nil
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

// serveV1 takes values out of fiber's request and puts an answer back. The body is copied: fasthttp reuses its buffer as
// soon as the handler returns, while the transport may still be sending it.
func (d *Daemon) serveV1(c *fiber.Ctx) (err error) {
	defer func() {
		if r := recover(); r != nil { // one request fails, not the process
			d.log.Error("BUG: a request made the daemon panic", "panic", r, "stack", string(debug.Stack()))
			err = respond(c, faultInternal.outbound())
		}
	}()
	if d.draining.Load() {
		c.Set("Connection", "close")
	}
	in := &Inbound{
		Method: strings.Clone(c.Method()),
		Path:   string(c.Request().URI().PathOriginal()),
		Query:  string(c.Request().URI().QueryString()),
		Body:   append([]byte(nil), c.Request().Body()...), // c.Body would unpack a Content-Encoding, without a bound
	}
	for k, v := range c.Request().Header.All() {
		in.Header = append(in.Header, upstream.Field{Name: string(k), Value: string(v)})
	}
	return respond(c, d.Serve(context.Background(), in))
}

func respond(c *fiber.Ctx, out *Outbound) error {
	c.Status(out.Status)
	for _, f := range out.Header {
		if f.Name == "Content-Type" {
			c.Response().Header.SetContentType(f.Value)
			continue
		}
		c.Response().Header.Add(f.Name, f.Value)
	}
	if out.Stream == nil {
		c.Response().SetBodyRaw(out.Body)
		return nil
	}
	// fasthttp writes and flushes one chunk a Read, and closes the connection without the last chunk if Read fails.
	c.Response().SetBodyStream(out.Stream, int(out.Length))
	return nil
}

// clientError answers what fiber and fasthttp refuse by themselves. Nothing of the request is repeated in it.
func (d *Daemon) clientError(c *fiber.Ctx, err error) error {
	var fe *fiber.Error
	f := fault{400, "invalid_request_error", "bad_request", "the request is not well-formed HTTP", 0}
	if errors.As(err, &fe) {
		switch fe.Code {
		case fiber.StatusRequestEntityTooLarge:
			f = faultTooLarge
		case fiber.StatusNotFound, fiber.StatusMethodNotAllowed:
			f = fault{404, "invalid_request_error", "unknown_url", "there is nothing at this URL; the API is under /v1", 0}
		case fiber.StatusRequestHeaderFieldsTooLarge:
			f = fault{431, "invalid_request_error", "headers_too_large", "the request's headers are over 32 KB", 0}
		case fiber.StatusRequestTimeout:
			f = fault{408, "invalid_request_error", "request_timeout", "the request did not arrive within server.read_timeout", 0}
		}
	}
	return respond(c, f.outbound())
}

func (d *Daemon) health(c *fiber.Ctx) error { return c.SendString("ok\n") }

// ready is 200 while requests can be served: not draining, and a worker up in at least one pool.
func (d *Daemon) ready(c *fiber.Ctx) error {
	pools := d.brief()
	status := fiber.StatusServiceUnavailable
	if !d.draining.Load() {
		for _, p := range pools {
			if p.Up > 0 {
				status = fiber.StatusOK
			}
		}
	}
	return c.Status(status).JSON(fiber.Map{"ready": status == fiber.StatusOK, "draining": d.draining.Load(), "pools": pools})
}
