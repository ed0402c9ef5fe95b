package meter

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// point is a place in a function body where something is put in.
type point struct {
	at    int  // offset in the body; a charge goes in front of it
	kind  kind // of what is put in
	cost  int  // charge: index of what it costs, in units
	shift int  // bulk: the size on top of the stack costs fuel too: size >> shift
	cut   int  // rename: bytes of the old index
}

// kind says what is put in at a point.
type kind uint8

const (
	charge kind = iota // take fuel
	bulk               // take fuel by the size on top of the stack too
	rename             // name the function that was the first one by its new index
)

func (w *rewriter) code(r *reader) error {
	n := r.count()
	if n != len(w.funcs) {
		return fmt.Errorf("meter: module has %d function bodies for %d functions", n, len(w.funcs))
	}
	w.out = append(w.out, secCode)
	// The section's size is known at its end only: it goes into five padded bytes, which LEB128 allows.
	size := len(w.out)
	w.out = append(w.out, 0x80, 0x80, 0x80, 0x80, 0x00)
	w.out = binary.AppendUvarint(w.out, uint64(n))
	s := scanner{w: w}
	var buf, first []byte
	for i := range n {
		body := r.take(r.u32())
		if r.err != nil {
			break
		}
		if err := s.scan(body, w.params[w.funcs[i]]); err != nil {
			return fmt.Errorf("meter: function %d: %w", w.imported+i, err)
		}
		buf = s.splice(buf[:0], body)
		if i == 0 { // it goes to the end, see function
			first = bytes.Clone(buf)
			continue
		}
		w.out = appendBytes(w.out, buf)
	}
	if err := r.done("code"); err != nil {
		return err
	}
	if n > 0 {
		w.out = appendBytes(w.out, first)
	}
	total := len(w.out) - size - 5
	for i := range 4 {
		w.out[size+i] = byte(total>>(7*i)) | 0x80
	}
	w.out[size+4] = byte(total >> 28)
	return nil
}

// splice copies body with the charges put in. The local behind the declared ones holds the size of a bulk operation.
func (s *scanner) splice(out, body []byte) []byte {
	at := 0
	if slices.ContainsFunc(s.points, func(p point) bool { return p.kind == bulk }) { // one more group of locals: one i32
		r := &reader{b: body}
		groups := r.u32()
		out = binary.AppendUvarint(out, uint64(groups)+1)
		out = append(append(out, body[r.at:s.behind]...), 1, 0x7f)
		at = s.behind
	}
	for _, p := range s.points {
		out = append(out, body[at:p.at]...)
		at = p.at + p.cut
		if p.kind == rename {
			out = binary.AppendUvarint(out, uint64(s.w.imported+len(s.w.funcs)))
		} else {
			out = s.charge(out, p)
		}
	}
	return append(out, body[at:]...)
}

// charge appends: fuel -= price; if fuel >= 0 {} else { call refill }. The usual way is the first arm: wazero's compiler
// takes over the registers from the arm that it sees first, and puts what the call costs into the other.
func (s *scanner) charge(b []byte, p point) []byte {
	fuel, spare := uint64(s.w.globals), uint64(s.locals)
	if p.kind == bulk {
		b = binary.AppendUvarint(append(b, 0x22), spare) // local.tee: the size stays on the stack
	}
	b = binary.AppendUvarint(append(b, 0x23), fuel) // global.get
	if p.kind == bulk {
		b = binary.AppendUvarint(append(b, 0x20), spare) // local.get
		b = append(b, 0xad)                              // i64.extend_i32_u
		if shift := p.shift; shift != 0 {
			op := byte(0x88) // i64.shr_u
			if shift < 0 {
				op, shift = 0x86, -shift // i64.shl
			}
			b = append(appendSigned(append(b, 0x42), int64(shift)), op)
		}
		b = append(b, 0x7d) // i64.sub
	}
	b = appendSigned(append(b, 0x42), int64(1+s.costs[p.cost]/unitsPerFuel)) // i64.const
	b = append(b, 0x7d)                                                      // i64.sub
	b = binary.AppendUvarint(append(b, 0x24), fuel)                          // global.set
	b = binary.AppendUvarint(append(b, 0x23), fuel)                          // global.get
	b = append(b, 0x42, 0, 0x59, 0x04, 0x40, 0x05, 0x10)                     // i64.const 0, i64.ge_s, if, else, call
	return append(binary.AppendUvarint(b, uint64(s.w.imported)), 0x0b)       // refill, end
}
