package host

import (
	"context"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// restFactor bounds what replacing instances may cost: after making one the keeper rests this many times as long. A
// module that traps on every second request would else keep a core busy with 6 ms a request.
const restFactor = 4

// retryStart is the pause after an instance could not be made.
const retryStart = time.Second

// keep fills empty slots and runs wp_maint, off the request path, until stop. It is one goroutine of each strategy.
func (s *Strategy) keep(ctx context.Context) {
	defer close(s.done)
	var again <-chan time.Time
	for {
		select {
		case <-s.stop:
			return
		case <-s.wake:
		case <-again:
		}
		again = nil
		s.upkeepAll()
		if !s.rest(s.deliver()) {
			return
		}
		for i := range s.instances.slots {
			pause, failed := s.fill(ctx, &s.instances.slots[i])
			if failed {
				again = time.After(pause)
				break
			}
			if !s.rest(pause) {
				return
			}
		}
	}
}

// Settle runs the keeper's work at once: it delivers all notices, runs wp_maint where it is due, and replaces an
// instance that failed. It is for strategies of a host that is Stepped: call it between picks, from their goroutine.
func (s *Strategy) Settle(ctx context.Context) {
	if s.native != nil {
		return
	}
	s.fill(ctx, &s.instances.slots[0])
	s.upkeepAll()
	for s.notices.due() {
		if n, _ := s.instances.alive(); n == 0 {
			return // it cannot be made any more
		}
		s.deliver()
		s.fill(ctx, &s.instances.slots[0])
	}
}

// rest pauses, and reports whether the strategy is still wanted.
func (s *Strategy) rest(pause time.Duration) bool {
	if pause <= 0 {
		return true
	}
	select {
	case <-s.stop:
		return false
	case <-time.After(pause):
		return true
	}
}

// noticeTurn is how long one instance is kept for notices: some hundreds of calls, or one that takes its whole time.
const noticeTurn = time.Millisecond

// deliver calls the module with the notices that it wants, and returns how long to pause: as long as the calls took, so
// that notices take half a processor at most. While all instances are at picks, notices wait for the next of them.
func (s *Strategy) deliver() (pause time.Duration) {
	if s.notices.wants&abi.WantNotices == 0 || !s.notices.due() {
		return 0
	}
	if s.quarantine.on() { // set aside
		s.notices.clear()
		return 0
	}
	sl, _ := s.instances.take(s.program)
	if sl == nil {
		return 0
	}
	began := time.Now()
	for time.Since(began) < noticeTurn {
		n, due := s.notices.next(s.layout.FrameSize(sl.in.room))
		if !due {
			break
		}
		if err := sl.in.notify(n); err != nil {
			s.unheard(sl, n.export, err)
			return time.Since(began)
		}
		s.notices.heard()
		sl.in.calls++ // it may have allocated as a pick may
	}
	s.give(sl)
	if s.notices.due() {
		s.wake.ring()
	}
	return time.Since(began)
}

// unheard ends an instance that failed in a call of export.
func (s *Strategy) unheard(sl *slot, export string, err error) {
	if s.notices.failed(s.cfg.QuarantineAfter, s.cfg.QuarantineFor) {
		s.log.Error("strategy gets no notices for a while: its calls beside the picks fail",
			"errors", s.cfg.QuarantineAfter, "retry_after", s.cfg.QuarantineFor, "export", export, "err", err)
	}
	s.replace(sl, err)
}

// upkeepAll runs wp_maint on each instance where it is due.
func (s *Strategy) upkeepAll() {
	s.instances.upkeep.Lock()
	defer s.instances.upkeep.Unlock()
	for i := range s.instances.slots {
		if sl := &s.instances.slots[i]; sl.due.Load() && sl.own(s.program) {
			s.upkeep(sl)
		}
	}
}

// upkeep runs wp_maint on an instance the keeper has taken.
func (s *Strategy) upkeep(sl *slot) {
	sl.due.Store(false)
	if err := sl.in.maintain(); err != nil {
		s.replace(sl, err)
		return
	}
	sl.bytes.Store(uint64(sl.in.mem.Size()))
	sl.state.Store(idle)
}

// fill makes an instance for an empty slot, and returns how long to pause.
func (s *Strategy) fill(ctx context.Context, sl *slot) (pause time.Duration, failed bool) {
	if sl.n >= int(s.instances.wanted.Load()) {
		return 0, false
	}
	if n, _ := s.instances.alive(); n > 0 && s.quarantine.on() { // one instance is enough to try it again
		return 0, false
	}
	if !sl.state.CompareAndSwap(empty, filling) {
		return 0, false
	}
	again, t := sl.used, time.Now()
	in, err := newInstance(ctx, s.program)
	if err != nil {
		sl.state.Store(empty)
		s.quarantine.warn("strategy runs with fewer instances: a new one could not be made, and is tried again each second",
			trap, err)
		if s.rejects { // counted by caller: no later request of one could end what this sets aside
			s.quarantine.keep(err)
		} else {
			s.quarantine.count(trap, err)
		}
		return retryStart, true
	}
	sl.put(in)
	sl.state.Store(idle)
	if !again {
		return 0, false
	}
	return restFactor * time.Since(t), false
}
