package operator

import (
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// Drains returns what operators have drained and put back, by pool and worker. The process that takes this one's place
// reads it by DrainAgain.
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

// DrainAgain drains, and puts back, what Drains returned in the process before. It warns of a worker that is not known:
// it is not configured any more, or it is a rank that has not shown itself yet.
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
