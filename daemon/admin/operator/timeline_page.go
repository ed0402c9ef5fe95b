package operator

import (
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/warmpath/warmpath/daemon/admin/metrics"
	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/admin/timeline"
)

// LastHour is the answer of /api/v1/timeline: the last hour of one pool, or of all together.
type LastHour struct {
	Step   float64          `json:"step_seconds"` // length of a span
	Spans  []metrics.Span   `json:"spans"`        // requests, the oldest first
	Load   []timeline.Point `json:"load"`         // of the same spans
	Marks  []timeline.Mark  `json:"events"`
	Curves []timeline.Curve `json:"workers,omitempty"` // with curves=1, of the same spans
}

// timelinePage answers GET /api/v1/timeline?pool=P&curves=1&with=POOL%20WORKER.
func timelinePage(c *fiber.Ctx, all []*readiness.Pool, m *metrics.Metrics) error {
	var pools []string
	for _, p := range all {
		pools = append(pools, p.Name)
	}
	if one := c.Query("pool"); one != "" {
		if !slices.Contains(pools, one) {
			return c.Status(fiber.StatusNotFound).JSON(fiber.Map{"error": "there is no such pool; /api/v1/pools lists them"})
		}
		pools = []string{one}
	}
	now := time.Now()
	out := LastHour{Step: timeline.Step.Seconds(), Spans: m.Recent().Hour(now, pools...),
		Load: m.Timeline().Load(pools, now), Marks: m.Timeline().Marks(pools, now)}
	if c.Query("curves") == "1" {
		with := c.Context().QueryArgs().PeekMulti("with")
		out.Curves = m.Timeline().Curves(pools, func(pool, worker string) bool {
			return len(with) == 0 || named(with, pool, worker)
		}, now)
	}
	return c.JSON(out)
}
