package operator

import (
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// Drains returns the drains of operators, and the ends of drains, by pool and worker. In an upgrade the new process
// reads them by DrainAgain.
func Drains(pools []*Pool) []byte {
	all := map[string]map[string]bool{}
	for _, p := range pools {
		if asked := p.Workers.Drains(); len(asked) > 0 {
			all[p.Name] = asked
		}
	}
	text, _ := json.Marshal(all) // of a map of maps, which cannot fail
	return text
}

// DrainAgain repeats the drains, and ends of drains, that Drains returned in the process before. It warns of an unknown
// worker: it is no longer configured, or it is a rank whose metrics have not been read yet.
func DrainAgain(pools []*Pool, drains []byte, log *slog.Logger) {
	var all map[string]map[string]bool
	if len(drains) > 0 {
		if err := json.Unmarshal(drains, &all); err != nil {
			log.Error("what the process before had drained cannot be read: drain it again", "error", err)
		}
	}
	for _, p := range pools {
		for _, id := range slices.Sorted(maps.Keys(all[p.Name])) {
			if !p.Workers.Drain(id, all[p.Name][id], time.Now()) {
				log.Warn("a worker that the process before had drained, or put back, is not known here: drain it again if "+
					"it is to stay out", "pool", p.Name, "worker", id)
			}
		}
	}
}
