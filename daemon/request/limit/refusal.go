package limit

import "time"

// By names one of the limits.
type By uint8

// The limits.
const (
	ByInFlight By = iota
	ByRequests
	ByTokens

	Count = iota // how many there are
)

// String returns its key in the configuration.
func (b By) String() string {
	return [...]string{"max_in_flight", "requests_per_minute", "tokens_per_minute"}[b]
}

// Refusal is why a request is not let in.
type Refusal struct {
	By    By
	Limit int           // that is in force for the key
	After time.Duration // until the next request is let in; 0 = not known, or never
	Asked int           // tokens that the request surely needs, and never gets; 0 = it may come again
}
