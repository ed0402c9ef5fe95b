package decisions

import (
	"encoding/json"
	"time"

	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/record"
)

// Decision is a request as pages and the API show it afterwards.
type Decision struct {
	record.Record
	Number  uint64    `json:"number"` // of the request in this process, from 1
	At      time.Time `json:"at"`     // of the decision, or of the end if nothing was decided
	Client  string    `json:"client,omitempty"`
	Key     string    `json:"key,omitempty"` // the name of the key, never the key
	Method  string    `json:"method"`
	Path    string    `json:"path"`
	Open    bool      `json:"open"` // its answer has not ended
	Status  int       `json:"status,omitempty"`
	Stream  bool      `json:"stream"`
	Retries int       `json:"retries"`
	End     string    `json:"end,omitempty"` // how its answer ended, if not well
	Bytes   int64     `json:"bytes"`
	Seconds float64   `json:"seconds"` // from its arrival; of one that is open, so far
}

// Tried adds a worker that gave the client no answer.
func (d *Decision) Tried(worker, reason string, after time.Duration) {
	d.Attempts = append(d.Attempts, record.Attempt{Worker: worker, Reason: reason, After: after})
}

// Prefilled sets what became of the prefill at a worker of its own, by "" = none was found.
func (d *Decision) Prefilled(by, result, why string, took time.Duration) {
	d.Split = &record.Split{Prefiller: by, Named: by != "" && by == d.PairName(), Result: result, Why: why, Took: took}
}

// IsLong reports whether the prompt was not split as memory does not have all of the body.
func (d *Decision) IsLong() bool {
	return d.Split != nil && d.Split.Result == string(journal.PrefillLong)
}

// JSON writes the decision. Its error is that of a value that JSON does not have.
func (d *Decision) JSON() ([]byte, error) { return json.Marshal(d) }
