package operator

import (
	"time"

	"github.com/warmpath/warmpath/cache/holdings"
	"github.com/warmpath/warmpath/cache/kvevents"
	"github.com/warmpath/warmpath/daemon/fleet/feed"
)

// EventsState is the state of a worker's KV events in /api/v1/pools.
type EventsState struct {
	Live     bool      `json:"live"`  // the strategy uses them
	State    string    `json:"state"` // of kvevents.State, or "not believed"
	Since    time.Time `json:"since,omitzero"`
	Why      string    `json:"why,omitempty"`      // why they are not believed
	Problem  string    `json:"problem,omitempty"`  // of the last connection or replay
	Endpoint string    `json:"endpoint,omitempty"` // "" = the worker dials the router
	EventsAt string    `json:"events_at"`          // when the last batch came, or "none since start"
	Lag      float64   `json:"lag_seconds"`        // of the last batch
	Sequence uint64    `json:"next_sequence"`
	Batches  uint64    `json:"batches"`
	Gaps     uint64    `json:"gaps"`
	Replays  uint64    `json:"replays"`
	GPU      int       `json:"gpu_blocks"`
	Local    int       `json:"local_blocks"`  // in the worker's own memory or on its disk
	Orphans  int       `json:"orphan_blocks"` // blocks with an unknown parent
}

// describeEvents returns the state of a worker's events, nil if none are configured.
func describeEvents(p *Pool, id string) *EventsState {
	if p.Events == nil {
		return nil
	}
	e, ok := p.Events.Of(id)
	if !ok {
		return nil
	}
	s := &EventsState{
		Live:     e.Live,
		State:    e.State.String(),
		Since:    e.Since,
		Why:      e.Doubt,
		Problem:  e.Problem,
		Endpoint: e.Endpoint,
		EventsAt: "none since start",
		Lag:      e.Lag.Seconds(),
		Sequence: e.Next,
		Batches:  e.Batches,
		Gaps:     e.Gaps,
		Replays:  e.Replays,
		GPU:      e.Held.Held[holdings.GPU],
		Local:    e.Held.Held[holdings.Local],
		Orphans:  e.Held.Orphans,
	}
	if s.Why != "" {
		s.State = "not believed"
	}
	if !e.LastBatch.IsZero() {
		s.EventsAt = e.LastBatch.UTC().Format(time.RFC3339Nano)
	}
	return s
}

var ofEvents = []reading[feed.Stats]{
	gauge("kv_events_live", "1 while the strategy goes by the worker's KV events.", workerLabels,
		func(e feed.Stats) float64 { return bit(e.Live) }),
	newReading(metric{name: "kv_events_state", help: "1 for the state of the worker's KV events, of never connected, " +
		"replaying, live, partial, behind, gap and connection lost.", kind: isGauge,
		labels: []string{"pool", "worker", "state"}},
		func(e feed.Stats, send func(float64, ...string)) {
			for s := kvevents.Never; s <= kvevents.Lost; s++ {
				send(bit(s == e.State), s.String())
			}
		}),
	total("kv_events_total", "KV events of the worker.", workerLabels,
		func(e feed.Stats) float64 { return float64(e.Events) }),
	total("kv_event_batches_total", "Batches of KV events of the worker that were applied.", workerLabels,
		func(e feed.Stats) float64 { return float64(e.Batches) }),
	total("kv_event_gaps_total", "Times that batches were missing.", workerLabels,
		func(e feed.Stats) float64 { return float64(e.Gaps) }),
	total("kv_event_replays_total", "Replays that the worker answered to the end.", workerLabels,
		func(e feed.Stats) float64 { return float64(e.Replays) }),
	total("kv_event_replays_failed_total", "Replays that the worker did not answer.", workerLabels,
		func(e feed.Stats) float64 { return float64(e.Failed) }),
	total("kv_event_clears_total", "Times that the worker's view was cleared, as it might not hold.", workerLabels,
		func(e feed.Stats) float64 { return float64(e.Clears) }),
	total("kv_events_undecodable_total", "Batches that could not be read.", workerLabels,
		func(e feed.Stats) float64 { return float64(e.Undecodable) }),
	total("kv_events_dropped_total", "Batches that were not applied: a flood, or no event message.", workerLabels,
		func(e feed.Stats) float64 { return float64(e.Dropped) }),
	total("kv_events_skipped_total", "Events that were read and do not concern the index.", workerLabels,
		func(e feed.Stats) float64 { return float64(e.Skipped.Total()) }),
	gauge("kv_events_lag_seconds", "Of the last batch, from the worker's clock when it was published to ours when it "+
		"was applied.", workerLabels, func(e feed.Stats) float64 { return e.Lag.Seconds() }),
	newReading(metric{name: "kv_blocks_held", help: "Blocks that the worker says it holds, by tier: gpu, or local, its " +
		"own memory or disk.", kind: isGauge, labels: []string{"pool", "worker", "tier"}},
		func(e feed.Stats, send func(float64, ...string)) {
			send(float64(e.Held.Held[holdings.GPU]), "gpu")
			send(float64(e.Held.Held[holdings.Local]), "local")
		}),
}
