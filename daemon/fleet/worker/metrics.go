package worker

import (
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/measure"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Page is what is read from a page of vLLM's metrics.
type Page struct {
	Metrics               // sums over the worker's data-parallel engines, usage their mean
	Engines []Metrics     // of each engine that the page names, in order of their numbers; none if it names none
	Took    time.Duration // since the worker was asked for it; another router does not say
}

// Metrics holds the metrics of an engine, or of all engines of a worker. A value that the page lacks is 0.
type Metrics struct {
	Running  int     // requests
	Waiting  int     // requests
	Usage    float64 // of the KV cache, 0..1
	Capacity int     // tokens of KV cache that can hold prompts
	Block    int     // tokens of a block of it
	Queries  float64 // tokens looked up in the prefix cache since the process began
	Hits     float64 // tokens found there
	Process  float64 // when the process began, Unix seconds
	Asleep   bool    // the engine has been put to sleep: it says so, and answers no requests
	Paused   bool    // it is paused: it says so, and holds its requests
	Keeps    bool    // it has kept its KV cache in that pause
	Preempts float64 // requests put back to be computed again, for want of KV, since the process began
	Steps    float64 // of the engine that gave tokens, since the process began; 0 = the page has no count

	Adapters *Adapters // nil = the page names none
	LMCache  *LMCache  // nil = the page has nothing of LMCache

	// Sums over ended requests since the process began. See speed.go.
	Prefill      float64 // seconds of prefill
	Prefills     float64 // requests in Prefill
	Computed     float64 // prompt tokens that were not cached
	SaysComputed bool    // the page has Computed: vLLM 0.19 and later
	Prompts      float64 // all prompt tokens
	ExternalHits float64 // as Hits, from a KV connector
	TokenTime    float64 // the mean seconds a generated token of each
	TokenTimes   float64 // requests in TokenTime
}

// LMCache holds what an LMCache inside of the engine counts since the process began, under the names of its
// observability.py.
type LMCache struct {
	EngineHits float64 // num_vllm_hit_tokens: tokens of prompts that vLLM's own cache held
	Lookups    float64 // num_lookup_tokens: tokens that LMCache was asked for
	LookupHits float64 // num_lookup_hits: tokens of these that it had
	RateSum    float64 // request_cache_hit_rate: of each request, 0..1
	RateCount  float64
}

// Pause records that the worker reports itself as paused, which its metrics do not show.
func (p *Page) Pause() {
	p.Paused = true
	for i := range p.Engines {
		p.Engines[i].Paused = true
	}
}

// rest returns what the metrics show of the engine's rest.
func (m *Metrics) rest() judge.Rest {
	switch {
	case m.Asleep:
		return judge.Sleeping
	case m.Paused:
		return judge.Paused
	}
	return judge.Awake
}

// readings is a worker's metrics as read last.
type readings struct {
	Metrics
	at time.Duration // when they were read; 0 = never
}

// prefilled is what an engine's page counts of the prompts that it has computed.
type prefilled struct{ requests, seconds, tokens float64 }

// age returns the time since then, negative if they were never read.
func (r *readings) age(now time.Duration) time.Duration {
	if r.at == 0 {
		return -time.Second
	}
	return max(0, now-r.at)
}

// fill writes the metrics into the worker's row. They are stale from that age on.
func (r *readings) fill(row *abi.Row, now, stale time.Duration) {
	age := r.age(now)
	row.MetricsAge = float32(measure.InSeconds(age))
	row.Running = uint32(r.Running)
	row.Waiting = uint32(r.Waiting)
	row.KVUsage = float32(r.Usage)
	if age < 0 || age > stale {
		row.State |= abi.RowStale
	}
}

// newTokens returns the prompt tokens of ended requests that were not cached. Before 0.19 vLLM does not report them.
// Then newTokens returns the prompt tokens less those found in the cache, a few of which belong to running requests.
func newTokens(m *Metrics) float64 {
	if m.SaysComputed {
		return m.Computed
	}
	return max(0, m.Prompts-m.Hits-m.ExternalHits)
}

// progressed reports whether an engine has done something between two pages of metrics. The length of its queue does
// not show that: requests that hang there make its gauges grow, and those whose clients leave make them shrink.
func progressed(was, is *Metrics) bool {
	return is.Usage > was.Usage || is.Queries != was.Queries || is.Hits != was.Hits ||
		is.ExternalHits != was.ExternalHits || is.Prefill != was.Prefill || is.Prefills != was.Prefills ||
		is.Computed != was.Computed || is.Prompts != was.Prompts || is.TokenTime != was.TokenTime ||
		is.TokenTimes != was.TokenTimes || is.Steps != was.Steps
}

// Adapters is what a page of metrics says of a worker's LoRA adapters.
type Adapters struct {
	At      float64  // when the worker wrote it, Unix seconds
	Max     int      // adapters that run at a time; 0 = not known
	Running []string // adapters of requests that run
	Waiting []string // and of requests that wait
}
