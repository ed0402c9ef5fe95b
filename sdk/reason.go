package sdk

import (
	"strconv"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Reason is why a worker was chosen. The built-in strategies share the codes below [ReasonOwn]; a strategy may use them
// where they fit, and gives its own meaning to those from ReasonOwn on.
type Reason uint16

// The shared reasons.
const (
	ReasonNone      Reason = iota
	ReasonPrefix           // it holds the longest prefix of the prompt
	ReasonLoad             // another holds a longer prefix, and using it would cost more than it saves
	ReasonCold             // no worker holds any of the prompt: the least cost
	ReasonPredicted        // there are no KV events: by the history of what was routed
	ReasonSession          // the session is bound to it
	ReasonHash             // a new session, placed by hashing
	ReasonSpill            // a new session, hashed past a worker that has too much in flight
	ReasonLeast            // the fewest in flight
	ReasonTurn             // its turn
	ReasonCost             // the least cost, of whatever the strategy reckons with

	// ReasonOwn is the first code that is free for a strategy's own reasons.
	ReasonOwn Reason = 256
)

var reasons = [...]string{
	ReasonNone:      "none",
	ReasonPrefix:    "longest prefix",
	ReasonLoad:      "load outweighs the longest prefix",
	ReasonCold:      "no prefix, least cost",
	ReasonPredicted: "no events, routed history",
	ReasonSession:   "bound session",
	ReasonHash:      "session hash",
	ReasonSpill:     "session hash, past a full worker",
	ReasonLeast:     "fewest in flight",
	ReasonTurn:      "its turn",
	ReasonCost:      "least cost",
}

// String returns the reason in words, or its number if it is a strategy's own.
func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return "reason " + strconv.Itoa(int(r))
}

// ReasonNames returns the names of all reasons that s may give, as wp_reasons writes them: the shared ones and its own.
func ReasonNames(s Strategy) []byte {
	var b []byte
	for code, name := range reasons {
		b = abi.AppendOption(b, strconv.Itoa(code), name)
	}
	if o, ok := s.(Reasoner); ok {
		for i, name := range o.Reasons() {
			b = abi.AppendOption(b, strconv.Itoa(int(ReasonOwn)+i), name)
		}
	}
	return b
}
