package meter

import (
	"encoding/binary"
	"fmt"
)

// point is a place in a function body where fuel is taken.
type point struct {
	at    int  // offset in the body; the charge goes in front of it
	units int  // price of what runs from here on, in units; see price
	bulk  bool // the size on top of the stack costs fuel too: size >> shift
	shift int
}

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
	var points []point
	var buf []byte
	for i := range n {
		body := r.take(r.u32())
		if r.err != nil {
			break
		}
		var locals, first int
		var err error
		points, locals, first, err = w.scan(body, w.params[w.funcs[i]], points[:0])
		if err != nil {
			return fmt.Errorf("meter: function %d: %w", i, err)
		}
		buf = w.splice(buf[:0], body, points, w.params[w.funcs[i]]+locals, first)
		w.out = appendBytes(w.out, buf)
	}
	if err := r.done("code"); err != nil {
		return err
	}
	total := len(w.out) - size - 5
	for i := range 4 {
		w.out[size+i] = byte(total>>(7*i)) | 0x80
	}
	w.out[size+4] = byte(total >> 28)
	return nil
}

// block is an open block of the function being scanned.
type block struct {
	point int // where its instructions are paid: its own header if a loop, else its parent's
}

// scan walks one body, checks its instructions, and lists the points where fuel is taken. first is the offset behind the
// declared locals.
func (w *rewriter) scan(body []byte, params int, points []point) (_ []point, locals, first int, err error) {
	r := &reader{b: body}
	for range r.count() {
		k := r.u32()
		r.byte()
		if locals += int(min(k, maxLocals+1)); locals > maxLocals {
			return nil, 0, 0, fmt.Errorf("it has over %d locals", maxLocals)
		}
	}
	first = r.at
	s := scanner{reader: r, globals: w.globals, locals: params + locals}
	s.points = append(points, point{at: first, units: unitsLocal * (params + locals)})
	s.blocks = append(s.blocks, block{})
	for len(s.blocks) > 0 && s.more() {
		if err := s.instruction(); err != nil {
			return nil, 0, 0, err
		}
	}
	if len(s.blocks) > 0 {
		r.fail(errShort)
	}
	return s.points, locals, first, r.done("code")
}

// splice copies body with the charges put in. The local behind the declared ones holds the size of a bulk operation.
func (w *rewriter) splice(out, body []byte, points []point, spare, first int) []byte {
	bulk := false
	for _, p := range points {
		bulk = bulk || p.bulk
	}
	at := 0
	if bulk { // one more group of locals: one i32
		r := &reader{b: body}
		groups := r.u32()
		out = binary.AppendUvarint(out, uint64(groups)+1)
		out = append(append(out, body[r.at:first]...), 1, 0x7f)
		at = first
	}
	for _, p := range points {
		out = append(out, body[at:p.at]...)
		out = w.charge(out, p, uint64(spare))
		at = p.at
	}
	return append(out, body[at:]...)
}

// charge appends: fuel -= price; if fuel < 0 { unreachable }.
func (w *rewriter) charge(b []byte, p point, spare uint64) []byte {
	fuel := uint64(w.globals)
	if p.bulk {
		b = binary.AppendUvarint(append(b, 0x22), spare) // local.tee: the size stays on the stack
	}
	b = binary.AppendUvarint(append(b, 0x23), fuel) // global.get
	if p.bulk {
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
	b = appendSigned(append(b, 0x42), int64(1+p.units/unitsPerFuel)) // i64.const
	b = append(b, 0x7d)                                              // i64.sub
	b = binary.AppendUvarint(append(b, 0x24), fuel)                  // global.set
	b = binary.AppendUvarint(append(b, 0x23), fuel)                  // global.get
	return append(b, 0x42, 0, 0x53, 0x04, 0x40, 0x00, 0x0b)          // i64.const 0, i64.lt_s, if, unreachable, end
}
