package meter

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// maxElements bounds the entries of all element segments together.
const maxElements = 1 << 18

// elements copies the segments of the tables, which name functions by index or by initialiser.
func (w *rewriter) elements(r *reader) error {
	n := r.count()
	b := binary.AppendUvarint(nil, uint64(n))
	total := 0
	for i := range n {
		var err error
		if b, err = w.element(r, b, &total); err != nil {
			return fmt.Errorf("meter: element segment %d: %w", i, err)
		}
	}
	if err := r.done("element"); err != nil {
		return err
	}
	w.emit(secElement, b)
	return nil
}

// element copies one segment. Its flags: 1 = not active, 2 = a table's index follows (active) or declarative, 4 = entries are
// initialisers.
func (w *rewriter) element(r *reader, b []byte, total *int) (_ []byte, err error) {
	flags := r.u32()
	if flags > 7 {
		return nil, fmt.Errorf("it has flags %d, which are not known", flags)
	}
	b = binary.AppendUvarint(b, uint64(flags))
	if flags&1 == 0 {
		if flags&2 != 0 {
			b = binary.AppendUvarint(b, uint64(r.u32()))
		}
		if b, err = w.constant(r, b); err != nil {
			return nil, err
		}
	}
	if flags&3 != 0 {
		b = append(b, r.byte()) // kind or type of the entries
	}
	n := r.count()
	if *total += n; *total > maxElements {
		return nil, fmt.Errorf("the segments have over %d entries", maxElements)
	}
	b = binary.AppendUvarint(b, uint64(n))
	for range n {
		if flags&4 != 0 {
			if b, err = w.constant(r, b); err != nil {
				return nil, err
			}
			continue
		}
		f, err := w.movedFunction(r.u32())
		if r.err != nil {
			return nil, r.err
		}
		if err != nil {
			return nil, err
		}
		b = binary.AppendUvarint(b, uint64(f))
	}
	if r.err != nil {
		return nil, errors.New("it ends too early")
	}
	return b, nil
}
