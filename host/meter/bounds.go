package meter

import "fmt"

// Bounds on what is compiled. The time that wazero's compiler takes for a function grows with the square of its
// branches.
const (
	maxBody  = 1 << 20 // bytes of one function
	maxForks = 5_000   // branches, labels, ifs and loops of one function, and our charges in it
)

// What a function takes to compile, at most, in nanoseconds of a processor. TestCompileWork compares the sum with what
// wazero takes.
const (
	workByte   = 800
	workSquare = 150   // a square of its branches
	workLocal  = 4_000 // a local, from fewLocals on, for each branch: where two ways meet each local may have two values
	workAccess = 0.5   // a square of its loads and stores, of which the compiler keeps a list

	fewLocals = 64

	// maxWork is of one function, which the compiler cannot leave. maxModuleWork only bounds how long a compilation goes
	// on that its host has given up: what Go emits takes a seventh of its estimate (a guest of 4 MB 1.3 s of 9.8).
	maxWork       = 10_000_000_000
	maxModuleWork = 60_000_000_000
)

// effort is what decides how long a function takes to compile.
type effort struct {
	bytes    int
	forks    int // branches, labels of br_table, ifs, loops, and our charges
	locals   int
	accesses int // loads and stores
}

// work returns the nanoseconds that a function takes to compile, at most.
func (e effort) work() float64 {
	forks, accesses := float64(e.forks), float64(e.accesses)
	return workByte*float64(e.bytes) + workSquare*forks*forks + workLocal*float64(max(0, e.locals-fewLocals))*forks +
		workAccess*accesses*accesses
}

// compileBounds adds up what a module's functions take to compile.
type compileBounds struct {
	work float64 // in nanoseconds
}

// add refuses a function if it, or all up to it, would take too long to compile.
func (c *compileBounds) add(e effort) error {
	c.work += e.work()
	switch {
	case e.forks > maxForks:
		return fmt.Errorf("it has %d branches and labels of br_table in total; the limit is %d, "+
			"as it would take long to compile: split it", e.forks, maxForks)
	case e.bytes > maxBody:
		return fmt.Errorf("it has %d bytes; the limit is %d, as it would take long to compile: split it", e.bytes, maxBody)
	case e.work() > maxWork:
		return fmt.Errorf("it may take %.0f s to compile; the limit is %.0f s. It has %d bytes, %d branches, %d locals, %d "+
			"loads and stores, and would take long to compile: split it", e.work()/1e9, maxWork/1e9, e.bytes, e.forks, e.locals,
			e.accesses)
	case c.work > maxModuleWork:
		return fmt.Errorf("it and the functions before it may take %.0f s to compile; the limit is %.0f s, as they would "+
			"take long to compile: split the largest ones, or drop packages", c.work/1e9, maxModuleWork/1e9)
	}
	return nil
}
