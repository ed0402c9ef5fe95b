package host

// Surface is what a module shows to the outside, for whoever writes or reviews it.
type Surface struct {
	Exports     []string // functions, in the order of their names
	Imports     []string // functions, as module.name
	MemoryBytes uint64   // of the largest instance that is idle now
}
