package operator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/fleet/subset"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/waiting"
)

// PoolState is a pool in the answers of /ready and /api/v1/pools. Workers are named by id, never by URL.
type PoolState struct {
	Name       string        `json:"name"`
	Strategy   string        `json:"strategy"`
	Module     string        `json:"module_sha256"`
	Quarantine bool          `json:"module_quarantined"`
	View       string        `json:"view"` // where match counts come from
	Up         int           `json:"up"`
	Failing    string        `json:"source_error,omitempty"`     // why a source of its workers has no answer now
	WhyNot     string        `json:"why_not,omitempty"`          // why it cannot serve, or serves by panics alone
	Panics     bool          `json:"panics,omitempty"`           // requests go to workers that are down (panic = true)
	Rests      string        `json:"rests,omitempty"`            // no worker is up; so long requests wait for one
	Aliases    []string      `json:"aliases,omitempty"`          // "NAME leads to MODEL", which is one of its models
	Astray     []string      `json:"aliases_astray,omitempty"`   // "NAME leads to MODEL", which no worker lists
	ShutOut    []string      `json:"keys_shut_out,omitempty"`    // "KEY: WORKERS", none of which is up
	Unloaded   []string      `json:"adapters_refused,omitempty"` // "ADAPTER by WORKER", in the last minute
	Unwoken    string        `json:"wake_url_fails,omitempty"`   // why wake_url did not take the last call
	Canaries   []string      `json:"canaries,omitempty"`         // strategies that serve a part, and which
	Moves      string        `json:"moves,omitempty"`            // of conversations: what moves, and what it was worth
	Subset     *subset.State `json:"subset,omitempty"`           // which of the workers this router uses; absent = all
	Workers    []WorkerState `json:"workers"`
	Summary
	Queue  *waiting.State `json:"queue,omitempty"`         // what waits in the router; absent = nothing does
	Breaks []route.Break  `json:"prefix_breaks,omitempty"` // where its prompts change from turn to turn

	astray []readiness.Alias // those of Astray
	loads  bool              // the router has its workers load adapters
}

// WorkerState is one worker of a PoolState.
type WorkerState struct {
	ID        string            `json:"id"`
	Endpoint  string            `json:"endpoint,omitempty"`           // of a data-parallel rank: the configured id
	Rank      *int              `json:"data_parallel_rank,omitempty"` // the same
	State     string            `json:"state"`
	Since     time.Time         `json:"since"`               // when it entered the state
	Why       string            `json:"why,omitempty"`       // why it is ejected or draining, or was drained and is not up
	Drained   bool              `json:"drained,omitempty"`   // an operator drained it, whatever its state
	Forgotten bool              `json:"forgotten,omitempty"` // it has been paused for longer than pause_max
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
	Weights   string            `json:"weights,omitempty"`    // version of its weights; absent = not known
	KVWeights string            `json:"kv_weights,omitempty"` // an older one: its KV cache has blocks from it on
	Origin    string            `json:"origin,omitempty"`     // the kind of source that gave it
	LastError string            `json:"last_error,omitempty"`
	ErrorAt   time.Time         `json:"last_error_at,omitzero"`
	Events    *EventsState      `json:"kv_events,omitempty"`       // absent = none are configured
	ErrorOver bool              `json:"last_error_over,omitempty"` // it is up again, or none was found since
}

// Describe returns the state of each pool.
func Describe(pools []*readiness.Pool) (all []PoolState) {
	now := time.Now()
	for _, p := range pools {
		live := 0
		stats := p.Workers.Stats(now)
		s := PoolState{Name: p.Name, View: "routed history", Workers: []WorkerState{},
			Queue: p.Queue.State(shownFlows), Breaks: p.Breaks()}
		s.WhyNot, s.Panics = p.Verdict(stats)
		if p.Rests(now) {
			s.Rests = cmp.Or(p.Holds, p.Header).String()
		}
		s.Canaries, s.astray, s.loads, s.Moves = p.CanaryNames(), p.Astray(stats), p.Refuses != nil, p.Moves()
		s.Aliases, s.Astray = readiness.InWords(p.Aliases), readiness.InWords(s.astray)
		s.ShutOut, s.Unloaded, s.Unwoken, s.Failing = p.ShutOut(stats), p.Unloaded, p.Unwoken, p.Failing
		if st := p.Strategy.Strategy(); st != nil {
			s.Strategy = st.Name()
			s.Module = st.SHA256()
			s.Quarantine = st.Stats().Quarantined
		}
		for _, w := range stats {
			if w.Up {
				s.Up++
			}
			s.Workers = append(s.Workers, describeWorker(w, now))
			e := describeEvents(p, w.ID)
			last := &s.Workers[len(s.Workers)-1]
			last.Events = e
			if p.Origin != nil {
				last.Origin = p.Origin(w.URL)
			}
			if e != nil && e.Live {
				live++
			}
		}
		if p.Subset != nil {
			s.Subset = p.Subset()
		}
		s.addOutside()
		if live > 0 {
			s.View = fmt.Sprintf("KV events of %d of %d workers, else routed history", live, len(stats))
		}
		s.Summarize()
		all = append(all, s)
	}
	return all
}

// Outside is the state of a worker that this router does not use.
const Outside = "outside of the subset"

// addOutside adds the workers that the router does not use.
func (s *PoolState) addOutside() {
	if s.Subset == nil {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(s.Subset.Outside)) {
		s.Workers = append(s.Workers, WorkerState{ID: id, State: Outside, Since: s.Subset.Since, Breaker: "closed",
			Why: s.Subset.Outside[id], Hits: -1, Models: []string{}})
	}
}

func describeWorker(w worker.Stats, now time.Time) WorkerState {
	s := WorkerState{
		ID:        w.ID,
		State:     w.State.String(),
		Since:     w.Since,
		Why:       w.Why,
		Drained:   w.Drained,
		Forgotten: w.Forgotten,
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
		Weights:   w.Weights.String(),
		KVWeights: w.Oldest.String(),
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

// Summary describes all workers of a pool, also those that an answer in parts leaves out.
type Summary struct {
	Total   int                  `json:"workers_total"`
	Found   int                  `json:"workers_found"`      // of these, which the query fits; all without one
	Sick    int                  `json:"workers_in_trouble"` // of all, which need a look
	Joined  int                  `json:"workers_registered"` // of all, which registered themselves
	States  map[string]int       `json:"states"`             // number of workers by state
	Medians map[string]Medians   `json:"medians"`            // by role; "" = none
	Serving map[string][]Serving `json:"serving"`            // by model
}

// Medians are those of a pool's workers with one role: a prefiller's first output is that of a long prompt. They are in
// seconds; 0 = too few workers have a time.
type Medians struct {
	First    float64 `json:"ttft_seconds"`
	PerToken float64 `json:"tpot_seconds"`
}

// Serving counts the workers with one role that serve a model.
type Serving struct {
	Role    string `json:"role,omitempty"`
	Workers int    `json:"workers"`
	Up      int    `json:"up"`
}

// Bounds of a median: fewWorkers must have a time, and one that is lateTimes the median is late.
const (
	fewWorkers = 3
	lateTimes  = 5
)

// Late reports whether a time is far above the median of its pool and role.
func Late(time, median float64) bool { return median > 0 && time > lateTimes*median }

// MediansOf returns the medians of the workers with a role.
func MediansOf(workers []WorkerState, role string) Medians {
	of := func(time func(*WorkerState) float64) float64 {
		var all []float64
		for i := range workers {
			if t := time(&workers[i]); t > 0 && workers[i].Labels["role"] == role {
				all = append(all, t)
			}
		}
		if len(all) < fewWorkers {
			return 0
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return Medians{First: of(func(w *WorkerState) float64 { return w.TTFT }),
		PerToken: of(func(w *WorkerState) float64 { return w.TPOT })}
}

// registeredOrigin is the origin of a worker that registered itself.
const registeredOrigin = "registered"

// Summarize counts the workers of p.
func (p *PoolState) Summarize() {
	p.Summary = Summary{Total: len(p.Workers), Found: len(p.Workers), States: map[string]int{},
		Medians: map[string]Medians{}, Serving: map[string][]Serving{}}
	for i := range p.Workers {
		w := &p.Workers[i]
		p.States[w.State]++
		role := w.Labels["role"]
		if _, ok := p.Medians[role]; !ok {
			p.Medians[role] = MediansOf(p.Workers, role)
		}
		if w.own() < rankGood {
			p.Sick++
		}
		if w.Origin == registeredOrigin {
			p.Joined++
		}
		for _, model := range w.Models {
			k := slices.IndexFunc(p.Serving[model], func(n Serving) bool { return n.Role == role })
			if k < 0 {
				k = len(p.Serving[model])
				p.Serving[model] = append(p.Serving[model], Serving{Role: role})
			}
			p.Serving[model][k].Workers++
			if w.serves() {
				p.Serving[model][k].Up++
			}
		}
	}
}

// serves reports whether the worker is up. A full one is: it has max_in_flight requests.
func (w *WorkerState) serves() bool { return w.State == "up" || w.State == "full" }

// Ranks of workers: those that an operator must see first are lower. Workers of a pool that cannot serve come after
// workers that are sick alone, as its warning names them together.
const (
	rankBad = iota
	rankWarned
	rankDeadPool
	rankLate
	rankFull
	rankGood
)

// own ranks a worker by itself: rankBad, rankWarned or rankGood. The page in a browser has the same rule.
func (w *WorkerState) own() int {
	switch {
	case w.serves() && w.Breaker == "closed" && w.Lately <= 1 && (w.LastError == "" || w.ErrorOver),
		w.State == Outside:
		return rankGood
	case w.serves() || w.Drained || slices.Contains([]string{"starting", "draining", "asleep", "paused"}, w.State):
		return rankWarned
	}
	return rankBad
}

// Rank ranks a worker of p.
func (p *PoolState) Rank(w *WorkerState) int {
	r, m := w.own(), p.Medians[w.Labels["role"]]
	switch {
	case r < rankGood && p.WhyNot != "":
		return rankDeadPool
	case r < rankGood:
		return r
	case Late(w.TTFT, m.First) || Late(w.TPOT, m.PerToken):
		return rankLate
	case w.State == "full":
		return rankFull
	}
	return rankGood
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

func briefly(pools []*readiness.Pool) (all []PoolBrief) {
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

// mayServe reports whether a pool makes the process ready. One that is unfit serves a request that names it as its
// endpoint.
func mayServe(whyNot string, ready bool) bool { return ready || whyNot == readiness.WhyUnfit }

// Readiness returns the answer of /ready. The process is ready while it does not drain and at least one pool can serve.
// The answer names a pool that cannot serve with its reason, and the process stays ready: otherwise a load balancer
// would take all models away because one is missing.
func Readiness(pools []*readiness.Pool, draining bool) (ready bool, page any) {
	list := briefly(pools)
	for _, p := range list {
		ready = ready || !draining && mayServe(p.WhyNot, p.Ready)
	}
	return ready, readyState{Ready: ready, Draining: draining, Pools: list}
}

// WaitsFor says what requests of the pool's queue wait for; limit is that of their key, or "".
func (s *PoolState) WaitsFor(limit string) string {
	switch {
	case limit != "":
		return "its key's " + limit
	case s.Up == 0:
		return "no worker is up"
	}
	return "no worker has room"
}

// shownFlows bounds the flows that are listed.
const shownFlows = 16
