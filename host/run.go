package host

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/warmpath/warmpath/sdk/abi"
)

// sinceOnly is the version that brought abi.FlagOnly, Header.HoldMillis and Header.PairRow.
const sinceOnly = 1<<16 | 2

// enter pushes f, and calls wp_pick or wp_filter. It returns the answer, and the fuel used.
func (in *instance) enter(f *Frame, filters bool) (answer uint64, fuel int64, err error) {
	limit := in.program.pickTime
	if rows := len(f.Rows); rows > in.room {
		if err := in.grow(1<<bits.Len(uint(rows-1)), limit); err != nil {
			return 0, 0, err
		}
		limit -= in.left.spent // not the time by the clock: a machine that ran something else meanwhile would end the pick
	}
	l := &in.program.layout
	area, _ := in.mem.Read(in.base, uint32(l.FrameSize(in.room))) // grow checked it, and memories never shrink
	f.push(area, l)
	in.frame, in.said = f, ""
	called, name := in.pick, "wp_pick"
	in.running = in.picking
	if filters {
		called, name = in.filter, "wp_filter"
		in.running = in.filters
	}
	in.beginPick(limit, f.began())
	err = called.CallWithStack(in.ctx, in.stack[:])
	in.frame = nil
	fuel = in.used(in.program.fuel)
	if err != nil {
		return 0, fuel, in.describe(name, err, fuel)
	}
	if in.said != "" {
		in.printed(f)
	}
	return in.stack[0], fuel, nil
}

// run has the module decide on f, or filter its rows, and reads the answer. err is nil exactly when why is ok or
// decline; else in must be discarded.
func (in *instance) run(f *Frame, filters bool) (r Result, why reason, err error) {
	answer, fuel, err := in.enter(f, filters)
	r.Fuel = fuel
	if err != nil {
		return r, in.blame(), err
	}
	n, l := f.Choices(), &in.program.layout
	row, code, flags := abi.Unpack(answer)
	if l.Version < sinceOnly {
		flags &= abi.FlagBind // whatever stands in the other bits means nothing in its version
	}
	r.Row, r.Reason, r.Flags = int(row), code, flags
	if filters {
		return in.kept(f, r)
	}
	if flags&abi.FlagBind != 0 && !in.program.binds.Load() {
		in.program.binds.Store(true)
	}
	switch {
	case row == abi.Decline:
		return r, decline, nil
	case row == abi.Reject:
		area, _ := in.mem.Read(in.base, uint32(l.HeaderBytes))
		r.Reject = readRejection(in.mem, area)
		return r, ok, nil
	case row == abi.Hold:
		area, _ := in.mem.Read(in.base, uint32(l.HeaderBytes))
		r.Hold = readHold(area)
		if r.Hold > 0 {
			return r, ok, nil
		}
		if l.Version >= sinceOnly {
			return r, decline, nil
		}
	}
	if row >= 0 && int(row) >= n && int(row) < len(f.Rows) {
		return r, badIndex, fmt.Errorf("host: module %q chose row %d, a prefiller, for the answer; choose one of the "+
			"first %d, and name prefillers by sdk.Request.Pair", in.program.name, row, n)
	}
	if row < 0 || int(row) >= n {
		return r, badIndex, fmt.Errorf("host: module %q chose row %d of %d; want 0 to %d, %d (Decline), %d (Reject) "+
			"or %d (Hold)", in.program.name, row, n, n-1, abi.Decline, abi.Reject, abi.Hold)
	}
	area, _ := in.mem.Read(in.base, uint32(l.FrameSize(in.room))) // again: the memory may have moved as it grew
	if in.program.wants&abi.WantPair != 0 && l.Version >= sinceOnly {
		r.Pair = in.readPair(f, r.Row, area)
	}
	alternatives := min(uint64(binary.LittleEndian.Uint32(area[offOrderLen:])), uint64(len(f.Rows)))
	orders := area[l.OrderAt(in.room):]
	r.Named = f.order(r.Row, orders[:alternatives*abi.OrderSize], flags&abi.FlagOnly != 0)
	return r, ok, nil
}

// kept reads which rows wp_filter keeps, whose number stands in r.Row, or how it turns the client away.
func (in *instance) kept(f *Frame, r Result) (Result, reason, error) {
	n, l := r.Row, &in.program.layout
	area, _ := in.mem.Read(in.base, uint32(l.FrameSize(in.room)))
	switch {
	case n == int(abi.Decline):
		return r, decline, nil
	case n == int(abi.Reject):
		r.Reject = readRejection(in.mem, area[:l.HeaderBytes])
		return r, ok, nil
	case n < 0 || n > len(f.Rows):
		return r, badIndex, fmt.Errorf("host: module %q keeps %d of %d rows; want 0 to %d, sdk.Decline or sdk.Reject",
			in.program.name, n, len(f.Rows), len(f.Rows))
	}
	f.Order = f.Order[:0]
	for at := l.OrderAt(in.room); len(f.Order) < n; at += abi.OrderSize {
		row := binary.LittleEndian.Uint32(area[at:])
		if int64(row) >= int64(len(f.Rows)) {
			return r, badIndex, fmt.Errorf("host: module %q keeps row %d of %d; keep rows that there are",
				in.program.name, row, len(f.Rows))
		}
		f.Order = append(f.Order, int32(row))
	}
	return r, ok, nil
}

// pairOf returns Result.Pair for a strategy that chose row and named a row for the prompt, which may be the same. ok is
// false if the named worker computes no prompts for others.
func pairOf(f *Frame, row int, named int32) (pair int, ok bool) {
	i := int(named)
	if i == row || i >= 0 && i < len(f.Rows) && f.Rows[i].Prefills() {
		return i + 1, true
	}
	return 0, i == -1
}

// readPair reads which row the module has named for the prompt. It logs the first that computes none for others.
func (in *instance) readPair(f *Frame, row int, area []byte) int {
	p, named := in.program, int32(binary.LittleEndian.Uint32(area[offPairRow:]))
	pair, ok := pairOf(f, row, named)
	if !ok && !p.mispaired.Swap(true) {
		p.log.Warn("the strategy has named a worker for a prompt that computes none for others, and the router chooses one; "+
			"name a row that prefills", "row", named, "rows", len(f.Rows))
	}
	return pair
}

// classify pushes the header of f and calls wp_classify.
func (in *instance) classify(f *Frame) (uint64, error) {
	const export = "wp_classify"
	f.prepare()
	area, _ := in.mem.Read(in.base, uint32(in.program.layout.FrameSize(in.room)))
	f.push(area, &in.program.layout)
	in.frame, in.said = f, ""
	err := in.bounded(in.export(export), in.program.fuel, in.program.pickTime, export)
	in.frame = nil
	return in.stack[0], err
}

// blame returns why a call failed, from the state it left. A guest runtime that gets no more memory traps in its own
// way. So a memory within one Go arena (4 MiB) of its limit, grown since the start, counts as the cause.
func (in *instance) blame() reason {
	switch in.over {
	case errNoFuel:
		return outOfFuel
	case errNoTime:
		return outOfTime
	case errNoStack:
		return memory
	}
	if size := int(in.mem.Size()); size > in.born && size+(4<<20) > in.program.memory {
		return memory
	}
	return trap
}

// describe returns an error with why a call of the named export failed and what to do about it.
func (in *instance) describe(name string, err error, fuel int64) error {
	p := in.program
	switch in.over {
	case errNoFuel:
		return fmt.Errorf("host: module %q used up its fuel of %d; look for an endless loop or recursion, a wait "+
			"(time.Sleep) or much memory at once, make it shorter or raise fuel", p.name, p.fuel)
	case errNoTime:
		return fmt.Errorf("host: module %q is not done after %v (and %d fuel of %d); look for an endless loop, make it "+
			"shorter or raise pick_timeout", p.name, p.pickTime, fuel, p.fuel)
	case errNoStack:
		return fmt.Errorf("host: module %q calls itself so deep that its stack takes %d KB, over %d; have it recurse less "+
			"or raise memory_mb, of which this is one part in %d",
			p.name, in.running.size()>>10, p.memory/stackShare>>10, stackShare)
	}
	if in.blame() == memory {
		return fmt.Errorf("host: module %q failed with %d MB of memory, of %d; have it keep less or raise memory_mb: %w%s",
			p.name, in.mem.Size()>>20, p.memory>>20, cause(err), in.words())
	}
	return fmt.Errorf("host: module %q: %s: %w%s", p.name, name, cause(err), in.words())
}
