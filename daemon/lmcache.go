package daemon

import (
	"log/slog"
	"net/url"
	"time"

	"github.com/warmpath/warmpath/cache/lmcache"
	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/adapt"
)

// newLMCache starts the controller of the workers' LMCache. It is nil, which does nothing, if none is configured.
func newLMCache(c *conf.LMCache, bind adapt.Binder, log *slog.Logger) (*lmcache.Controller, error) {
	l, on := adapt.LMCache(c, bind, log)
	if !on {
		return nil, nil
	}
	return lmcache.New(l)
}

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
