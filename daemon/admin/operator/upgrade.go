package operator

import (
	"fmt"
	"time"

	"github.com/gofiber/fiber/v2"
)

// The longest time for a new process, and its time unless the request sets another.
const maxUpgradeTime, upgradeTime = 10 * time.Minute, time.Minute

// upgraded is the answer to an upgrade.
type upgraded struct {
	PID int `json:"pid"` // of the new process, which already serves
}

// upgradePage starts a new process that takes over, and answers with its pid.
func upgradePage(p Process) fiber.Handler {
	return func(c *fiber.Ctx) error {
		wait := upgradeTime
		if q := c.Query("timeout"); q != "" {
			var err error
			wait, err = time.ParseDuration(q)
			if err != nil || wait <= 0 || wait > maxUpgradeTime {
				return c.Status(fiber.StatusBadRequest).JSON(fiber.Map{
					"error": fmt.Sprintf("timeout is a time up to %v, as 90s", maxUpgradeTime)})
			}
		}
		pid, err := p.Upgrade(wait)
		if err != nil {
			return c.Status(fiber.StatusConflict).JSON(fiber.Map{"error": err.Error()})
		}
		c.Context().SetConnectionClose()
		return c.JSON(upgraded{PID: pid})
	}
}

// closing ends each connection with its answer once the process drains, as another process may listen here.
func closing(p Process) fiber.Handler {
	return func(c *fiber.Ctx) error {
		err := c.Next()
		if p.Draining() {
			c.Context().SetConnectionClose()
		}
		return err
	}
}
