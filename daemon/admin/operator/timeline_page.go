package operator

import (
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/warmpath/warmpath/daemon/admin/timeline"
)

// LastHour is the answer of /api/v1/timeline: the last hour of one pool, or of all together.
type LastHour struct {
	Step   float64          `json:"step_seconds"` // length of a span
	Spans  []Span           `json:"spans"`        // requests, the oldest first
	Load   []timeline.Point `json:"load"`         // of the same spans
	Marks  []timeline.Mark  `json:"events"`
	Curves []timeline.Curve `json:"workers,omitempty"` // with curves=1, of the same spans
}

// began marks the start of the process.
func (m *Metrics) began(succeeds bool, at time.Time) {
	kind := timeline.Started
	if succeeds {
		kind = timeline.Upgraded
	}
	m.timeline.Mark(timeline.Mark{At: at, Kind: kind, Text: m.version})
}

// Look records how the workers are, for the last hour. Call it about once a second.
func (m *Metrics) Look(pools []*Pool, now time.Time) {
	var all []timeline.Worker
	for _, p := range pools {
		m.series.models.nameAll(p)
		for _, w := range p.Workers.Stats(now) {
			all = append(all, timeline.Worker{Pool: p.Name, ID: w.ID, State: w.State.String(), Up: w.Up,
				InFlight: w.InFlight + w.Theirs, Queue: w.Wait, KV: w.KVUsage, TTFT: w.TTFT})
		}
	}
	m.timeline.Look(all, now)
}

// timelinePage answers GET /api/v1/timeline?pool=P&curves=1&with=POOL%20WORKER.
func timelinePage(c *fiber.Ctx, all []*Pool, m *Metrics) error {
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
	out := LastHour{Step: timeline.Step.Seconds(), Spans: m.recent.Hour(now, pools...),
		Load: m.timeline.Load(pools, now), Marks: m.timeline.Marks(pools, now)}
	if c.Query("curves") == "1" {
		with := c.Context().QueryArgs().PeekMulti("with")
		out.Curves = m.timeline.Curves(pools, func(pool, worker string) bool {
			return len(with) == 0 || named(with, pool, worker)
		}, now)
	}
	return c.JSON(out)
}
