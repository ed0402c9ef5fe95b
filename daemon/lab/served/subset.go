package served

import (
	"fmt"
	"slices"

	"github.com/warmpath/warmpath/daemon/fleet/subset"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/world"
)

// Subset returns the numbers of the workers that a router of a run uses, if each router uses size of them. For size 0
// it returns nil: the router uses all.
func Subset(size int, c *world.Config, router int) map[int]bool {
	if size == 0 {
		return nil
	}
	keys := func(kind string, n int) []uint64 {
		all := make([]uint64, n)
		for i := range all {
			all[i] = worker.KeyOf(fmt.Sprint(kind, i))
		}
		return all
	}
	own := map[int]bool{}
	for i, of := range subset.Assign(keys("router-", c.Routers), keys("w", c.Workers), size) {
		if slices.Contains(of, router) {
			own[i] = true
		}
	}
	return own
}
