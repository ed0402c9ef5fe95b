package daemon

import "time"

// PoolState is what /ready and /api/v1/pools say of a pool. Workers are named by id, never by URL.
type PoolState struct {
	Name       string        `json:"name"`
	Strategy   string        `json:"strategy"`
	Module     string        `json:"module_sha256"`
	Quarantine bool          `json:"module_quarantined"`
	View       string        `json:"view"` // where match counts come from
	Up         int           `json:"up"`
	Workers    []WorkerState `json:"workers"`
}

// WorkerState is one worker's.
type WorkerState struct {
	ID        string   `json:"id"`
	State     string   `json:"state"`
	Why       string   `json:"why,omitempty"` // it is ejected or draining
	Breaker   string   `json:"breaker"`
	Limit     int      `json:"max_in_flight,omitempty"`
	InFlight  int      `json:"in_flight"`
	Running   int      `json:"running"`
	Waiting   int      `json:"waiting"`
	KVUsage   float64  `json:"kv_usage"`
	KVTokens  int      `json:"kv_tokens"`
	Slowness  float64  `json:"slowness"`
	Models    []string `json:"models"`
	LastError string   `json:"last_error,omitempty"`
}

func (d *Daemon) describe() []PoolState {
	now := time.Now()
	var out []PoolState
	for _, p := range d.state.Load().pools {
		s := PoolState{Name: p.name, View: "routed history", Up: p.workers.Up(now)}
		if st := p.strategy.Strategy(); st != nil {
			s.Strategy, s.Module, s.Quarantine = st.Name(), st.SHA256(), st.Stats().Quarantined
		}
		for _, w := range p.workers.Stats(now) {
			s.Workers = append(s.Workers, WorkerState{w.ID, w.State, w.Why, w.Breaker, w.Limit, w.InFlight, w.Running, w.Waiting, w.KVUsage, w.Capacity, w.Slow,
				w.Models, w.LastError})
		}
		out = append(out, s)
	}
	return out
}

// PoolBrief is what a client may know of a pool.
type PoolBrief struct {
	Name     string `json:"name"`
	Strategy string `json:"strategy"`
	View     string `json:"view"`
	Up       int    `json:"up"`
	Workers  int    `json:"workers"`
}

func (d *Daemon) brief() []PoolBrief {
	var out []PoolBrief
	for _, p := range d.describe() {
		out = append(out, PoolBrief{p.Name, p.Strategy, p.View, p.Up, len(p.Workers)})
	}
	return out
}
