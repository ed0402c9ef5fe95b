package probe

import (
	"encoding/json"
	"time"
)

// Sink takes the workers' answers. Its methods are called from many goroutines at once. An id that it does not know is
// that of a worker that has gone meanwhile.
type Sink interface {
	// Phase reports whether the worker is up, whether it has answered that it is shutting down, and whether its engines
	// are to be counted before it is reported healthy. A worker that is not up is checked more often and not scraped.
	// One that is shutting down is scraped each second, to find its new process soon.
	Phase(id uint64) (up, leaving, counts bool)

	// Counted takes how many data-parallel engines the worker reports. It comes before Healthy, and only if Phase asks
	// for it and the worker reports them.
	Counted(id uint64, engines int, at time.Time)

	Healthy(id uint64, at time.Time)
	Silent(id uint64, why string, at time.Time)    // no answer to a health check in time
	Ill(id uint64, why string, at time.Time)       // an answer of 500 or more
	Dead(id uint64, why string, at time.Time)      // nothing listens
	Unchecked(id uint64, why string, at time.Time) // no check could be made: nothing is known of the worker

	// Listing comes before the worker is asked for its models. What ListSoon is called for after it is answered by another
	// list than the next.
	Listing(id uint64)
	// Listed takes the model ids that the worker lists, each once, and the entry of /v1/models of each.
	Listed(id uint64, ids []string, entries []json.RawMessage)
	Unlisted(id uint64, why string, at time.Time) // the models could not be read

	Scraped(id uint64, p Page, at time.Time)
	Unscraped(id uint64, why string, at time.Time) // the metrics could not be read
}

// Page is what is read from a page of vLLM's metrics. It is an alias, so that a sink can declare the same values
// without importing this package.
type Page = struct {
	Metrics           // sums over the worker's data-parallel engines, usage their mean
	Engines []Metrics // of each engine that the page names, in order of their numbers; none if it names none
}

// Metrics is a page's figures of one engine, or of all of a worker. What the page lacks is 0.
type Metrics = struct {
	Running  int     // requests
	Waiting  int     // requests
	Usage    float64 // of the KV cache, 0..1
	Capacity int     // tokens of KV cache that can hold prompts
	Block    int     // tokens of a block of it
	Queries  float64 // tokens looked up in the prefix cache since the process began
	Hits     float64 // tokens found there
	Process  float64 // when the process began, Unix seconds
	Asleep   bool    // the engine has been put to sleep: it says so, and answers no requests

	// Of requests that have ended, sums since the process began.
	Prefill      float64 // seconds of prefill
	Prefills     float64 // requests in Prefill
	Computed     float64 // prompt tokens that were not cached
	SaysComputed bool    // Computed stands on the page: vLLM 0.19 and later
	Prompts      float64 // all prompt tokens
	ExternalHits float64 // as Hits, from a KV connector
	TokenTime    float64 // the mean seconds a generated token of each
	TokenTimes   float64 // requests in TokenTime
}
