package daemon

import (
	"net/url"
	"time"

	"github.com/warmpath/warmpath/cache/lmcache"
)

// enroll sets the roster to the workers that the pool has now.
func (p *pool) enroll(now time.Time) {
	if p.roster == nil {
		return
	}
	stats := p.route.Workers.Stats(now)
	all := make([]lmcache.Worker, len(stats))
	for i, s := range stats {
		all[i] = lmcache.Worker{Slot: s.Slot, ID: s.ID}
		if u, err := url.Parse(s.URL); err == nil {
			all[i].Host = u.Hostname()
		}
	}
	p.roster.Set(all)
}
