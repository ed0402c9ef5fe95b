package meter

import (
	"errors"
	"fmt"
)

// mostUnits is the most that one charge pays for: a longer run of instructions has several. No look at the clock ends
// what one charge pays for.
const mostUnits = 128 * unitsPerFuel

// scanner walks the bodies of functions, one after the other.
type scanner struct {
	*reader
	counts   *counts
	locals   int // with the parameters
	behind   int // offset behind the declared locals
	start    int // of the instruction at hand
	points   []point
	costs    []int // of the points, in units
	forks    int   // branches, labels of br_table, ifs and loops
	accesses int   // loads and stores
	blocks   nest
	straight bool // nothing but plain instructions stands before the one at hand
}

// scan walks one body, checks its instructions, and lists the points where fuel is taken: at entry, in each turn of a
// loop, before what is priced by size, and within what is long.
//
// A call of the refill within a loop is dear although it is hardly ever made: wazero's compiler stores all that lives
// beyond the call to memory, in each turn. Behind a loop's header it cost a pick a fifth, before each branch back, with
// the check, a tenth. So a second loop is put around, whose header alone calls the refill:
//
//	loop $outer  fuel < 0 ? call refill
//	  loop $inner  fuel < 0 ? br $outer  fuel -= turn ...
//
// A loop with parameters stays alone and calls the refill itself.
func (s *scanner) scan(body []byte, params int) error {
	r := &reader{b: body}
	locals := 0
	for range r.count() {
		k := r.u32()
		r.byte()
		locals += int(min(k, maxLocals+1))
		if locals > maxLocals {
			return fmt.Errorf("it has over %d locals", maxLocals)
		}
	}
	s.reader, s.locals, s.behind, s.start = r, params+locals, r.at, r.at
	s.points, s.costs, s.blocks = s.points[:0], s.costs[:0], s.blocks[:0]
	s.forks, s.accesses, s.straight = 0, 0, true
	s.blocks = append(s.blocks, block{cost: s.charge(s.start, takeRefill)})
	s.costs[0] = unitsLocal * s.locals
	for len(s.blocks) > 0 && s.more() {
		s.start = s.at
		if err := s.instruction(); err != nil {
			return err
		}
	}
	if len(s.blocks) > 0 {
		r.fail(errShort)
	}
	// Values in code that does not run take stack too: a frame has a place for each that lives across a call.
	s.costs[0] = max(s.costs[0], unitsByte*len(body))
	return r.done("code")
}

// effort returns what decides how long the function that was scanned takes to compile.
func (s *scanner) effort(size int) effort {
	return effort{bytes: size, forks: s.forks + len(s.costs), locals: s.locals, accesses: s.accesses}
}

// charge adds a charge at an offset and returns the index of its cost.
func (s *scanner) charge(at int, k kind) int {
	s.costs = append(s.costs, 0)
	s.points = append(s.points, point{at: at, kind: k, cost: len(s.costs) - 1})
	return len(s.costs) - 1
}

// pay adds units to the charge for the code at hand, or begins a new charge.
func (s *scanner) pay(units int) {
	b := s.blocks.top()
	if s.costs[b.cost] > 0 && s.costs[b.cost]+units > mostUnits {
		b.cost = s.charge(s.start, takeRefill)
	}
	s.costs[b.cost] += units
}

// instruction passes one instruction and prices it.
func (s *scanner) instruction() error {
	op := s.byte()
	known := shapes[op]
	if known.units > 0 {
		s.pay(int(known.units))
	}
	if known.form >= formCall {
		err := s.control(op, known)
		s.straight = false
		return err
	}
	switch known.form {
	case formRefused:
		return fmt.Errorf("it has %s; a module is the MVP with bulk memory, sign extension, saturating conversion and "+
			"reference types, nothing newer", refused(op))
	case formIndex:
		s.leb(5)
	case formLong:
		s.leb(10)
	case formBytes4:
		s.take(4)
	case formBytes8:
		s.take(8)
	case formMemory:
		s.accesses++
		s.leb(5)
		s.leb(5)
	case formTypes:
		s.take(uint32(s.count()))
	case formLocal:
		if err := s.checkIndex("local", s.locals); err != nil {
			return err
		}
	case formGlobal:
		if err := s.checkIndex("global", s.counts.globals); err != nil {
			return err
		}
	case formFunction:
		if err := s.function(); err != nil {
			return err
		}
	}
	return nil
}

// control passes an instruction that branches, calls, or takes a time that goes by a size.
func (s *scanner) control(op byte, known shape) error {
	switch known.form {
	case formCall:
		return s.function()
	case formCallTable: // type and, since reference types, a table as LEB128
		if i := s.u32(); s.err == nil {
			if err := s.counts.checkType(int64(i)); err != nil {
				return err
			}
		}
		s.leb(5)
	case formOpen:
		return s.open(op)
	case formElse: // a charge within the other arm does not pay for this one
		if n := len(s.blocks); n > 1 {
			s.blocks[n-1].cost = s.blocks[n-2].cost
		}
	case formEnd:
		s.end()
	case formBranch:
		s.labels(1)
	case formBranchTable:
		s.labels(s.count() + 1)
	case formGrow: // a page costs a quarter of 64 KiB of memory.fill: it is reserved, and zeroed when touched
		s.leb(5)
		s.bySize(growShift)
	case formPrefix:
		return s.prefixed()
	}
	return nil
}

// open passes the type of a block and opens it.
func (s *scanner) open(op byte) error {
	params, err := s.blockType()
	if err != nil {
		return err
	}
	if len(s.blocks) >= maxDepth {
		return fmt.Errorf("its blocks are nested over %d deep", maxDepth)
	}
	b := block{cost: s.blocks.top().cost}
	if op != opBlock {
		s.forks++
	}
	if op == opLoop {
		s.openLoop(&b, params == 0)
	}
	s.blocks = append(s.blocks, b)
	return nil
}

// openLoop charges a loop's turns. With outer, another loop is put around it.
func (s *scanner) openLoop(b *block, outer bool) {
	k := takeRefill
	if outer {
		k, b.outer = takeOrOuter, true
		s.points = append(s.points, point{at: s.start, kind: openOuter, typ: s.b[s.start+1 : s.at]})
		if s.straight { // the outer loop asks for fuel at once
			s.points[0].kind = take
		}
	}
	b.cost = s.charge(s.at, k)
}

// end closes the innermost block.
func (s *scanner) end() {
	if s.blocks.top().outer {
		s.points = append(s.points, point{at: s.start, kind: closeOuter})
	}
	s.blocks = s.blocks[:len(s.blocks)-1]
}

// labels passes n labels of a branch, and renumbers those that a loop put around another moves.
func (s *scanner) labels(n int) {
	s.forks += n
	for range n {
		from := s.at
		label := s.u32()
		if moved := s.blocks.movedLabel(label); s.err == nil && moved != label {
			s.points = append(s.points, point{at: from, cut: s.at - from, kind: renumber, index: int(moved)})
		}
	}
}

// function passes the index of a function, and renumbers the one that moves.
func (s *scanner) function() error {
	from := s.at
	i := s.u32()
	if s.err != nil {
		return nil
	}
	moved, err := s.counts.movedFunction(i)
	if moved != i && err == nil {
		s.points = append(s.points, point{at: from, cut: s.at - from, kind: renumber, index: int(moved)})
	}
	return err
}

// blockType passes an empty or a value type, or the index of a type as a signed number of 33 bits. It returns the
// number of parameters.
func (s *scanner) blockType() (params int, err error) {
	v := int64(0)
	for shift := 0; shift < 35; shift += 7 {
		c := s.byte()
		v |= int64(c&0x7f) << shift
		if c&0x80 != 0 {
			continue
		}
		if c&0x40 != 0 || s.err != nil { // negative: no index
			return 0, nil
		}
		if err := s.counts.checkType(v); err != nil {
			return 0, err
		}
		return s.counts.params[v], nil
	}
	return 0, errors.New("the type of a block is malformed")
}

// checkIndex passes a local or global index. Checking it here is what keeps a module from naming what the meter
// appends.
func (s *scanner) checkIndex(what string, n int) error {
	if i := s.u32(); s.err == nil && int64(i) >= int64(n) {
		return fmt.Errorf("it names %s %d of %d", what, i, n)
	}
	return nil
}

// bySize adds a charge by the size on top of the stack.
func (s *scanner) bySize(shift int) {
	s.costs[s.charge(s.start, takeBySize)] = unitsLeave
	s.points[len(s.points)-1].shift = shift
}

// prefixed passes the instructions behind opPrefix.
func (s *scanner) prefixed() error {
	op := s.u32()
	if op >= uint32(len(bulkShapes)) {
		return fmt.Errorf("it has instruction 0xfc %d, which is not known", op)
	}
	known := bulkShapes[op]
	for range known.immediates {
		s.leb(5)
	}
	if known.bySize {
		s.bySize(known.shift)
	} else {
		s.pay(known.units)
	}
	return nil
}
