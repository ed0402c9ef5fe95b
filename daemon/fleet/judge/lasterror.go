package judge

import "time"

// Source names what found an error.
type Source uint8

// The values of Source.
const (
	ByHealth  Source = iota // a health check
	ByModels                // the listing of models
	ByMetrics               // a scrape
	ByRequest               // a client's request
)

// lastError is a worker's latest error.
type lastError struct {
	text string
	at   time.Time
	by   Source
	over bool // the same source has succeeded since, or the worker has come up
}

// note records an error. While a worker is down or silent, the error of its health check stays, because it explains
// why. A scrape that was under way fails later, and would replace it.
func (e *lastError) note(text string, at time.Time, by Source, isOff bool) {
	if isOff && e.by == ByHealth && !e.over && by != ByHealth && e.text != "" {
		return
	}
	*e = lastError{text: text, at: at, by: by}
}

// good records that the source of the error succeeds now.
func (e *lastError) good(by Source) {
	if e.by == by {
		e.over = true
	}
}
