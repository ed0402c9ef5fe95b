package meter

import "fmt"

// Prices of instructions in units; unitsPerFuel of them cost 1 fuel. Why these figures stands in the package documentation.
const (
	unitsPerFuel = 32
	unitsPlain   = 1
	unitsMemory  = 2  // loads, stores, globals
	unitsCall    = 8  // the callee pays for itself; this is the spilling around it
	unitsSlow    = 64 // division, remainder, square root
	unitsLocal   = 32 // a local or parameter: zeroing it, and its share of the stack
	unitsRuntime = 64 // leaves the compiled code for wazero's runtime: bulk operations, memory.grow
)

type scanner struct {
	*reader
	globals, locals int
	points          []point
	blocks          []block
}

// pay adds units to the point that stands for the code being scanned.
func (s *scanner) pay(units int) { s.points[s.blocks[len(s.blocks)-1].point].units += units }

// instruction passes one instruction and prices it.
func (s *scanner) instruction() error {
	start := s.at
	op := s.byte()
	switch {
	case op == 0xfc:
		return s.prefixed(start)
	case op == 0x02, op == 0x03, op == 0x04:
		return s.open(op)
	case op == 0x0b:
		s.blocks = s.blocks[:len(s.blocks)-1]
		return nil
	case op >= 0x0c && op <= 0x11 && op != 0x0f:
		return s.branch(op)
	case op == 0x1c: // select with types
		s.take(uint32(s.count()))
	case op >= 0x20 && op <= 0x22:
		return s.index("local", s.locals, unitsPlain)
	case op == 0x23 || op == 0x24:
		return s.index("global", s.globals, unitsMemory)
	case op == 0x25, op == 0x26: // table.get, table.set
		s.leb(5)
		s.pay(unitsMemory)
	case op >= 0x28 && op <= 0x3e: // loads and stores
		s.leb(5)
		s.leb(5)
		s.pay(unitsMemory)
		return nil
	case op == 0x3f, op == 0xd0, op == 0xd2: // memory.size, ref.null, ref.func
		s.leb(5)
	case op == 0x40: // memory.grow: a page costs a quarter of 64 KiB of memory.fill: it is reserved, and zeroed when touched
		s.leb(5)
		s.points = append(s.points, point{at: start, units: unitsRuntime, bulk: true, shift: -growShift})
		return nil
	case op == 0x41:
		s.leb(5)
	case op == 0x42:
		s.leb(10)
	case op == 0x43:
		s.take(4)
	case op == 0x44:
		s.take(8)
	case slow(op):
		s.pay(unitsSlow)
		return nil
	case op <= 0x01, op == 0x05, op == 0x0f, op == 0x1a, op == 0x1b, op >= 0x45 && op <= 0xc4, op == 0xd1:
	default:
		return fmt.Errorf("it has %s; a module is the MVP with bulk memory, sign extension, saturating conversion and reference types, nothing newer", name(op))
	}
	s.pay(unitsPlain)
	return nil
}

// slow: i32/i64 div and rem, f32/f64 sqrt and div.
func slow(op byte) bool {
	return op >= 0x6d && op <= 0x70 || op >= 0x7f && op <= 0x82 || op == 0x91 || op == 0x95 || op == 0x9f || op == 0xa3
}

func (s *scanner) open(op byte) error {
	s.leb(5) // block type: 0x40, a value type, or a type index as signed 33-bit
	if len(s.blocks) >= maxDepth {
		return fmt.Errorf("its blocks are nested over %d deep", maxDepth)
	}
	b := block{point: s.blocks[len(s.blocks)-1].point}
	if op == 0x03 {
		b.point = len(s.points)
		s.points = append(s.points, point{at: s.at})
	}
	s.blocks = append(s.blocks, b)
	return nil
}

// branch passes br, br_if, br_table, call and call_indirect.
func (s *scanner) branch(op byte) error {
	units := unitsPlain
	switch op {
	case 0x0e:
		for range s.count() {
			s.leb(5)
		}
		s.leb(5)
		units = unitsMemory
	case 0x11: // type and, since reference types, a table as LEB128
		s.leb(5)
		s.leb(5)
		units = unitsCall
	case 0x10:
		s.leb(5)
		units = unitsCall
	default:
		s.leb(5)
	}
	s.pay(units)
	return nil
}

// index passes a local or global index. Checking it here is what keeps a module from naming what the meter appends.
func (s *scanner) index(what string, n, units int) error {
	if i := s.u32(); s.err == nil && int(i) >= n {
		return fmt.Errorf("it names %s %d of %d", what, i, n)
	}
	s.pay(units)
	return nil
}

// bulkShift prices bulk operations: 1 fuel for 16 bytes, and for 2 elements of a table.
const (
	bulkShift  = 4
	tableShift = 1
	growShift  = 10 // 1,024 fuel for a page of memory.grow
)

// prefixed passes the instructions behind 0xfc.
func (s *scanner) prefixed(start int) error {
	bulk := func(immediates, shift int) {
		for range immediates {
			s.leb(5)
		}
		s.points = append(s.points, point{at: start, units: unitsRuntime, bulk: true, shift: shift})
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

// name says what an instruction is that the meter refuses.
func name(op byte) string {
	switch {
	case op == 0xfd:
		return "a SIMD instruction (0xfd); build without simd128"
	case op == 0xfe:
		return "a threads instruction (0xfe); build without atomics"
	case op >= 0x06 && op <= 0x0a, op == 0x18, op == 0x19, op == 0x1f:
		return fmt.Sprintf("an exception instruction (%#02x); build without exception handling", op)
	case op == 0x12, op == 0x13, op == 0x15:
		return fmt.Sprintf("a tail call (%#02x); build without tail calls", op)
	case op == 0x14:
		return "a typed function reference (0x14)"
	case op == 0xfb:
		return "a garbage collection instruction (0xfb)"
	}
	return fmt.Sprintf("instruction %#02x, which is not known", op)
}
