package operator

import (
	"github.com/gofiber/fiber/v2"

	"github.com/warmpath/warmpath/daemon/admin/metrics"
	"github.com/warmpath/warmpath/daemon/request/limit"
)

// keysPage answers GET /api/v1/keys.
func keysPage(c *fiber.Ctx, m *metrics.Metrics, limits []limit.Stats) error {
	all, err := m.Keys(limits)
	if err != nil {
		return err
	}
	return c.JSON(all)
}
