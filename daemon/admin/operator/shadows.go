package operator

import (
	"github.com/gofiber/fiber/v2"

	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/admin/strategies"
)

// PoolShadows holds the reports of a pool's shadows.
type PoolShadows struct {
	Pool    string              `json:"pool"`
	Serving string              `json:"strategy"` // the serving strategy, which they are compared with
	Dropped uint64              `json:"dropped"`  // requests that they were too slow for
	Shadows []strategies.Report `json:"shadows"`
}

// shadowsPage answers with the pools that have shadows.
func shadowsPage(c *fiber.Ctx, pools []*readiness.Pool) error {
	all := []PoolShadows{}
	for _, p := range pools {
		if p.Shadows == nil {
			continue
		}
		one := PoolShadows{Pool: p.Name}
		one.Shadows, one.Dropped = p.Shadows.Reports()
		if s := p.Strategy.Strategy(); s != nil {
			one.Serving = s.Name()
		}
		if len(one.Shadows) > 0 {
			all = append(all, one)
		}
	}
	return c.JSON(all)
}
