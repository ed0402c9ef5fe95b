package wasmtest

import (
	"encoding/binary"
	"fmt"
	"strconv"
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
		i, err := index(m.funcs, e.index)
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
		i, err := index(m.funcs, m.start)
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
			i, err := index(m.funcs, f.atom)
			if err != nil {
				return nil, err
			}
			elems = uleb(elems, i)
		}
	}
	return elems, nil
}

// index returns the index that a name or a number stands for.
func index(names map[string]int, s string) (uint64, error) {
	if i, ok := names[s]; ok {
		return uint64(i), nil
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("wasmtest: name %q is not declared", s)
	}
	return n, nil
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
