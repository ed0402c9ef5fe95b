package meter

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// counts holds what a module's sections declare, for the checks of what names it later.
type counts struct {
	params   []int // parameters of each type
	imported int   // functions that the module imports itself; the index of the refill
	funcs    []int // type of each own function
	globals  int   // that the module declares itself; the index of the fuel
}

// movedFunction returns the new index of a function. An import stands in front of all functions that are not imported,
// so that the refill takes the place of the module's first own function, which becomes its last one; all others stay
// where they are.
func (c *counts) movedFunction(i uint32) (uint32, error) {
	n := c.imported + len(c.funcs)
	switch {
	case int64(i) >= int64(n):
		return 0, fmt.Errorf("it names function %d of %d", i, n)
	case int(i) == c.imported:
		return uint32(n), nil
	}
	return i, nil
}

// checkType refuses the index of a type that the module does not declare: the one behind the module's is ours.
func (c *counts) checkType(i int64) error {
	if n := int64(len(c.params)); i >= n {
		return fmt.Errorf("it names type %d of %d", i, n)
	}
	return nil
}

// constant copies an initialiser to b. global.get may only name imported globals there, and there are none.
func (c *counts) constant(r *reader, b []byte) ([]byte, error) {
	for r.more() {
		from := r.at
		switch op := r.byte(); op {
		case opEnd:
			return append(b, op), nil
		case opI32Const:
			r.leb(5)
		case opI64Const:
			r.leb(10)
		case opF32Const:
			r.take(4)
		case opF64Const:
			r.take(8)
		case opRefNull:
			r.leb(5)
		case opRefFunc:
			i, err := c.movedFunction(r.u32())
			if err != nil {
				return nil, fmt.Errorf("an initialiser: %w", err)
			}
			b = binary.AppendUvarint(append(b, op), uint64(i))
			continue
		case opGlobalGet:
			return nil, errors.New("an initialiser reads a global; only imported ones may be read there, " +
				"and a module imports none")
		default:
			return nil, fmt.Errorf("an initialiser has %s; it is not supported", refused(op))
		}
		if r.err == nil {
			b = append(b, r.b[from:r.at]...)
		}
	}
	r.fail(errShort)
	return nil, r.err
}
