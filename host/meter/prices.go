package meter

// Prices of instructions in units; unitsPerFuel of them cost 1 fuel. Why these figures stands in the package
// documentation.
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
	unitsByte    = 1   // a byte of a function's body, at entry: the frame has up to 3 bytes for it
	unitsLocal   = 256 // a local or parameter: zeroing it, and its share of the stack
	unitsLeave   = 512 // leaves the compiled code for wazero's runtime: bulk operations, memory.grow, ref.func
)

// bulkShift prices bulk operations: 1 fuel for 16 bytes, and for 2 elements of a table.
const (
	bulkShift  = 4
	tableShift = 1
	growShift  = -10 // 1,024 fuel for a page of memory.grow
)

// form is what follows an opcode. By it the scanner knows how to pass the instruction.
type form uint8

const (
	formRefused     form = iota // not known, or not taken
	formPlain                   // nothing
	formIndex                   // an index that needs no check
	formLong                    // a number of up to 64 bits
	formBytes4                  // four bytes
	formBytes8                  // eight bytes
	formMemory                  // alignment and offset
	formTypes                   // a vector of types
	formLocal                   // index of a local
	formGlobal                  // index of a global
	formFunction                // index of a function
	formCall                    // the same, and the function is called
	formCallTable               // a type and a table, whose function is called
	formOpen                    // the type of a block
	formElse                    // nothing; the other arm of an if
	formEnd                     // nothing; the end of a block
	formBranch                  // a label
	formBranchTable             // a vector of labels and one more
	formLeave                   // nothing; the rest of the block is not reached
	formGrow                    // a memory; the price goes by the size on the stack
	formPrefix                  // the instruction itself, as a number
)

// shape is what the scanner must know of an opcode.
type shape struct {
	form  form
	units uint16
}

// shapes is indexed by opcode.
var shapes = func() (t [256]shape) {
	set := func(from, to int, f form, units uint16) {
		for op := from; op <= to; op++ {
			t[op] = shape{f, units}
		}
	}
	one := func(f form, units uint16, ops ...int) {
		for _, op := range ops {
			set(op, op, f, units)
		}
	}
	one(formPlain, unitsPlain, opNop, opDrop, opSelect, opRefIsNull)
	one(formLeave, unitsPlain, opUnreachable, opReturn)
	one(formOpen, 0, opBlock, opLoop, opIf)
	one(formElse, 0, opElse)
	one(formEnd, 0, opEnd)
	one(formBranch, unitsPlain, opBr, opBrIf)
	one(formBranchTable, unitsTable, opBrTable)
	one(formCall, unitsCall, opCall)
	one(formCallTable, unitsCall, opCallIndirect)
	one(formTypes, unitsPlain, opSelectTyped)
	set(opLocalGet, opLocalTee, formLocal, unitsPlain)
	one(formGlobal, unitsMemory, opGlobalGet, opGlobalSet)
	one(formIndex, unitsMemory, opTableGet, opTableSet)
	set(opI32Load, opI64Load32U, formMemory, unitsLoad)
	set(opI32Store, opI64Store32, formMemory, unitsStore)
	one(formIndex, unitsPlain, opMemorySize, opRefNull, opI32Const)
	one(formGrow, 0, opMemoryGrow)
	one(formLong, unitsPlain, opI64Const)
	one(formBytes4, unitsPlain, opF32Const)
	one(formBytes8, unitsPlain, opF64Const)
	set(opI32Eqz, opI64Extend32S, formPlain, unitsPlain)
	set(opF32Abs, opF64Reinterpret, formPlain, unitsFloat)
	set(opI32DivS, opI32RemU, formPlain, unitsSlow)
	set(opI64DivS, opI64RemU, formPlain, unitsSlow)
	one(formPlain, unitsSlow, opF32Sqrt, opF32Div, opF64Sqrt, opF64Div)
	one(formFunction, unitsLeave, opRefFunc)
	one(formPrefix, 0, opPrefix)
	return t
}()

// bulkShape is what the scanner must know of an instruction behind opPrefix.
type bulkShape struct {
	immediates int
	units      int  // the price, if not by size
	bySize     bool // the size on top of the stack costs fuel: size >> shift
	shift      int
}

// bulkShapes is indexed by the number behind opPrefix.
var bulkShapes = func() (t [opTableFill + 1]bulkShape) {
	for op := range opTruncSatLast + 1 {
		t[op] = bulkShape{units: unitsPlain}
	}
	for _, op := range []int{opDataDrop, opElemDrop, opTableSize} {
		t[op] = bulkShape{immediates: 1, units: unitsMemory}
	}
	t[opMemoryInit] = bulkShape{immediates: 2, bySize: true, shift: bulkShift}
	t[opMemoryCopy] = bulkShape{immediates: 2, bySize: true, shift: bulkShift}
	t[opMemoryFill] = bulkShape{immediates: 1, bySize: true, shift: bulkShift}
	t[opTableInit] = bulkShape{immediates: 2, bySize: true, shift: tableShift}
	t[opTableCopy] = bulkShape{immediates: 2, bySize: true, shift: tableShift}
	t[opTableGrow] = bulkShape{immediates: 1, bySize: true, shift: tableShift}
	t[opTableFill] = bulkShape{immediates: 1, bySize: true, shift: tableShift}
	return t
}()
