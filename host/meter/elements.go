package meter

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// maxElements bounds the entries of all element segments together.
const maxElements = 1 << 18

// segments copies the element segments, which name functions by index or by initialiser.
type segments struct {
	counts  *counts
	entries int // of all segments so far
}

// all copies all segments.
func (s *segments) all(r *reader) ([]byte, error) {
	n := r.count()
	b := binary.AppendUvarint(nil, uint64(n))
	for i := range n {
		var err error
		b, err = s.one(r, b)
		if err != nil {
			return nil, fmt.Errorf("meter: element segment %d: %w", i, err)
		}
	}
	return b, r.done("element")
}

// one copies one segment. Its flags: 1 = not active, 2 = a table's index follows (active) or declarative, 4 =
// entries are initialisers.
func (s *segments) one(r *reader, b []byte) (_ []byte, err error) {
	flags := r.u32()
	if flags > 7 {
		return nil, fmt.Errorf("it has flags %d, which are not known", flags)
	}
	b = binary.AppendUvarint(b, uint64(flags))
	if flags&1 == 0 {
		if flags&2 != 0 {
			b = binary.AppendUvarint(b, uint64(r.u32()))
		}
		b, err = s.counts.constant(r, b)
		if err != nil {
			return nil, err
		}
	}
	if flags&3 != 0 {
		b = append(b, r.byte()) // kind or type of the entries
	}
	n := r.count()
	s.entries += n
	if s.entries > maxElements {
		return nil, fmt.Errorf("the segments have over %d entries", maxElements)
	}
	b = binary.AppendUvarint(b, uint64(n))
	for range n {
		if flags&4 != 0 {
			b, err = s.counts.constant(r, b)
			if err != nil {
				return nil, err
			}
			continue
		}
		f, err := s.counts.movedFunction(r.u32())
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
