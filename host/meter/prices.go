package meter

import "fmt"

// Prices of instructions in units; unitsPerFuel of them cost 1 fuel. Why these figures stands in the package documentation.
const (
	unitsPerFuel = 256
	unitsPlain   = 1
	unitsMemory  = 2   // globals, tables
	unitsCall    = 8   // the callee pays for itself; this is the spilling around it
	unitsTable   = 16  // br_table: 20 ns if it is not foreseen
	unitsFloat   = 16  // 50 ns with denormals, on processors that have no fast way for them
	unitsStore   = 24  // 60 ns at random
	unitsLoad    = 48  // 100 ns after another one, from memory that is in no cache
	unitsSlow    = 64  // division, remainder, square root
	unitsLocal   = 256 // a local or parameter: zeroing it, and its share of the stack
	unitsLeave   = 512 // leaves the compiled code for wazero's runtime: bulk operations, memory.grow, ref.func
)

// bulkShift prices bulk operations: 1 fuel for 16 bytes, and for 2 elements of a table.
const (
	bulkShift  = 4
	tableShift = 1
	growShift  = 10 // 1,024 fuel for a page of memory.grow
)

// numeric prices comparisons, arithmetic and conversions, opcodes 0x45 to 0xc4.
func numeric(op byte) int {
	switch {
	case op >= 0x6d && op <= 0x70, op >= 0x7f && op <= 0x82: // i32, i64: div, rem
		return unitsSlow
	case op == 0x91, op == 0x95, op == 0x9f, op == 0xa3: // f32, f64: sqrt, div
		return unitsSlow
	}
	if op >= 0x8b && op <= 0xbf {
		return unitsFloat
	}
	return unitsPlain
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
