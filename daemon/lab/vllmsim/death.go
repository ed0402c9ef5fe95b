package vllmsim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// SetFault makes the worker fail in the given way, or heals it; it replaces an earlier fault.
func (s *Server) SetFault(f Fault) error {
	if !f.valid() {
		return fmt.Errorf("vllmsim: unknown fault %q (count %d); want one of %s",
			f.Mode, f.Count, strings.Join(FaultModes, ", "))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if f.Mode == FaultEventsRestart {
		return errors.Join(s.setFault(Fault{Mode: FaultDie}), s.setFault(Fault{Mode: FaultNone}))
	}
	return s.setFault(f)
}

// Kill ends the worker as SIGKILL would: the port is closed, every connection is reset, the cache is lost.
func (s *Server) Kill() error { return s.SetFault(Fault{Mode: FaultDie}) }

// Restart brings a worker back on its port, healthy and with an empty cache; one that lives is killed first. It waits
// up to 5 s for a port that somebody else holds.
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

// setFault replaces the fault in force. It wants mu.
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
		if err := s.startProcess(); err != nil {
			return err
		}
		if s.addr != "" {
			if err := s.listen(s.addr); err != nil {
				s.process.Load().infer.ranks.close()
				return err
			}
		}
	}
	s.fault.Store(f)
	switch d := s.process.Load().infer.ranks; f.Mode {
	case FaultDie:
	case FaultAbort:
		d.freeze(false)
		d.abort()
	default:
		d.freeze(f.Mode == FaultStall)
	}
	if f.Mode != FaultDie {
		if err := s.process.Load().infer.ranks.setEventFault(f.events(), f.Count); err != nil {
			return err
		}
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

// handleFault serves POST /sim/fault.
func (s *Server) handleFault(w http.ResponseWriter, r *http.Request) {
	var f Fault
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&f); err != nil {
		writeError(w, badRequest("", "fault: "+err.Error()))
		return
	}
	if f.Mode == FaultDie || f.Mode == FaultEventsRestart {
		go s.SetFault(f) // this very connection dies with the worker
		return
	}
	if err := s.SetFault(f); err != nil {
		writeError(w, badRequest("mode", err.Error()))
		return
	}
	writeJSON(w, http.StatusOK, f)
}
