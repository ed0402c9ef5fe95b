package operator

import (
	"encoding/json"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/warmpath/warmpath/daemon/admin/readiness"
)

// Drains returns the drains of operators, and the ends of drains, by pool and worker. In an upgrade the new process
// reads them by DrainAgain.
func Drains(pools []*readiness.Pool) []byte {
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
func DrainAgain(pools []*readiness.Pool, drains []byte, log *slog.Logger) {
	var all map[string]map[string]bool
	if len(drains) > 0 {
		if err := json.Unmarshal(drains, &all); err != nil {
			log.Error("what the process before had drained cannot be read: drain it again", "error", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.ContainsFunc(pools, func(p *readiness.Pool) bool { return p.Name == name }) {
			log.Warn("a pool in which the process before had drained workers, or put them back, is not there: drain them "+
				"again where they are to stay out", "pool", name, "workers", slices.Sorted(maps.Keys(all[name])))
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

// Moves are the drains of operators, and the ends of drains, for workers that a reload moves.
type Moves struct {
	asked map[place]bool
	were  map[place]bool // every worker before the reload
}

// place is a worker in a pool.
type place struct{ pool, id, url string }

// MovesFrom returns what holds in the pools before a reload.
func MovesFrom(pools []*readiness.Pool) Moves {
	m := Moves{asked: map[place]bool{}, were: map[place]bool{}}
	for _, p := range pools {
		asked := p.Workers.Drains()
		for _, w := range p.Workers.Stats(time.Now()) {
			at := place{p.Name, w.Endpoint, w.URL}
			m.were[at] = true
			if on, ok := asked[w.Endpoint]; ok {
				m.asked[at] = on
			}
		}
	}
	return m
}

// To repeats the drains at the workers that are new to one of the pools now: the pool has another name, or the worker
// has another pool. The answer to a drain promises that it lasts until undrain or the end of the daemon. A worker that
// was in two pools before, and was drained in one, stays as it was in the other.
func (m Moves) To(pools []*readiness.Pool) {
	if len(m.asked) == 0 {
		return
	}
	for _, p := range pools {
		for _, w := range p.Workers.Stats(time.Now()) {
			at := place{p.Name, w.Endpoint, w.URL}
			if m.were[at] {
				continue
			}
			for from, on := range m.asked {
				if from.id == at.id && from.url == at.url {
					p.Workers.Drain(at.id, on, time.Now())
				}
			}
		}
	}
}

// workerParam returns the id of the request's worker: WORKER in its path, and with ?rank=N that rank of it. A rank's
// own id has a # and must be encoded in a URL, as gpu-1%232.
func workerParam(c *fiber.Ctx) string {
	id, err := url.PathUnescape(c.Params("worker"))
	if err != nil {
		return ""
	}
	if rank := c.Query("rank"); rank != "" {
		return id + "#" + rank
	}
	return id
}
