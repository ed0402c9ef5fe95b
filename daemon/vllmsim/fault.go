package vllmsim

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"
)

// The faults of a worker, as Fault.Mode.
const (
	FaultNone       = "none"        // healthy
	FaultDie        = "die"         // listener and connections closed, cache lost, as by SIGKILL
	Fault503        = "503"         // every path but /sim/ answers 503
	FaultStall      = "stall"       // the engine stands still: requests hang, /health stays 200, as a paused vLLM's
	FaultReset      = "reset"       // connections of inference requests are reset before the first byte
	FaultCut        = "cut"         // they are cut after the first token
	FaultAbort      = "abort"       // 200 with an empty text and finish_reason "abort", or a bare [DONE]: a draining vLLM
	FaultSlowHealth = "slow-health" // /health and /ping take Delay
)

// Fault is the body of POST /sim/fault.
type Fault struct {
	Mode string `json:"mode"`
	// Seconds after which the worker is healthy again, by the wall clock; 0 is never. A dead worker revives with an empty cache.
	Seconds float64 `json:"seconds,omitempty"`
	// Delay of slow-health in seconds. Default 10.
	Delay float64 `json:"delay,omitempty"`
}

// SetFault makes the worker fail in the given way, or heals it; it replaces an earlier fault.
func (s *Server) SetFault(f Fault) error {
	switch f.Mode {
	case FaultNone, FaultDie, Fault503, FaultStall, FaultReset, FaultCut, FaultAbort, FaultSlowHealth:
	default:
		return fmt.Errorf("vllmsim: unknown fault %q; want none, die, 503, stall, reset, cut, abort or slow-health", f.Mode)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	return s.setFault(f)
}

func (s *Server) setFault(f Fault) error {
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
	s.fault.Store(&f)
	if f.Mode != FaultDie {
		s.engine.Load().freeze(f.Mode == FaultStall)
	}
	if f.Seconds > 0 && f.Mode != FaultNone {
		s.timer = time.AfterFunc(time.Duration(f.Seconds*float64(time.Second)), func() { s.heal(&f) })
	}
	return nil
}

// heal ends a fault whose time is over, unless another has come since.
func (s *Server) heal(f *Fault) {
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

// sever drops the connection of a request; reset sends a RST instead of a FIN.
func sever(w http.ResponseWriter, reset bool) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // a recorder, or the connection is gone
	}
	if tcp, ok := c.(*net.TCPConn); ok && reset {
		tcp.SetLinger(0)
	}
	c.Close()
}
