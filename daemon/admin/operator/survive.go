package operator

import (
	"log/slog"
	"runtime/debug"

	"github.com/gofiber/fiber/v2"
)

// surviving answers 500 when a handler panics. Without it, a fault in a page would end the process, and with it the
// clients' requests.
func surviving(log *slog.Logger) fiber.Handler {
	return func(c *fiber.Ctx) (err error) {
		defer func() {
			if p := recover(); p != nil {
				log.Error("BUG: a request at server.admin made the daemon panic", "panic", p, "path", c.Path(),
					"stack", string(debug.Stack()))
				err = c.Status(fiber.StatusInternalServerError).JSON(fiber.Map{
					"error": "the daemon made a mistake; its log has the reason"})
			}
		}()
		return c.Next()
	}
}
