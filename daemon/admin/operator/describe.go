package operator

import (
	"fmt"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/waiting"
)

// PoolState is a pool in the answers of /ready and /api/v1/pools. Workers are named by id, never by URL.
type PoolState struct {
	Name       string         `json:"name"`
	Strategy   string         `json:"strategy"`
	Module     string         `json:"module_sha256"`
	Quarantine bool           `json:"module_quarantined"`
	View       string         `json:"view"` // where match counts come from
	Up         int            `json:"up"`
	WhyNot     string         `json:"why_not,omitempty"`          // why it cannot serve, or serves by panics alone
	Panics     bool           `json:"panics,omitempty"`           // requests go to workers that are down (panic = true)
	Rests      string         `json:"rests,omitempty"`            // no worker is up; so long requests wait for one
	Aliases    []string       `json:"aliases,omitempty"`          // "NAME leads to MODEL", which is one of its models
	Astray     []string       `json:"aliases_astray,omitempty"`   // "NAME leads to MODEL", which no worker lists
	ShutOut    []string       `json:"keys_shut_out,omitempty"`    // "KEY: WORKERS", none of which is up
	Unloaded   []string       `json:"adapters_refused,omitempty"` // "ADAPTER by WORKER", in the last minute
	Unwoken    string         `json:"wake_url_fails,omitempty"`   // why wake_url did not take the last call
	Canaries   []string       `json:"canaries,omitempty"`         // strategies that serve a part, and which
	Workers    []WorkerState  `json:"workers"`
	Queue      *waiting.State `json:"queue,omitempty"`         // what waits in the router; absent = nothing does
	Breaks     []route.Break  `json:"prefix_breaks,omitempty"` // where its prompts change from turn to turn
}

// WorkerState is one worker of a PoolState.
type WorkerState struct {
	ID        string            `json:"id"`
	Endpoint  string            `json:"endpoint,omitempty"`           // of a data-parallel rank: the configured id
	Rank      *int              `json:"data_parallel_rank,omitempty"` // the same
	State     string            `json:"state"`
	Since     time.Time         `json:"since"`             // when it entered the state
	Why       string            `json:"why,omitempty"`     // why it is ejected or draining, or was drained and is not up
	Drained   bool              `json:"drained,omitempty"` // an operator drained it, whatever its state
	Breaker   string            `json:"breaker"`
	Limit     int               `json:"max_in_flight,omitempty"`
	InFlight  int               `json:"in_flight"`
	Others    int               `json:"others_in_flight,omitempty"` // of other routers; max_in_flight counts them too
	Queue     float64           `json:"queue_seconds"`              // estimated prefill queue
	TTFT      float64           `json:"ttft_seconds"`               // running mean; 0 = none seen
	TPOT      float64           `json:"tpot_seconds"`               // between two output tokens; 0 = none seen
	Load      float64           `json:"load"`                       // seconds of prefill sent to it per second
	Hits      float64           `json:"hit_rate"`                   // by its own counters; -1 = it reports none
	Running   int               `json:"running"`
	Waiting   int               `json:"waiting"`
	KVUsage   float64           `json:"kv_usage"`
	Preempted uint64            `json:"preempted"` // requests that its engine put back for want of KV
	KVTokens  int               `json:"kv_tokens"`
	Restarts  uint64            `json:"restarts"`              // new processes that this router has seen
	Lately    int               `json:"restarts_of_late"`      // of these, in the last five minutes
	Restarted time.Time         `json:"restarted_at,omitzero"` // for the last time
	Slowness  float64           `json:"slowness"`
	Models    []string          `json:"models"`
	Labels    map[string]string `json:"labels,omitempty"`
	LastError string            `json:"last_error,omitempty"`
	ErrorAt   time.Time         `json:"last_error_at,omitzero"`
	Events    *EventsState      `json:"kv_events,omitempty"`       // absent = none are configured
	ErrorOver bool              `json:"last_error_over,omitempty"` // it is up again, or none was found since
}

// Describe returns the state of each pool.
func Describe(pools []*Pool) (all []PoolState) {
	now := time.Now()
	for _, p := range pools {
		live := 0
		stats := p.Workers.Stats(now)
		s := PoolState{Name: p.Name, View: "routed history", Up: p.Workers.Up(now), Workers: []WorkerState{},
			Queue: p.Queue.State(shownFlows), Breaks: p.Breaks()}
		s.WhyNot, s.Panics = p.verdict(stats)
		if p.rests(now) {
			s.Rests = p.Holds.String()
		}
		s.Canaries, s.Astray = p.CanaryNames(), p.astray(stats)
		for _, a := range p.Aliases {
			s.Aliases = append(s.Aliases, a.String())
		}
		s.ShutOut, s.Unloaded, s.Unwoken = p.shutOut(stats), p.Unloaded, p.Unwoken
		if st := p.Strategy.Strategy(); st != nil {
			s.Strategy = st.Name()
			s.Module = st.SHA256()
			s.Quarantine = st.Stats().Quarantined
		}
		for _, w := range stats {
			s.Workers = append(s.Workers, describeWorker(w, now))
			e := describeEvents(p, w.ID)
			s.Workers[len(s.Workers)-1].Events = e
			if e != nil && e.Live {
				live++
			}
		}
		if live > 0 {
			s.View = fmt.Sprintf("KV events of %d of %d workers, else routed history", live, len(stats))
		}
		all = append(all, s)
	}
	return all
}

func describeWorker(w worker.Stats, now time.Time) WorkerState {
	s := WorkerState{
		ID:        w.ID,
		State:     w.State.String(),
		Since:     w.Since,
		Why:       w.Why,
		Drained:   w.Drained,
		Breaker:   w.Breaker.String(),
		Limit:     w.Limit,
		InFlight:  w.InFlight,
		Others:    w.Theirs,
		Queue:     w.Wait,
		TTFT:      w.TTFT,
		TPOT:      w.TPOT,
		Load:      w.Load,
		Hits:      hitRate(w),
		Running:   w.Running,
		Waiting:   w.Waiting,
		KVUsage:   w.KVUsage,
		Preempted: w.Preempts,
		KVTokens:  w.Capacity,
		Restarts:  w.Restarts,
		Lately:    w.Lately,
		Slowness:  w.Slow,
		Models:    w.Models,
		Labels:    w.Labels,
		LastError: w.LastError,
		ErrorAt:   w.LastErrorAt,
		ErrorOver: w.ErrorOver,
	}
	if w.State == worker.Ready && w.Full {
		s.State = worker.Full.String()
	}
	if w.Restarts > 0 {
		s.Restarted = now.Add(-w.Restarted)
	}
	if w.Ranks > 1 {
		s.Endpoint, s.Rank = w.Endpoint, &w.Rank
	}
	return s
}

// hitRate returns the hit rate of a worker's prefix cache by its own counters.
func hitRate(w worker.Stats) float64 {
	if w.PrefixQueries == 0 {
		return -1
	}
	return float64(w.PrefixHits) / float64(w.PrefixQueries)
}

// PoolBrief is the part of a pool's state that clients may see.
type PoolBrief struct {
	Name     string `json:"name"`
	Strategy string `json:"strategy"`
	View     string `json:"view"`
	Up       int    `json:"up"`
	Workers  int    `json:"workers"`
	Ready    bool   `json:"ready"`
	WhyNot   string `json:"why_not,omitempty"` // also set for a pool that is ready by panic = true alone
}

// readyState is the answer of /ready.
type readyState struct {
	Ready    bool        `json:"ready"`
	Draining bool        `json:"draining"`
	Pools    []PoolBrief `json:"pools"`
}

func briefly(pools []*Pool) (all []PoolBrief) {
	for _, p := range Describe(pools) {
		all = append(all, PoolBrief{
			Name:     p.Name,
			Strategy: p.Strategy,
			View:     p.View,
			Up:       p.Up,
			Workers:  len(p.Workers),
			Ready:    p.WhyNot == "" || p.Panics,
			WhyNot:   p.WhyNot,
		})
	}
	return all
}

// Readiness returns the answer of /ready. The process is ready while it does not drain and at least one pool can serve.
// The answer names a pool that cannot serve with its reason, and the process stays ready: otherwise a load balancer
// would take all models away because one is missing.
func Readiness(pools []*Pool, draining bool) (ready bool, page any) {
	list := briefly(pools)
	for _, p := range list {
		if !draining && (p.Ready || p.WhyNot == WhyUnfit) { // a request that names such a pool as its endpoint is served
			ready = true
		}
	}
	return ready, readyState{Ready: ready, Draining: draining, Pools: list}
}
