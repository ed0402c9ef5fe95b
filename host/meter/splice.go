package meter

import (
	"encoding/binary"
	"slices"
)

// point is a place in a function body where the meter puts something in.
type point struct {
	at    int  // offset in the body
	cut   int  // bytes of the body that are left out there
	kind  kind // of what is put in
	cost  int  // index of what it costs, in units
	shift int  // takeBySize: the size on top of the stack costs fuel too: size >> shift
	index int  // renumber: the new index
	typ   []byte
}

// kind is what the meter puts in at a point.
type kind uint8

const (
	take        kind = iota // take fuel
	takeRefill              // take fuel, and ask for more below zero
	takeBySize              // the same, by the size on top of the stack too
	openOuter               // open an outer loop of type typ, and ask for more fuel below zero
	closeOuter              // close it
	takeOrOuter             // go to the outer loop below zero, else take fuel
	renumber                // put index in place of another number
)

// splicer writes a function body with what the points put in.
type splicer struct {
	fuel   uint64 // index of the global
	refill uint64 // index of the import
	spare  uint64 // index of the local behind the declared ones; it holds the size of a bulk operation
	costs  []int
}

// splice appends body to out. behind is the offset behind the declared locals.
func (s *splicer) splice(out, body []byte, behind int, points []point) []byte {
	at := 0
	if slices.ContainsFunc(points, func(p point) bool { return p.kind == takeBySize }) {
		r := &reader{b: body} // one more group of locals: one i32
		groups := r.u32()
		out = binary.AppendUvarint(out, uint64(groups)+1)
		out = append(append(out, body[r.at:behind]...), 1, typeI32)
		at = behind
	}
	for i := range points {
		p := &points[i]
		out = append(out, body[at:p.at]...)
		at = p.at + p.cut
		out = s.put(out, p)
	}
	return append(out, body[at:]...)
}

func (s *splicer) put(b []byte, p *point) []byte {
	switch p.kind {
	case take:
		return s.take(b, p)
	case takeRefill, takeBySize:
		return s.ask(s.take(b, p))
	case openOuter:
		return s.ask(append(append(b, opLoop), p.typ...))
	case closeOuter:
		return append(b, opEnd)
	case takeOrOuter: // as an if around a br, which costs less here than br_if
		b = binary.AppendUvarint(append(b, opGlobalGet), s.fuel)
		return s.take(append(b, opI64Const, 0, opI64LtS, opIf, typeEmpty, opBr, 2, opEnd), p)
	}
	return binary.AppendUvarint(b, uint64(p.index)) // renumber
}

// take appends: fuel -= price.
func (s *splicer) take(b []byte, p *point) []byte {
	if p.kind == takeBySize {
		b = binary.AppendUvarint(append(b, opLocalTee), s.spare) // the size stays on the stack
	}
	b = binary.AppendUvarint(append(b, opGlobalGet), s.fuel)
	if p.kind == takeBySize {
		b = binary.AppendUvarint(append(b, opLocalGet), s.spare)
		b = append(b, opI64ExtendI32U)
		switch {
		case p.shift > 0:
			b = append(appendSigned(append(b, opI64Const), int64(p.shift)), opI64ShrU)
		case p.shift < 0:
			b = append(appendSigned(append(b, opI64Const), int64(-p.shift)), opI64Shl)
		}
		b = append(b, opI64Sub)
	}
	b = appendSigned(append(b, opI64Const), int64(1+s.costs[p.cost]/unitsPerFuel))
	b = append(b, opI64Sub)
	return binary.AppendUvarint(append(b, opGlobalSet), s.fuel)
}

// ask appends: if fuel >= 0 {} else { call refill }. The usual way is the first arm: wazero's compiler takes over the
// registers from the arm that it sees first, and puts what the call costs into the other.
func (s *splicer) ask(b []byte) []byte {
	b = binary.AppendUvarint(append(b, opGlobalGet), s.fuel)
	b = append(b, opI64Const, 0, opI64GeS, opIf, typeEmpty, opElse, opCall)
	return append(binary.AppendUvarint(b, s.refill), opEnd)
}
