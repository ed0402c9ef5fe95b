package operator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/admin/strategies"
)

const strategiesPath = "/api/v1/strategies"

// statusOf maps the reasons of refusals to statuses.
var statusOf = map[strategies.Why]int{
	strategies.Unnamed:   fiber.StatusBadRequest,
	strategies.Unknown:   fiber.StatusNotFound,
	strategies.Conflict:  fiber.StatusConflict,
	strategies.BadModule: fiber.StatusUnprocessableEntity,
	strategies.Broken:    fiber.StatusInternalServerError,
}

// refused answers with a refusal of the Store.
func refused(c *fiber.Ctx, err error) error {
	if r, ok := errors.AsType[*strategies.Refusal](err); ok {
		return c.Status(statusOf[r.Why]).JSON(fiber.Map{"error": err.Error()})
	}
	return err
}

// activation is the body of a request that activates a strategy.
type activation struct {
	Strategy string `json:"strategy"`
}

// removed is the answer to the removal of a strategy.
type removed struct {
	Removed string `json:"removed"`
}

// addStrategies adds the routes that upload strategies and activate them.
//
// These need a token on loopback too, where the others do not. They change the code that decides every request, and it
// outlives the process: no restart undoes what a stray program on the machine has done.
func addStrategies(app *fiber.App, store *strategies.Store, process Process, token *bearer) {
	app.Server().HeaderReceived = awaitModule(store, token)
	tokenOnly := func(c *fiber.Ctx) error {
		if !token.exists() {
			return c.Status(fiber.StatusForbidden).JSON(fiber.Map{"error": "strategies are changed with a token only, on " +
				"loopback too; write one of 8 characters or more into a file, name it in server.admin_token_file, and restart"})
		}
		return c.Next()
	}
	app.Get(strategiesPath, func(c *fiber.Ctx) error { return c.JSON(withRefused(store.Strategies(), process.Pools())) })
	app.Put(strategiesPath+"/:name", tokenOnly, func(c *fiber.Ctx) error {
		if n := c.Request().Header.Peek(unread); len(n) > 0 {
			return c.Status(fiber.StatusRequestEntityTooLarge).JSON(fiber.Map{"error": fmt.Sprintf("the module has %s bytes; "+
				"the limit is %d; build it without debug information: -ldflags=-s -w, -O2, --release", n, strategies.MaxBytes)})
		}
		d, err := store.Put(c.Params("name"), bytes.Clone(c.Body()), unquoted(c.Get(fiber.HeaderIfMatch)))
		if err != nil {
			return refused(c, err)
		}
		c.Set(fiber.HeaderETag, `"`+d.SHA256+`"`)
		return c.JSON(d)
	})
	app.Delete(strategiesPath+"/:name", tokenOnly, func(c *fiber.Ctx) error {
		name := strings.Clone(c.Params("name"))
		if err := store.Remove(name); err != nil {
			return refused(c, err)
		}
		return c.JSON(removed{Removed: name})
	})
	app.Put("/api/v1/pools/:pool/strategy", tokenOnly, func(c *fiber.Ctx) error {
		var a activation
		if err := json.Unmarshal(c.Body(), &a); err != nil || a.Strategy == "" {
			return c.Status(fiber.StatusBadRequest).JSON(fiber.Map{"error": `send {"strategy": "NAME"}`})
		}
		now, err := store.Activate(strings.Clone(c.Params("pool")), a.Strategy)
		if err != nil {
			return refused(c, err)
		}
		return c.JSON(now)
	})
	app.Delete("/api/v1/pools/:pool/strategy", tokenOnly, func(c *fiber.Ctx) error {
		now, err := store.Deactivate(strings.Clone(c.Params("pool")))
		if err != nil {
			return refused(c, err)
		}
		return c.JSON(now)
	})
}

// unquoted returns the checksum in an If-Match.
func unquoted(tag string) string { return strings.Trim(strings.TrimPrefix(tag, "W/"), `"`) }

// awaitModule allows the body of a module, which is longer than other bodies here. fasthttp calls it between header and
// body: a client without a token, or with too long a body, gets its answer before the body is read.
func awaitModule(store *strategies.Store, token *bearer) func(*fasthttp.RequestHeader) fasthttp.RequestConfig {
	return func(h *fasthttp.RequestHeader) (c fasthttp.RequestConfig) {
		if string(h.Method()) != fiber.MethodPut || !bytes.HasPrefix(h.RequestURI(), []byte(strategiesPath+"/")) {
			return c
		}
		if n := h.ContentLength(); n > strategies.MaxBytes || n != 0 && !token.in(h) {
			leaveUnread(h, fmt.Sprint(n))
		}
		c.MaxRequestBodySize = strategies.MaxBytes
		return c
	}
}

// withRefused adds to each strategy, for each pool that it serves, which of its calls allow does not permit.
func withRefused(all []strategies.Strategy, pools []*readiness.Pool) []strategies.Strategy {
	for i := range all {
		for k := range all[i].Serves {
			to := &all[i].Serves[k]
			for _, p := range pools {
				for _, s := range p.Strategies() {
					if p.Name == to.Pool && s.Name() == all[i].Name {
						to.Refused = s.Stats().Refused
					}
				}
			}
		}
	}
	return all
}
