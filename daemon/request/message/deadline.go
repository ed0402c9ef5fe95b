package message

import (
	"strconv"
	"strings"
	"time"
)

// headerTimeout is the field in which the SDKs of OpenAI and Anthropic give the seconds that they wait for an answer.
const headerTimeout = "X-Stainless-Timeout"

// Deadline returns when the client gives up, by the first field of its header that says so; zero if none does. Those
// that the configuration names come before the SDKs' own, which give 600 s unless the user sets another.
func (in *Inbound) Deadline(arrived time.Time) time.Time {
	if in.Epoch != nil {
		for _, name := range in.Epoch.Deadline {
			if seconds := secondsOf(in.Get(name)); seconds > 0 {
				return arrived.Add(InSeconds(seconds))
			}
		}
	}
	if seconds := secondsOf(in.Get(headerTimeout)); seconds > 0 {
		return arrived.Add(InSeconds(seconds))
	}
	return time.Time{}
}

// timeUnits are the seconds of the units in which a client gives a time. One letter is gRPC's: m are milliseconds, and
// M are minutes.
var timeUnits = map[string]float64{"": 1, "s": 1, "ms": 1e-3, "H": 3600, "M": 60, "S": 1, "m": 1e-3, "u": 1e-6,
	"n": 1e-9}

// maxTimeout bounds the seconds that a client may say that it waits: more are nonsense.
const maxTimeout = 1e6

// secondsOf reads 10, 1.5, 10s, 1500ms or gRPC's 1500m; 0 for a text that is not a time above zero.
func secondsOf(given string) float64 {
	if given == "" { // the error of ParseFloat is an allocation
		return 0
	}
	unit := strings.TrimLeft(given, "0123456789.")
	one, known := timeUnits[unit]
	n, err := strconv.ParseFloat(given[:len(given)-len(unit)], 64)
	seconds := n * one
	if !known || err != nil || !(seconds > 0 && seconds < maxTimeout) {
		return 0
	}
	return seconds
}

// InSeconds returns a number of seconds as a Duration, 1e8 at most.
func InSeconds(s float64) time.Duration { return time.Duration(min(s, 1e8) * float64(time.Second)) }
