package vllmsim

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/events"
)

// The faults of a worker, as Fault.Mode. Those from reset to accept-only strike POST requests alone, /ping not being
// one.
const (
	FaultNone       = "none"        // healthy
	FaultDie        = "die"         // listener closed, all connections reset, cache lost, as by SIGKILL
	Fault503        = "503"         // every path but /sim/ answers 503
	FaultStall      = "stall"       // the engine stands still: requests hang, /health stays 200, as a paused vLLM's
	FaultSlowHealth = "slow-health" // /health and /ping take Delay
	// FaultDrain is SIGTERM with --shutdown-timeout: what runs goes on, new requests get 200 with nothing in it, and
	// /tokenize 500. FaultAbort is SIGTERM without it: what runs ends with finish_reason "abort" at once.
	FaultDrain = "drain"
	FaultAbort = "abort"
	FaultReset = "reset" // connections are reset before the first byte
	FaultCut   = "cut"   // they are closed after the first token
	// FaultErrorEvent lets the engine die after the first token: an error event and [DONE]; plain requests get 500.
	FaultErrorEvent = "error-event"
	FaultGarbage    = "garbage"      // no SSE after the first token, then a clean end; plain answers are no HTTP
	FaultBadFrame   = "bad-frame"    // a chunk without a size after the first token; plain answers have two lengths
	FaultShort      = "short-length" // Content-Length is more than is sent
	FaultHalfClose  = "half-close"   // FIN in the midst of an answer; the connection stays open for reading
	FaultAcceptOnly = "accept-only"  // the request is read and never answered
	FaultOpenError  = "open-error"   // a session is not opened: 424; all else works
	FaultOpenBare   = "open-bare"    // a session is opened, but the answer names it in no header
	// The faults of KV events leave requests alone. Sequence numbers go on, and a replay can mend all but the restart.
	FaultEventsGap       = "events-gap"       // messages get lost
	FaultEventsDuplicate = "events-duplicate" // they come twice
	FaultEventsReorder   = "events-reorder"   // each comes behind the next one
	FaultEventsSilence   = "events-silence"   // the sockets are open, and neither events nor replays come
	FaultEventsCut       = "events-cut"       // the sockets are closed
	FaultEventsRestart   = "events-restart"   // dies and lives again at once: an empty cache, and the sequence at 0
)

// FaultModes are the modes that a Fault may have.
var FaultModes = []string{
	FaultNone, FaultDie, Fault503, FaultStall, FaultSlowHealth, FaultDrain, FaultAbort, FaultReset, FaultCut,
	FaultErrorEvent, FaultGarbage, FaultBadFrame, FaultShort, FaultHalfClose, FaultAcceptOnly, FaultOpenError,
	FaultOpenBare,
	FaultEventsGap, FaultEventsDuplicate, FaultEventsReorder, FaultEventsSilence, FaultEventsCut, FaultEventsRestart,
}

// Fault is the body of POST /sim/fault.
type Fault struct {
	// Mode is one of the Fault constants.
	Mode string `json:"mode"`
	// Seconds after which the worker is healthy again, by the wall clock; 0 is never. A dead worker revives with an
	// empty cache.
	Seconds float64 `json:"seconds,omitempty"`
	// Count is how many POST requests meet the fault, or messages of each rank a fault of events; later ones find a
	// healthy worker. 0 is all. Not for die, stall, slow-health, events-cut and events-restart.
	Count int `json:"count,omitempty"`
	// Delay of slow-health in seconds. Default 10.
	Delay float64 `json:"delay,omitempty"`
}

// valid reports whether the fault can be set.
func (f *Fault) valid() bool { return slices.Contains(FaultModes, f.Mode) && f.Count >= 0 }

// eventsPrefix begins the modes that are events.Faults.
const eventsPrefix = "events-"

// events returns what the fault does to KV events.
func (f *Fault) events() events.Fault {
	if mode, ok := strings.CutPrefix(f.Mode, eventsPrefix); ok {
		return events.Fault(mode)
	}
	return events.NoFault
}

// fault is the Fault in force.
type fault struct {
	Fault
	met atomic.Int64 // POST requests that came since
}

type modeKey struct{}

// modeOf returns the mode of the fault that the request meets; meet has put it there.
func modeOf(r *http.Request) string {
	mode, _ := r.Context().Value(modeKey{}).(string)
	return mode
}

// drained reports whether the worker takes requests only to leave them empty.
func drained(mode string) bool { return mode == FaultDrain || mode == FaultAbort }

// meet counts the request against the fault. It returns false if the fault has answered, or has left the client
// without an answer.
func (f *fault) meet(w http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	if f.Mode == FaultNone || strings.HasPrefix(f.Mode, eventsPrefix) {
		return r, true
	}
	post := r.Method == http.MethodPost && r.URL.Path != "/ping"
	nth := f.met.Load() + 1
	if post {
		nth = f.met.Add(1)
	}
	if f.Count > 0 && nth > int64(f.Count) {
		return r, true // used up
	}
	switch {
	case f.Mode == FaultDie || f.Mode == FaultReset && post:
		sever(w, byReset)
		return r, false
	case f.Mode == Fault503:
		writeError(w, newError(http.StatusServiceUnavailable, "ServiceUnavailableError", "", "The worker is out of service."))
		return r, false
	case f.Mode == FaultAcceptOnly && post:
		hang(r)
	}
	if !post {
		return r, true
	}
	return r.WithContext(context.WithValue(r.Context(), modeKey{}, f.Mode)), true
}
