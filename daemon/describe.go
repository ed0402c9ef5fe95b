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
	WhyNot     string        `json:"why_not,omitempty"` // it cannot serve, or only as panics says
	Panics     bool          `json:"panics,omitempty"`  // its requests go to workers that are not up (panic = true)
	Workers    []WorkerState `json:"workers"`
}

// WorkerState is one worker's.
type WorkerState struct {
	ID        string    `json:"id"`
	State     string    `json:"state"`
	Since     time.Time `json:"since"`         // when it became that
	Why       string    `json:"why,omitempty"` // it is ejected or draining
	Breaker   string    `json:"breaker"`
	Limit     int       `json:"max_in_flight,omitempty"`
	InFlight  int       `json:"in_flight"`
	Running   int       `json:"running"`
	Waiting   int       `json:"waiting"`
	KVUsage   float64   `json:"kv_usage"`
	KVTokens  int       `json:"kv_tokens"`
	Slowness  float64   `json:"slowness"`
	Models    []string  `json:"models"`
	LastError string    `json:"last_error,omitempty"`
	ErrorAt   time.Time `json:"last_error_at,omitzero"`
	ErrorOver bool      `json:"last_error_over,omitempty"` // it is up again, or what found the error has found none since
}

func (d *Daemon) describe() []PoolState {
	now := time.Now()
	var out []PoolState
	for _, p := range d.state.Load().pools {
		stats := p.workers.Stats(now)
		s := PoolState{Name: p.name, View: "routed history", Up: p.workers.Up(now), WhyNot: p.whyNot(stats)}
		if s.WhyNot == whyEmpty && p.panics(stats) {
			s.WhyNot, s.Panics = whyPanics, true
		}
		if st := p.strategy.Strategy(); st != nil {
			s.Strategy, s.Module, s.Quarantine = st.Name(), st.SHA256(), st.Stats().Quarantined
		}
		for _, w := range stats {
			s.Workers = append(s.Workers, WorkerState{ID: w.ID, State: w.State.String(), Since: w.Since, Why: w.Why, Breaker: w.Breaker.String(), Limit: w.Limit,
				InFlight: w.InFlight, Running: w.Running, Waiting: w.Waiting, KVUsage: w.KVUsage, KVTokens: w.Capacity, Slowness: w.Slow,
				Models: w.Models, LastError: w.LastError, ErrorAt: w.LastErrorAt, ErrorOver: w.ErrorOver})
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
	Ready    bool   `json:"ready"`
	WhyNot   string `json:"why_not,omitempty"` // also of a pool that is ready by panic = true alone
}

func (d *Daemon) brief() []PoolBrief {
	var out []PoolBrief
	for _, p := range d.describe() {
		out = append(out, PoolBrief{Name: p.Name, Strategy: p.Strategy, View: p.View, Up: p.Up, Workers: len(p.Workers),
			Ready: p.WhyNot == "" || p.Panics, WhyNot: p.WhyNot})
	}
	return out
}
