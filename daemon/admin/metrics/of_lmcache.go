package metrics

import (
	"strings"

	"github.com/warmpath/warmpath/cache/lmcache"
)

// locations are the labels of places that hold chunks. Their names come from the network; any other name is "other".
var locations = []string{"LocalCPUBackend", "LocalDiskBackend", "RemoteBackend", "l1", "l2"}

// locationLabel returns the label of a location. Those of servers are l1/ or l2/ and a backend's name.
func locationLabel(name string) string {
	for _, l := range locations {
		if name == l || strings.HasPrefix(name, l+"/") {
			return l
		}
	}
	return "other"
}

// ofLMCache has no values where no controller is configured.
var ofLMCache = []reading[lmcache.Stats]{
	newReading(metric{name: "lmcache_instances", help: "LMCache instances by state: live, registered, silent " +
		"(registered and nothing since), hash unknown, silent, conflict, flooded, unstable.", kind: isGauge,
		labels: []string{"state"}},
		func(s lmcache.Stats, send func(float64, ...string)) {
			states := map[string]float64{"live": 0}
			for _, i := range s.Instances {
				states[i.State]++
			}
			for state, n := range states {
				send(n, state)
			}
		}),
	newReading(metric{name: "lmcache_keys", help: "Chunks that LMCache instances hold by location.", kind: isGauge,
		labels: []string{"location"}},
		func(s lmcache.Stats, send func(float64, ...string)) {
			keys := map[string]float64{"LocalCPUBackend": 0}
			for _, i := range s.Instances {
				for name, n := range i.Keys {
					keys[locationLabel(name)] += float64(n)
				}
			}
			for name, n := range keys {
				send(n, name)
			}
		}),
	newReading(metric{name: "lmcache_events_total", help: "What LMCache's workers and servers reported, by kind, and " +
		"what was made of it: gap, refused, flooded, conflict, unstable and silent are troubles; store_lost are chunks " +
		"that the KV cache here lost, store_cleared that they were too many to report.", kind: isCounter,
		labels: []string{"event"}},
		func(s lmcache.Stats, send func(float64, ...string)) {
			for event, n := range LMCacheEvents(&s.Counts) {
				send(float64(n), event)
			}
		}),
}

// LMCacheEvents returns counts by kind, as the label event of lmcache_events_total has them.
func LMCacheEvents(c *lmcache.Counts) map[string]uint64 {
	return map[string]uint64{
		"registered": c.Registered, "deregistered": c.Deregistered, "admit": c.Admits, "evict": c.Evicts,
		"gap": c.Gaps, "sync_asked": c.SyncsAsked, "sync": c.Syncs, "refused": c.Refused, "flooded": c.Flooded,
		"conflict": c.Conflicts, "unstable": c.Unstable, "silent": c.Lost,
		"batch": c.Events, "duplicate": c.Duplicates, "stale": c.StaleEvents,
		"store_lost": c.StoreLost, "store_cleared": c.StoreCleared,
	}
}
