package meter

import (
	"errors"
	"fmt"
	"slices"
)

// mostUnits is the most that one charge pays for: a longer run of instructions has several. What one pays for runs to its
// end whatever the clock says.
const mostUnits = 128 * unitsPerFuel

// scanner walks the bodies of functions, one after the other.
type scanner struct {
	*reader
	w      *rewriter
	locals int // with the parameters
	behind int // offset behind the declared locals
	start  int // of the instruction at hand
	points []point
	costs  []int // of the points, in units
	forks  int   // branches, labels of br_table, ifs and loops
	blocks []block
}

// block is an open block.
type block struct {
	cost  int  // what its instructions are added to
	turn  int  // a loop: the cost of a turn; -1 = no loop
	first bool // a loop: its first turn is paid with what stands before it
}

// scan walks one body, checks its instructions, and lists the points where fuel is taken: at entry, before a loop and before
// each branch back to its start, before what is priced by size, and within what is long.
//
// The charge of a turn does not stand behind the loop's header, where it would be one and not several: what a loop carries
// from turn to turn is defined there, and wazero's compiler stores all that is defined before a call to memory, in each turn,
// for the sake of a call that is hardly ever made. A pick of prefixaware took a fifth longer.
func (s *scanner) scan(body []byte, params int) error {
	r := &reader{b: body}
	locals := 0
	for range r.count() {
		k := r.u32()
		r.byte()
		if locals += int(min(k, maxLocals+1)); locals > maxLocals {
			return fmt.Errorf("it has over %d locals", maxLocals)
		}
	}
	s.reader, s.locals, s.behind, s.start = r, params+locals, r.at, r.at
	s.points, s.costs, s.blocks, s.forks = s.points[:0], s.costs[:0], s.blocks[:0], 0
	s.blocks = append(s.blocks, block{cost: s.point(), turn: -1})
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
	if err := r.done("code"); err != nil {
		return err
	}
	return s.compiles(len(body))
}

// point adds a charge in front of the instruction at hand and gives the index of its cost.
func (s *scanner) point() int {
	s.costs = append(s.costs, 0)
	s.points = append(s.points, point{at: s.start, cost: len(s.costs) - 1})
	return len(s.costs) - 1
}

// top is the innermost open block.
func (s *scanner) top() *block { return &s.blocks[len(s.blocks)-1] }

// pay adds units to the charge for the code at hand, or begins a new charge.
func (s *scanner) pay(units int) {
	b := s.top()
	if s.costs[b.cost] > 0 && s.costs[b.cost]+units > mostUnits {
		b.cost = s.point()
	}
	s.costs[b.cost] += units
}

// instruction passes one instruction and prices it.
func (s *scanner) instruction() error {
	op := s.byte()
	switch {
	case op == 0xfc:
		return s.prefixed()
	case op == 0x02, op == 0x03, op == 0x04:
		return s.open(op)
	case op == 0x05: // else: a charge within the other arm does not pay for this one
		if n := len(s.blocks); n > 1 {
			s.blocks[n-1].cost = s.blocks[n-2].cost
		}
		return nil
	case op == 0x0b:
		s.end()
		return nil
	case op >= 0x0c && op <= 0x11 && op != 0x0f:
		return s.branch(op)
	case op == 0x1c: // select with types
		s.take(uint32(s.count()))
	case op >= 0x20 && op <= 0x22:
		return s.index("local", s.locals, unitsPlain)
	case op == 0x23 || op == 0x24:
		return s.index("global", s.w.globals, unitsMemory)
	case op == 0x25, op == 0x26: // table.get, table.set
		s.leb(5)
		s.pay(unitsMemory)
		return nil
	case op >= 0x28 && op <= 0x3e: // loads and stores
		s.leb(5)
		s.leb(5)
		if op <= 0x35 {
			s.pay(unitsLoad)
		} else {
			s.pay(unitsStore)
		}
		return nil
	case op == 0x3f, op == 0xd0: // memory.size, ref.null
		s.leb(5)
	case op == 0xd2:
		return s.function(unitsLeave)
	case op == 0x40: // memory.grow: a page costs a quarter of 64 KiB of memory.fill: it is reserved, and zeroed when touched
		s.leb(5)
		s.bulk(-growShift)
		return nil
	case op == 0x41:
		s.leb(5)
	case op == 0x42:
		s.leb(10)
	case op == 0x43:
		s.take(4)
	case op == 0x44:
		s.take(8)
	case op >= 0x45 && op <= 0xc4:
		s.pay(numeric(op))
		return nil
	case op <= 0x01, op == 0x0f, op == 0x1a, op == 0x1b, op == 0xd1:
	default:
		return fmt.Errorf("it has %s; a module is the MVP with bulk memory, sign extension, saturating conversion and reference types, nothing newer", name(op))
	}
	s.pay(unitsPlain)
	return nil
}

func (s *scanner) open(op byte) error {
	if err := s.blockType(); err != nil {
		return err
	}
	if len(s.blocks) >= maxDepth {
		return fmt.Errorf("its blocks are nested over %d deep", maxDepth)
	}
	b := block{cost: s.top().cost, turn: -1}
	if op != 0x02 {
		s.forks++
	}
	if op == 0x03 {
		if b.first = s.first(b.cost); b.first {
			s.costs = append(s.costs, 0)
			b.cost = len(s.costs) - 1
		} else {
			b.cost = s.point()
		}
		b.turn = b.cost
	}
	s.blocks = append(s.blocks, b)
	return nil
}

// first says whether the first turn of a loop that opens here can be paid with what stands before it. Nested loops are not:
// each would add the turns of all in it.
func (s *scanner) first(cost int) bool {
	return s.costs[cost] <= mostUnits/2 && !slices.ContainsFunc(s.blocks, func(b block) bool { return b.turn >= 0 })
}

// end closes the innermost block.
func (s *scanner) end() {
	b := s.blocks[len(s.blocks)-1]
	if s.blocks = s.blocks[:len(s.blocks)-1]; b.first {
		s.costs[s.top().cost] += s.costs[b.turn]
	}
}

// branch passes br, br_if, br_table, call and call_indirect.
func (s *scanner) branch(op byte) error {
	switch op {
	case 0x10:
		return s.function(unitsCall)
	case 0x11: // type and, since reference types, a table as LEB128
		if err := s.typeIndex(int64(s.u32())); err != nil {
			return err
		}
		s.leb(5)
		s.pay(unitsCall)
		return nil
	case 0x0e:
		var turns []int
		n := s.count() + 1
		s.forks += n
		for range n {
			if t := s.turn(s.u32()); t >= 0 && !slices.Contains(turns, t) {
				turns = append(turns, t)
			}
		}
		s.again(turns...)
		s.pay(unitsTable)
		return nil
	}
	s.forks++
	s.again(s.turn(s.u32()))
	s.pay(unitsPlain)
	return nil
}

// turn is the cost of a turn of the loop to whose start a label leads; -1 = it leads to no loop.
func (s *scanner) turn(label uint32) int {
	if int64(label) >= int64(len(s.blocks)) {
		return -1 // not valid
	}
	return s.blocks[len(s.blocks)-1-int(label)].turn
}

// again adds the charges for the next turn of loops, before the branch at hand.
func (s *scanner) again(turns ...int) {
	for _, t := range turns {
		if t >= 0 {
			s.points = append(s.points, point{at: s.start, cost: t})
		}
	}
}

// function passes the index of a function, and notes the one that moves.
func (s *scanner) function(units int) error {
	s.pay(units)
	from := s.at
	i := s.u32()
	if s.err != nil {
		return nil
	}
	to, err := s.w.function(i)
	if to != i && err == nil {
		s.points = append(s.points, point{at: from, kind: rename, cut: s.at - from})
	}
	return err
}

// blockType passes 0x40, a value type, or the index of a type as a signed number of 33 bits.
func (s *scanner) blockType() error {
	v := int64(0)
	for shift := 0; shift < 35; shift += 7 {
		c := s.byte()
		v |= int64(c&0x7f) << shift
		if c&0x80 == 0 {
			if c&0x40 != 0 { // negative: no index
				return nil
			}
			return s.typeIndex(v)
		}
	}
	return errors.New("the type of a block is malformed")
}

// typeIndex checks the index of a type: the one behind the module's is ours.
func (s *scanner) typeIndex(i int64) error {
	if n := int64(len(s.w.params)); s.err == nil && i >= n {
		return fmt.Errorf("it names type %d of %d", i, n)
	}
	return nil
}

// index passes a local or global index. Checking it here is what keeps a module from naming what the meter appends.
func (s *scanner) index(what string, n, units int) error {
	if i := s.u32(); s.err == nil && int64(i) >= int64(n) {
		return fmt.Errorf("it names %s %d of %d", what, i, n)
	}
	s.pay(units)
	return nil
}

// bulk adds a charge by the size on top of the stack.
func (s *scanner) bulk(shift int) {
	s.costs[s.point()] = unitsLeave
	p := &s.points[len(s.points)-1]
	p.kind, p.shift = bulk, shift
}

// prefixed passes the instructions behind 0xfc.
func (s *scanner) prefixed() error {
	bulk := func(immediates, shift int) {
		for range immediates {
			s.leb(5)
		}
		s.bulk(shift)
	}
	switch op := s.u32(); {
	case op <= 7: // saturating conversion
		s.pay(unitsPlain)
	case op == 8, op == 10: // memory.init, memory.copy
		bulk(2, bulkShift)
	case op == 11: // memory.fill
		bulk(1, bulkShift)
	case op == 12, op == 14: // table.init, table.copy
		bulk(2, tableShift)
	case op == 15, op == 17: // table.grow, table.fill
		bulk(1, tableShift)
	case op == 9, op == 13, op == 16: // data.drop, elem.drop, table.size
		s.leb(5)
		s.pay(unitsMemory)
	default:
		return fmt.Errorf("it has instruction 0xfc %d, which is not known", op)
	}
	return nil
}
