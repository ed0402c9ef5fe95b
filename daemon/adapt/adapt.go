// Package adapt says what the configuration means for the rooms under daemon: one function for each, from conf's
// words to the room's own. It is there so that the root, which wires, stays short enough to read; it keeps nothing and
// starts nothing.
package adapt

import (
	"crypto/tls"
	"fmt"
	"log/slog"

	"github.com/warmpath/warmpath/cache/lmcache"
	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/feed"
	"github.com/warmpath/warmpath/daemon/probe"
	"github.com/warmpath/warmpath/daemon/route"
	"github.com/warmpath/warmpath/daemon/upstream"
	"github.com/warmpath/warmpath/daemon/worker"
)

// Specs are a pool's workers.
func Specs(c *conf.Pool) []worker.Spec {
	s := make([]worker.Spec, len(c.Workers))
	for i, w := range c.Workers {
		s[i] = worker.Spec{ID: w.ID, URL: w.URL, MetricsURL: w.MetricsURL, KVTokens: w.KVTokens, CPUTokens: w.CPUTokens,
			Weight: w.Weight, Cost: w.Cost, Labels: w.Labels, DataParallel: w.DataParallel}
	}
	return s
}

// Origins is where a pool's workers publish KV events, by their ids.
func Origins(c *conf.Pool) map[string]feed.Origin {
	all := make(map[string]feed.Origin, len(c.Workers))
	for i := range c.Workers {
		w := &c.Workers[i]
		events, replay := c.Events(w)
		all[w.ID] = feed.Origin{URL: w.URL, Events: events, Replay: replay}
	}
	return all
}

// Tiers is what lies below the GPUs of a pool's workers.
func Tiers(c *conf.Pool) route.Tiers {
	return route.Tiers{SharedTokens: c.SharedTokens, L1Rate: c.CPURate, L2Rate: c.SharedRate}
}

// Clients makes a client for each worker of a pool, by its URL. t is for those with https.
func Clients(c *conf.Pool, t *tls.Config) (map[string]*upstream.Client, error) {
	clients := make(map[string]*upstream.Client, len(c.Workers))
	for _, w := range c.Workers {
		u, err := upstream.New(upstream.Config{URL: w.URL, ConnectTimeout: c.ConnectTimeout,
			HeaderTimeout: c.HeaderTimeout, ChunkTimeout: c.StreamTimeout, TLS: t})
		if err != nil {
			return nil, fmt.Errorf("daemon: pool %q, worker %q: %w", c.Name, w.ID, err)
		}
		clients[w.URL] = u
	}
	return clients, nil
}

// LMCache is the controller of the workers' LMCache; on is false if none is configured.
func LMCache(c *conf.LMCache, log *slog.Logger) (l lmcache.Config, on bool) {
	return lmcache.Config{Pull: c.Pull, Reply: c.Reply, Heartbeat: c.Heartbeat, Advertise: c.Advertise,
		Coordinator: c.Coordinator, Hash: c.Hash, ChunkSize: c.ChunkSize, Seed: uint32(c.HashSeed), Instances: c.Instances,
		Log: log}, c.On()
}

// Questions is how a pool's workers are asked, with the API key that they want.
func Questions(c *conf.Pool, key string, t *tls.Config) probe.Config {
	return probe.Config{HealthInterval: c.HealthInterval, ScrapeInterval: c.ScrapeInterval, Key: key, TLS: t}
}
