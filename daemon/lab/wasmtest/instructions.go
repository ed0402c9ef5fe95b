package wasmtest

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// assembler writes the instructions of one function.
type assembler struct {
	m      *module
	f      function
	rest   []node   // behind the instruction at hand
	labels []string // of the open blocks
	out    []byte
}

// instructions assembles plain instructions; labels are numbers or $names.
func (m *module) instructions(f function, l []node) ([]byte, error) {
	a := assembler{m: m, f: f, rest: l}
	for len(a.rest) > 0 {
		n := a.rest[0]
		a.rest = a.rest[1:]
		if n.isL {
			return nil, fmt.Errorf("wasmtest: folded instruction (%s ...) is not supported; write it plain", n.head())
		}
		if err := a.instruction(n.atom); err != nil {
			return nil, err
		}
	}
	return a.out, nil
}

// argument takes the atom behind an instruction; "" = there is none.
func (a *assembler) argument() string {
	if len(a.rest) == 0 || a.rest[0].isL {
		return ""
	}
	atom := a.rest[0].atom
	a.rest = a.rest[1:]
	return atom
}

// signature takes (param ...) and (result ...) behind an instruction.
func (a *assembler) signature() (signature, error) {
	var s signature
	for len(a.rest) > 0 && a.rest[0].isL {
		part, _, err := header(a.rest[:1])
		if err != nil {
			return s, err
		}
		a.rest = a.rest[1:]
		s.params += part.sig.params
		s.results += part.sig.results
	}
	return s, nil
}

// instruction assembles one instruction with what stands behind it.
func (a *assembler) instruction(op string) error {
	if raw, ok := fixed[op]; ok {
		if op == "end" && len(a.labels) > 0 {
			a.labels = a.labels[:len(a.labels)-1]
		}
		a.out = append(a.out, raw...)
		return nil
	}
	if known, ok := immediates[op]; ok {
		a.out = append(a.out, known.code...)
		return known.write(a)
	}
	return fmt.Errorf("wasmtest: instruction %q is not known", op)
}

// immediate is an instruction with what writes its immediates.
type immediate struct {
	code  []byte
	write func(*assembler) error
}

// immediates are the instructions that have some.
var immediates = map[string]immediate{
	"block":         {[]byte{0x02}, (*assembler).open},
	"loop":          {[]byte{0x03}, (*assembler).open},
	"if":            {[]byte{0x04}, (*assembler).open},
	"br":            {[]byte{0x0c}, (*assembler).branch},
	"br_if":         {[]byte{0x0d}, (*assembler).branch},
	"br_table":      {[]byte{0x0e}, (*assembler).branchTable},
	"call":          {[]byte{0x10}, (*assembler).function},
	"call_indirect": {[]byte{0x11}, (*assembler).callIndirect},
	"return_call":   {[]byte{0x12}, (*assembler).function},
	"local.get":     {[]byte{0x20}, (*assembler).local},
	"local.set":     {[]byte{0x21}, (*assembler).local},
	"local.tee":     {[]byte{0x22}, (*assembler).local},
	"global.get":    {[]byte{0x23}, (*assembler).global},
	"global.set":    {[]byte{0x24}, (*assembler).global},
	"i32.const":     {[]byte{0x41}, (*assembler).int32},
	"i64.const":     {[]byte{0x42}, (*assembler).int64},
	"f32.const":     {[]byte{0x43}, (*assembler).float32},
	"f64.const":     {[]byte{0x44}, (*assembler).float64},
	"ref.func":      {[]byte{0xd2}, (*assembler).function},
	"memory.init":   {[]byte{0xfc, 8}, (*assembler).memoryInit},
	"data.drop":     {[]byte{0xfc, 9}, (*assembler).data},
}

func (a *assembler) open() error {
	name := ""
	if len(a.rest) > 0 && strings.HasPrefix(a.rest[0].atom, "$") {
		name = a.argument()
	}
	a.labels = append(a.labels, name)
	s, err := a.signature()
	if err != nil {
		return err
	}
	switch {
	case s == signature{}:
		a.out = append(a.out, 0x40)
	case s.params == "" && len(s.results) == 1:
		a.out = append(a.out, s.results[0])
	default:
		a.out = sleb(a.out, int64(a.m.typeOf(s)))
	}
	return nil
}

// label returns the number of a label.
func (a *assembler) label(s string) (uint64, error) {
	for i := len(a.labels) - 1; i >= 0 && !digit(s); i-- {
		if a.labels[i] == s && s != "" {
			return uint64(len(a.labels) - 1 - i), nil
		}
	}
	return strconv.ParseUint(s, 10, 32)
}

func (a *assembler) branch() error { return a.number(a.label(a.argument())) }

func (a *assembler) branchTable() error {
	var table []byte
	n := 0
	for ; len(a.rest) > 0 && (strings.HasPrefix(a.rest[0].atom, "$") || digit(a.rest[0].atom)); n++ {
		l, err := a.label(a.argument())
		if err != nil {
			return err
		}
		table = uleb(table, l)
	}
	a.out = append(uleb(a.out, uint64(n-1)), table...)
	return nil
}

// callIndirect writes the type that follows, and table 0.
func (a *assembler) callIndirect() error {
	s, err := a.signature()
	a.out = append(uleb(a.out, uint64(a.m.typeOf(s))), 0)
	return err
}

// number writes an index, or passes the error on.
func (a *assembler) number(v uint64, err error) error {
	a.out = uleb(a.out, v)
	return err
}

func (a *assembler) function() error { return a.number(index(a.m.funcs, a.argument())) }
func (a *assembler) local() error    { return a.number(index(a.f.names, a.argument())) }
func (a *assembler) global() error   { return a.number(index(a.m.globals, a.argument())) }

func (a *assembler) data() error {
	n, err := number(a.argument())
	return a.number(uint64(n), err)
}

func (a *assembler) memoryInit() error {
	err := a.data()
	a.out = append(a.out, 0)
	return err
}

func (a *assembler) int32() error {
	n, err := number(a.argument())
	a.out = sleb(a.out, int64(int32(n)))
	return err
}

func (a *assembler) int64() error {
	n, err := number(a.argument())
	a.out = sleb(a.out, n)
	return err
}

func (a *assembler) float32() error {
	x, err := strconv.ParseFloat(a.argument(), 32)
	a.out = binary.LittleEndian.AppendUint32(a.out, math.Float32bits(float32(x)))
	return err
}

func (a *assembler) float64() error {
	x, err := strconv.ParseFloat(a.argument(), 64)
	a.out = binary.LittleEndian.AppendUint64(a.out, math.Float64bits(x))
	return err
}
