package operator

import (
	"github.com/gofiber/fiber/v2"

	"github.com/warmpath/warmpath/cache/lmcache"
	"github.com/warmpath/warmpath/daemon/admin/metrics"
)

// lmcacheState is the answer of /api/v1/lmcache.
type lmcacheState struct {
	On        bool                    `json:"on"`
	Instances []lmcache.InstanceStats `json:"instances"`
	Events    map[string]uint64       `json:"events"` // by kind
}

// lmcachePage answers with the known LMCache instances.
func lmcachePage(c *fiber.Ctx, s lmcache.Stats) error {
	all := append([]lmcache.InstanceStats{}, s.Instances...)
	return c.JSON(lmcacheState{On: s.On, Instances: all, Events: metrics.LMCacheEvents(&s.Counts)})
}
