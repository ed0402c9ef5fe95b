package meter

import "fmt"

// Section ids of the binary format.
const (
	secCustom byte = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
)

// Opcodes that the meter reads or writes by name. A range of them is named by its first and its last.
const (
	opUnreachable    = 0x00
	opNop            = 0x01
	opBlock          = 0x02
	opLoop           = 0x03
	opIf             = 0x04
	opElse           = 0x05
	opEnd            = 0x0b
	opBr             = 0x0c
	opBrIf           = 0x0d
	opBrTable        = 0x0e
	opReturn         = 0x0f
	opCall           = 0x10
	opCallIndirect   = 0x11
	opDrop           = 0x1a
	opSelect         = 0x1b
	opSelectTyped    = 0x1c
	opLocalGet       = 0x20
	opLocalTee       = 0x22
	opGlobalGet      = 0x23
	opGlobalSet      = 0x24
	opTableGet       = 0x25
	opTableSet       = 0x26
	opI32Load        = 0x28
	opI64Load32U     = 0x35
	opI32Store       = 0x36
	opI64Store32     = 0x3e
	opMemorySize     = 0x3f
	opMemoryGrow     = 0x40
	opI32Const       = 0x41
	opI64Const       = 0x42
	opF32Const       = 0x43
	opF64Const       = 0x44
	opI32Eqz         = 0x45
	opI64LtS         = 0x53
	opI64GeS         = 0x59
	opI32DivS        = 0x6d
	opI32RemU        = 0x70
	opI64Sub         = 0x7d
	opI64DivS        = 0x7f
	opI64RemU        = 0x82
	opI64Shl         = 0x86
	opI64ShrU        = 0x88
	opF32Abs         = 0x8b
	opF32Sqrt        = 0x91
	opF32Div         = 0x95
	opF64Sqrt        = 0x9f
	opF64Div         = 0xa3
	opI64ExtendI32U  = 0xad
	opF64Reinterpret = 0xbf
	opI64Extend32S   = 0xc4
	opRefNull        = 0xd0
	opRefIsNull      = 0xd1
	opRefFunc        = 0xd2
	opPrefix         = 0xfc
)

// Instructions behind opPrefix.
const (
	opTruncSatLast = 7
	opMemoryInit   = 8
	opDataDrop     = 9
	opMemoryCopy   = 10
	opMemoryFill   = 11
	opTableInit    = 12
	opElemDrop     = 13
	opTableCopy    = 14
	opTableGrow    = 15
	opTableSize    = 16
	opTableFill    = 17
)

// Bytes that stand for types.
const (
	typeI32   = 0x7f
	typeI64   = 0x7e
	typeFunc  = 0x60
	typeEmpty = 0x40 // of a block without parameters and results
)

// refused describes an instruction that the meter does not take, and what to do about it.
func refused(op byte) string {
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
