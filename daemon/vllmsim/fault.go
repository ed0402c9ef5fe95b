package vllmsim

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// The faults of a worker, as Fault.Mode. Those from reset to accept-only strike POST requests alone, /ping not being one.
const (
	FaultNone       = "none"         // healthy
	FaultDie        = "die"          // listener closed, all connections reset, cache lost, as by SIGKILL
	Fault503        = "503"          // every path but /sim/ answers 503
	FaultStall      = "stall"        // the engine stands still: requests hang, /health stays 200, as a paused vLLM's
	FaultSlowHealth = "slow-health"  // /health and /ping take Delay
	FaultDrain      = "drain"        // what runs goes on; new requests get 200 with nothing in it, /tokenize 500: SIGTERM with --shutdown-timeout
	FaultAbort      = "abort"        // as drain, and what runs ends with finish_reason "abort" at once: SIGTERM without it
	FaultReset      = "reset"        // connections are reset before the first byte
	FaultCut        = "cut"          // they are closed after the first token
	FaultErrorEvent = "error-event"  // the engine dies after the first token: an error event and [DONE]; plain requests get 500
	FaultGarbage    = "garbage"      // bytes that are no SSE after the first token, then a clean end; plain answers are no HTTP
	FaultBadFrame   = "bad-frame"    // a chunk without a size after the first token; plain answers have two lengths
	FaultShort      = "short-length" // Content-Length says more than is sent
	FaultHalfClose  = "half-close"   // FIN in the midst of an answer; the connection stays open for reading
	FaultAcceptOnly = "accept-only"  // the request is read and never answered
	FaultOpenError  = "open-error"   // a session is not opened: 424; all else works
	FaultOpenBare   = "open-bare"    // it is, but the answer names it in no header
)

var faultModes = []string{FaultNone, FaultDie, Fault503, FaultStall, FaultSlowHealth, FaultDrain, FaultAbort, FaultReset, FaultCut,
	FaultErrorEvent, FaultGarbage, FaultBadFrame, FaultShort, FaultHalfClose, FaultAcceptOnly, FaultOpenError, FaultOpenBare}

// Fault is the body of POST /sim/fault.
type Fault struct {
	// Mode is one of the Fault constants.
	Mode string `json:"mode"`
	// Seconds after which the worker is healthy again, by the wall clock; 0 is never. A dead worker revives with an empty cache.
	Seconds float64 `json:"seconds,omitempty"`
	// Count is how many POST requests meet the fault; later ones find a healthy worker. 0 is all. Not for die, stall and slow-health.
	Count int `json:"count,omitempty"`
	// Delay of slow-health in seconds. Default 10.
	Delay float64 `json:"delay,omitempty"`
}

// fault is the Fault in force.
type fault struct {
	Fault
	met atomic.Int64 // POST requests that came since
}

// SetFault makes the worker fail in the given way, or heals it; it replaces an earlier fault.
func (s *Server) SetFault(f Fault) error {
	if !slices.Contains(faultModes, f.Mode) || f.Count < 0 {
		return fmt.Errorf("vllmsim: unknown fault %q (count %d); want one of %s", f.Mode, f.Count, strings.Join(faultModes, ", "))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	return s.setFault(f)
}

// Kill ends the worker as SIGKILL would: the port is closed, every connection is reset, the cache is lost.
func (s *Server) Kill() error { return s.SetFault(Fault{Mode: FaultDie}) }

// Restart brings a worker back on its port, healthy and with an empty cache; one that lives is killed first. It waits up
// to 5 s for a port that somebody else holds.
func (s *Server) Restart() error {
	if err := s.Kill(); err != nil {
		return err
	}
	err := s.SetFault(Fault{Mode: FaultNone})
	for range 50 {
		if err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
		err = s.SetFault(Fault{Mode: FaultNone})
	}
	return err
}

func (s *Server) setFault(set Fault) error {
	f := &fault{Fault: set}
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	dead := s.fault.Load().Mode == FaultDie
	if f.Mode == FaultDie {
		s.kill()
	} else if dead {
		s.startEngine()
		if s.addr != "" {
			if err := s.listen(s.addr); err != nil {
				s.engine.Load().close()
				return err
			}
		}
	}
	s.fault.Store(f)
	switch e := s.engine.Load(); f.Mode {
	case FaultDie:
	case FaultAbort:
		e.freeze(false)
		e.abort()
	default:
		e.freeze(f.Mode == FaultStall)
	}
	if f.Seconds > 0 && f.Mode != FaultNone {
		s.timer = time.AfterFunc(time.Duration(f.Seconds*float64(time.Second)), func() { s.heal(f) })
	}
	return nil
}

// heal ends a fault whose time is over, unless another has come since.
func (s *Server) heal(f *fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.fault.Load() != f {
		return
	}
	if err := s.setFault(Fault{Mode: FaultNone}); err != nil {
		s.timer = time.AfterFunc(time.Second, func() { s.heal(f) }) // the port is taken for now
	}
}

func (s *Server) handleFault(w http.ResponseWriter, r *http.Request) {
	var f Fault
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&f); err != nil {
		writeError(w, badRequest("", "fault: "+err.Error()))
		return
	}
	if f.Mode == FaultDie {
		go s.SetFault(f) // this very connection dies with the worker
		return
	}
	if err := s.SetFault(f); err != nil {
		writeError(w, badRequest("mode", err.Error()))
		return
	}
	writeJSON(w, http.StatusOK, f)
}

type modeKey struct{}

// modeOf is the fault that the request meets; serve has put it there.
func modeOf(r *http.Request) string {
	mode, _ := r.Context().Value(modeKey{}).(string)
	return mode
}

// meet counts the request against the fault in force. False: the fault has answered, or left the client without an answer.
func (s *Server) meet(w http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	f := s.fault.Load()
	if f.Mode == FaultNone {
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
		sever(w, true)
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
