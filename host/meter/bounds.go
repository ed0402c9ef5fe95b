package meter

import "fmt"

// Bounds on what is compiled. wazero's compiler takes 0.5 us for a byte, and for the branches of one function a time that grows
// with their square: 10,000 ifs in one function took 10 s, 40,000 took 4.5 minutes. Of a Go guest's functions the largest has
// a fifth of what is allowed, and all together a third of the squares.
const (
	maxBody    = 1 << 20    // bytes of one function
	maxForks   = 5_000      // branches, labels, ifs and loops of one function, and our charges in it
	maxSquares = 50_000_000 // the squares of these, all functions together
)

// compileBounds adds up what a module's functions take to compile.
type compileBounds struct {
	squares int // of the functions' branches
}

// add refuses a function if it, or all up to it, would take too long to compile.
func (c *compileBounds) add(size, forks int) error {
	c.squares += forks * forks
	switch {
	case forks > maxForks:
		return fmt.Errorf("it has %d branches and labels of br_table in total; the limit is %d, as it would take long to compile: split it", forks, maxForks)
	case size > maxBody:
		return fmt.Errorf("it has %d bytes; the limit is %d, as it would take long to compile: split it", size, maxBody)
	case c.squares > maxSquares:
		return fmt.Errorf("it and the functions before it have too many branches and labels of br_table (%d squared and summed; the limit is %d), as they would take long to compile: split the largest",
			c.squares, maxSquares)
	}
	return nil
}
