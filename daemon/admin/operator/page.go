package operator

import (
	"embed"
	"encoding/json"
	"path"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/warmpath/warmpath/daemon/admin/strategies"
)

// files are the page: nothing is built, and nothing comes from elsewhere.
//
//go:embed page
var files embed.FS

// pageTypes are the types of the page's files by the ends of their names.
var pageTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// pagePolicy lets the page load its own files and send requests to its own server only. If a text of a worker or a
// client got into the page as markup, the browser would run no script of it.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// pageFile serves a file of the page. It needs no token; the calls of the page do, and the page prompts for one.
func pageFile(c *fiber.Ctx, name string) error {
	text, err := files.ReadFile("page/" + name)
	if err != nil {
		return fiber.ErrNotFound
	}
	c.Set("Content-Type", pageTypes[path.Ext(name)])
	c.Set("Content-Security-Policy", pagePolicy)
	c.Set("X-Content-Type-Options", "nosniff")
	c.Set("Referrer-Policy", "no-referrer")
	c.Set("Cache-Control", "no-cache") // a new binary has a new page
	return c.Send(text)
}

// addPage adds the page to the routes without a token. A client that does not accept HTML gets the index in JSON.
func addPage(app *fiber.App) {
	app.Get("/", func(c *fiber.Ctx) error {
		if strings.Contains(c.Get("Accept"), "text/html") {
			return pageFile(c, "index.html")
		}
		return c.Next()
	})
	app.Get("/page/:file", func(c *fiber.Ctx) error { return pageFile(c, c.Params("file")) })
}

// addActions adds the routes for the page's data and actions.
func (s *Server) addActions(app *fiber.App) {
	app.Get("/api/v1/overview", func(c *fiber.Ctx) error {
		o := s.overview()
		o.Warnings = warnings(newEvidence(&o, &s.c, &s.trends, s.Addr()))
		return inParts(c, len(o.Pools), func(i int) *PoolState { return &o.Pools[i].PoolState }, o)
	})
	app.Get("/api/v1/recent", func(c *fiber.Ctx) error { return c.JSON(s.recent()) })
	app.Get("/api/v1/timeline", func(c *fiber.Ctx) error { return timelinePage(c, s.c.Process.Pools(), s.c.Metrics) })
	app.Get("/api/v1/keys", func(c *fiber.Ctx) error {
		return keysPage(c, s.c.Metrics, s.c.Limits.Counts(time.Now()))
	})
	app.Get("/api/v1/config", func(c *fiber.Ctx) error { return c.JSON(s.c.Process.Settings()) })
	app.Post("/api/v1/reload", func(c *fiber.Ctx) error {
		if err := s.c.Process.Reload(); err != nil {
			return c.Status(fiber.StatusUnprocessableEntity).JSON(fiber.Map{
				"error": "the configuration in force stays: " + err.Error()})
		}
		last, _ := s.c.Metrics.LastReload()
		return c.JSON(last)
	})
	app.Post("/api/v1/upgrade", upgradePage(s.c.Process))
	app.Post("/api/v1/whatif", func(c *fiber.Ctx) error {
		var q strategies.Question
		if err := json.Unmarshal(c.Body(), &q); err != nil {
			return c.Status(fiber.StatusBadRequest).JSON(fiber.Map{"error": "this is no question in JSON: " + err.Error()})
		}
		a, err := s.c.WhatIf.Ask(q)
		if err != nil {
			return c.Status(fiber.StatusBadRequest).JSON(fiber.Map{"error": err.Error()})
		}
		return c.JSON(a)
	})
}
