package operator

import (
	"time"

	"github.com/warmpath/warmpath/cache/holdings"
	"github.com/warmpath/warmpath/daemon/admin/readiness"
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
func describeEvents(p *readiness.Pool, id string) *EventsState {
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
