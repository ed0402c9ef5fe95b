package exchange

import (
	"strconv"
	"time"
)

// offered gives a strategy the header fields of a request that its configuration allows it.
type offered struct{ in *Inbound }

// Header implements host.HeaderSource.
func (o *offered) Header(name string) (value string, ok bool) { return o.in.Lookup(name) }

// headerTimeout is the field in which the SDKs of OpenAI and Anthropic give the seconds that they wait for an answer.
const headerTimeout = "X-Stainless-Timeout"

// deadline returns when the client gives up, from its header; zero if it gives none.
func (in *Inbound) deadline(arrived time.Time) time.Time {
	given := in.Get(headerTimeout)
	if given == "" { // the error of ParseFloat is an allocation
		return time.Time{}
	}
	seconds, err := strconv.ParseFloat(given, 64)
	if err != nil || !(seconds > 0 && seconds < 1e6) {
		return time.Time{}
	}
	return arrived.Add(time.Duration(seconds * float64(time.Second)))
}
