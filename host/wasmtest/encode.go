package wasmtest

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

var valueTypes = map[string]byte{"i32": 0x7f, "i64": 0x7e, "f32": 0x7d, "f64": 0x7c, "v128": 0x7b, "funcref": 0x70}

func (m *module) encode() ([]byte, error) {
	var code []byte
	for _, f := range m.bodies {
		b := uleb(nil, uint64(len(f.locals)))
		for _, t := range f.locals {
			b = append(b, 1, t)
		}
		ins, err := m.instructions(f, f.body)
		if err != nil {
			return nil, err
		}
		code = bytes(code, append(append(b, ins...), 0x0b))
	}
	var types, funcs, exports, start []byte
	for _, t := range m.types {
		types = bytes(bytes(append(types, 0x60), []byte(t.params)), []byte(t.results))
	}
	for _, s := range m.sigs {
		funcs = uleb(funcs, uint64(s))
	}
	for _, e := range m.exports {
		i, err := m.index(m.funcs, e.index)
		if err != nil {
			return nil, err
		}
		exports = uleb(append(bytes(exports, []byte(e.name)), e.kind), i)
	}
	elems, err := m.elements()
	if err != nil {
		return nil, err
	}
	if m.start != "" {
		i, err := m.index(m.funcs, m.start)
		if err != nil {
			return nil, err
		}
		start = uleb(nil, i)
	}
	out := []byte("\x00asm\x01\x00\x00\x00")
	vec := func(id byte, n int, b []byte) {
		if n > 0 {
			out = bytes(append(out, id), append(uleb(nil, uint64(n)), b...))
		}
	}
	vec(1, len(m.types), types)
	vec(2, m.nimport, m.imports)
	vec(3, len(m.sigs), funcs)
	vec(4, min(1, len(m.table)), m.table)
	vec(5, min(1, len(m.memory)), m.memory)
	vec(6, m.nglobal, m.global)
	vec(7, len(m.exports), exports)
	if start != nil {
		out = bytes(append(out, 8), start)
	}
	vec(9, len(m.elems), elems)
	if m.ndata > 0 {
		out = bytes(append(out, 12), uleb(nil, uint64(m.ndata)))
	}
	vec(10, len(m.bodies), code)
	vec(11, m.ndata, m.datas)
	return out, nil
}

// elements writes (elem (i32.const 0) $f ...).
func (m *module) elements() ([]byte, error) {
	var elems []byte
	for _, n := range m.elems {
		at, err := number(n.list[1].list[1].atom)
		if err != nil {
			return nil, err
		}
		elems = uleb(append(sleb(append(elems, 0, 0x41), at), 0x0b), uint64(len(n.list)-2))
		for _, f := range n.list[2:] {
			i, err := m.index(m.funcs, f.atom)
			if err != nil {
				return nil, err
			}
			elems = uleb(elems, i)
		}
	}
	return elems, nil
}

// instructions assembles plain instructions; labels are numbers or $names.
func (m *module) instructions(f function, l []node) ([]byte, error) {
	var b []byte
	var labels []string
	for i := 0; i < len(l); i++ {
		op := l[i].atom
		arg := func() string {
			if i+1 < len(l) && !l[i+1].isL {
				i++
				return l[i].atom
			}
			return ""
		}
		var err error
		switch {
		case op == "block" || op == "loop" || op == "if":
			b = append(b, map[string]byte{"block": 2, "loop": 3, "if": 4}[op])
			labels = append(labels, "")
			if i+1 < len(l) && strings.HasPrefix(l[i+1].atom, "$") {
				labels[len(labels)-1] = arg()
			}
			var sig signature
			for i+1 < len(l) && l[i+1].isL {
				i++
				part, _, err := header(l[i : i+1])
				if err != nil {
					return nil, err
				}
				sig.params += part.sig.params
				sig.results += part.sig.results
			}
			b = m.blockType(b, sig)
		case op == "br" || op == "br_if":
			b = append(b, map[string]byte{"br": 0x0c, "br_if": 0x0d}[op])
			b, err = label(b, labels, arg())
		case op == "br_table":
			var t []byte
			n := 0
			for ; i+1 < len(l) && (strings.HasPrefix(l[i+1].atom, "$") || digit(l[i+1].atom)); n++ {
				if t, err = label(t, labels, arg()); err != nil {
					return nil, err
				}
			}
			b = append(uleb(append(b, 0x0e), uint64(n-1)), t...)
		default:
			if op == "end" && len(labels) > 0 {
				labels = labels[:len(labels)-1]
			}
			if l[i].isL {
				return nil, fmt.Errorf("wasmtest: folded instruction (%s ...) is not supported; write it plain", l[i].head())
			}
			b, err = m.simple(b, f, op, arg)
			if op == "call_indirect" {
				part, _, e := header(l[i+1 : i+1])
				for err = e; err == nil && i+1 < len(l) && l[i+1].isL; i++ {
					var p function
					p, _, err = header(l[i+1 : i+2])
					part.sig.params += p.sig.params
					part.sig.results += p.sig.results
				}
				b = append(uleb(append(b, 0x11), uint64(m.typeOf(part.sig))), 0)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (m *module) blockType(b []byte, s signature) []byte {
	switch {
	case s == signature{}:
		return append(b, 0x40)
	case s.params == "" && len(s.results) == 1:
		return append(b, s.results[0])
	}
	return sleb(b, int64(m.typeOf(s)))
}

var (
	ops28 = strings.Fields(from28)
	ops45 = strings.Fields(from45)
)

// simple assembles one instruction that opens no block and branches nowhere.
func (m *module) simple(b []byte, f function, op string, arg func() string) ([]byte, error) {
	if raw, ok := fixed[op]; ok {
		return append(b, raw...), nil
	}
	for i, name := range ops45 {
		if name == op {
			return append(b, byte(0x45+i)), nil
		}
	}
	for i, name := range ops28 {
		if name == op {
			return append(b, byte(0x28+i), 0, 0), nil
		}
	}
	var err error
	var v uint64
	var n int64
	switch op {
	case "call_indirect":
		return b, nil // the caller reads the type that follows
	case "call", "return_call":
		v, err = m.index(m.funcs, arg())
		return uleb(append(b, map[string]byte{"call": 0x10, "return_call": 0x12}[op]), v), err
	case "ref.func":
		v, err = m.index(m.funcs, arg())
		return uleb(append(b, 0xd2), v), err
	case "local.get", "local.set", "local.tee":
		v, err = m.index(f.names, arg())
		return uleb(append(b, map[string]byte{"local.get": 0x20, "local.set": 0x21, "local.tee": 0x22}[op]), v), err
	case "global.get", "global.set":
		v, err = m.index(m.globals, arg())
		return uleb(append(b, map[string]byte{"global.get": 0x23, "global.set": 0x24}[op]), v), err
	case "memory.init", "data.drop":
		n, err = number(arg())
		b = uleb(append(b, 0xfc, map[string]byte{"memory.init": 8, "data.drop": 9}[op]), uint64(n))
		if op == "memory.init" {
			b = append(b, 0)
		}
		return b, err
	case "i32.const":
		n, err = number(arg())
		return sleb(append(b, 0x41), int64(int32(n))), err
	case "i64.const":
		n, err = number(arg())
		return sleb(append(b, 0x42), n), err
	case "f32.const":
		x, err := strconv.ParseFloat(arg(), 32)
		return binary.LittleEndian.AppendUint32(append(b, 0x43), math.Float32bits(float32(x))), err
	case "f64.const":
		x, err := strconv.ParseFloat(arg(), 64)
		return binary.LittleEndian.AppendUint64(append(b, 0x44), math.Float64bits(x)), err
	}
	return nil, fmt.Errorf("wasmtest: instruction %q is not known", op)
}

func (m *module) index(names map[string]int, s string) (uint64, error) {
	if i, ok := names[s]; ok {
		return uint64(i), nil
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("wasmtest: name %q is not declared", s)
	}
	return n, nil
}

func label(b []byte, labels []string, s string) ([]byte, error) {
	for i := len(labels) - 1; i >= 0 && !digit(s); i-- {
		if labels[i] == s && s != "" {
			return uleb(b, uint64(len(labels)-1-i)), nil
		}
	}
	n, err := strconv.ParseUint(s, 10, 32)
	return uleb(b, n), err
}

func digit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

func bytes(b, s []byte) []byte { return append(uleb(b, uint64(len(s))), s...) }

func uleb(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

func sleb(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
