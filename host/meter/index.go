package meter

import "fmt"

// counts holds what a module's sections declare, for the checks of what names it later.
type counts struct {
	params   []int // parameters of each type
	imported int   // functions that the module imports itself; the index of the refill
	funcs    []int // type of each own function
	globals  int   // that the module declares itself; the index of the fuel
}

// movedFunction returns the new index of a function. An import stands in front of all functions that are not imported, so that
// the refill takes the place of the module's first own function, which becomes its last one; all others stay where they are.
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
