package meter

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// code writes the bodies with their charges.
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
	s := scanner{counts: &w.counts}
	var buf, first []byte
	for i := range n {
		body := r.take(r.u32())
		if r.err != nil {
			break
		}
		err := s.scan(body, w.params[w.funcs[i]])
		if err == nil {
			err = w.bounds.add(s.effort(len(body)))
		}
		if err != nil {
			return fmt.Errorf("meter: function %d: %w", w.imported+i, err)
		}
		to := splicer{fuel: uint64(w.globals), refill: uint64(w.imported), spare: uint64(s.locals), costs: s.costs}
		buf = to.splice(buf[:0], body, s.behind, s.points)
		if i == 0 { // it goes to the end, see movedFunction
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
