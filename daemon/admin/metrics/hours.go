package metrics

import (
	"time"

	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/admin/timeline"
)

// Began marks the start of the process.
func (m *Metrics) Began(succeeds bool, at time.Time) {
	kind := timeline.Started
	if succeeds {
		kind = timeline.Upgraded
	}
	m.timeline.Mark(timeline.Mark{At: at, Kind: kind, Text: m.version})
}

// Look records how the workers are, for the last hour. Call it about once a second.
func (m *Metrics) Look(pools []*readiness.Pool, now time.Time) {
	var all []timeline.Worker
	for _, p := range pools {
		m.series.models.nameAll(p)
		for _, w := range p.Workers.Stats(now) {
			all = append(all, timeline.Worker{Pool: p.Name, ID: w.ID, State: w.State.String(), Up: w.Up,
				InFlight: w.InFlight + w.Theirs, Queue: w.Wait, KV: w.KVUsage, TTFT: w.TTFT})
		}
	}
	m.timeline.Look(all, now)
}

// Timeline returns how the workers of the last hour were, and what happened.
func (m *Metrics) Timeline() *timeline.Timeline { return &m.timeline }
