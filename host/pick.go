package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/sys"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Result is what Pick decided.
type Result struct {
	Row      int           // of the frame; -1 only for a frame without rows
	Order    []int32       // all rows, best first, Order[0] == Row; aliases Frame.Order
	Reason   uint16        // the strategy's own code
	Flags    uint16        // abi.FlagBind
	Fuel     int64         // used
	Took     time.Duration // of Current.Pick, with the wait for an instance
	Fallback string        // why Fallback chose Row: trap, fuel, time, decline, bad_index, busy, quarantined, memory, closed, no_rows; "" = the module did

	// Reject is set if the strategy wants the client turned away. Row is then the fallback's, for a caller that serves it
	// all the same.
	Reject *Rejection
}

// Pick has the module choose a row of f. It never fails: on any error the fallback answers and says why. A live binding
// is honoured under every strategy, without asking the module. It does not allocate once f has been used.
func (s *Strategy) Pick(f *Frame) Result {
	if len(f.Rows) == 0 {
		s.counts[noRows].Add(1)
		f.Order = f.Order[:0]
		return Result{Row: -1, Order: f.Order, Fallback: reasonNames[noRows]}
	}
	f.prepare()
	if b := int(f.Header.Bound); b >= 0 && b < len(f.Rows) {
		f.order(b, nil)
		return Result{Row: b, Order: f.Order}
	}
	if until := s.retryAt.Load(); until != 0 && !s.admit(until) {
		return s.fallback(f, quarantined)
	}
	sl, waited := s.take()
	if sl == nil {
		if s.closed.Load() {
			return s.fallback(f, closed)
		}
		return s.fallback(f, busy)
	}
	if waited && !f.Began.IsZero() {
		f.Began = epoch.Add(s.clock()) // the wait was not the module's
	}
	r, why, err := sl.in.run(f)
	switch why {
	case ok:
		sl.picks.Add(1)
	case decline: // an answer, too
	default:
		s.discard(sl, why, err)
		fb := s.fallback(f, why)
		fb.Fuel = r.Fuel
		return fb
	}
	if sl.in.long(r.Fuel) {
		s.tookLong()
	} else if s.inARow.Load() != 0 || s.slow.Load() > 0 || s.retryAt.Load() != 0 {
		s.succeeded()
	}
	s.give(sl)
	if why == decline {
		fb := s.fallback(f, decline)
		fb.Fuel, fb.Reason = r.Fuel, r.Reason
		return fb
	}
	if r.Reject != nil {
		r.Row = Fallback(f)
		f.order(r.Row, nil)
	}
	r.Order = f.Order
	return r
}

func (s *Strategy) fallback(f *Frame, why reason) Result {
	s.counts[why].Add(1)
	row := Fallback(f)
	f.order(row, nil)
	return Result{Row: row, Order: f.Order, Fallback: reasonNames[why]}
}

// run pushes f, calls wp_pick and reads the answer. err is nil exactly when why is ok or decline; else in must be
// discarded.
func (in *instance) run(f *Frame) (r Result, why reason, err error) {
	n := len(f.Rows)
	limit := in.s.pickTime
	if n > in.room {
		if err := in.grow(1<<bits.Len(uint(n-1)), limit); err != nil {
			return r, in.blame(), err
		}
		limit -= in.left.spent // and not the clock's word: a machine that ran something else meanwhile would end the pick
	}
	l := &in.s.layout
	area, _ := in.mem.Read(in.base, uint32(l.FrameSize(in.room))) // grow checked it, and memories never shrink
	f.push(area, l)
	in.frame, in.said = f, ""
	in.beginPick(limit, f.began())
	err = in.pick.CallWithStack(in.ctx, in.stack[:])
	in.frame = nil
	r.Fuel = in.used(in.s.fuel)
	if err != nil {
		return r, in.blame(), in.describe(err, r.Fuel)
	}
	row, code, flags := abi.Unpack(in.stack[0])
	r.Row, r.Reason, r.Flags = int(row), code, flags
	switch {
	case row == abi.Decline:
		return r, decline, nil
	case row == abi.Reject:
		area, _ = in.mem.Read(in.base, uint32(l.HeaderBytes))
		r.Reject = readRejection(in.mem, area)
		return r, ok, nil
	case row < 0 || int(row) >= n:
		return r, badIndex, fmt.Errorf("host: module %q chose row %d of %d; want 0 to %d, abi.Decline or abi.Reject", in.s.name, row, n, n-1)
	}
	area, _ = in.mem.Read(in.base, uint32(l.FrameSize(in.room))) // again: the memory may have moved as it grew
	alternatives := min(uint64(binary.LittleEndian.Uint32(area[offOrderLen:])), uint64(n))
	orders := area[l.OrderAt(in.room):]
	f.order(r.Row, orders[:alternatives*abi.OrderSize])
	return r, ok, nil
}

// blame tells why a call failed, from the state it left. A guest runtime that gets no more memory traps in its own way,
// so that a memory within one Go arena (4 MiB) of its limit, grown since the start, counts as the cause.
func (in *instance) blame() reason {
	switch in.over {
	case errNoFuel:
		return outOfFuel
	case errNoTime:
		return outOfTime
	}
	if size := int(in.mem.Size()); size > in.born && size+(4<<20) > in.s.memory {
		return memory
	}
	return trap
}

// describe says why wp_pick failed and what to do about it.
func (in *instance) describe(err error, fuel int64) error {
	s := in.s
	switch in.over {
	case errNoFuel:
		return fmt.Errorf("host: module %q used up its fuel of %d; make it shorter or raise fuel", s.name, s.fuel)
	case errNoTime:
		return fmt.Errorf("host: module %q is not done after %v (and %d fuel of %d); make it shorter or raise pick_timeout",
			s.name, s.pickTime, fuel, s.fuel)
	}
	return fmt.Errorf("host: module %q: wp_pick: %w%s", s.name, cause(err), in.words())
}

// cause shortens wazero's error to its first line; the stack trace behind it names wasm functions by number.
func cause(err error) error {
	if err == nil {
		return nil
	}
	var exit *sys.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("it exits with code %d", exit.ExitCode())
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(first)
}
