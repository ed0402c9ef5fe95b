package probe

import (
	"encoding/json"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// Sink takes the workers' answers. Its methods are called from many goroutines at once. An id that it does not know is
// that of a worker that has gone meanwhile.
type Sink interface {
	// Phase returns what matters of a worker here. One that is not up is checked more often and not scraped. One that is
	// shutting down is scraped each second, to find its new process soon. A worker whose engine makes no steps is asked
	// whether it is paused. One that hung is tried.
	Phase(id uint64, at time.Time) worker.Phase

	Tried(id uint64, status int, at time.Time) // the answer to a completion of one token; 0 = none came in time

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

	Scraped(id uint64, p worker.Page, at time.Time)
	Weights(id uint64, v worker.Weights, at time.Time) // that the worker says it has

	Unscraped(id uint64, why string, at time.Time) // the metrics could not be read
}
