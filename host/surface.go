package host

// Surface lists a module's exports, imports and memory, for whoever writes or reviews it.
type Surface struct {
	Exports     []string // functions, in the order of their names
	Imports     []string // functions, as module.name
	Sockets     bool     // it has a package for sockets, which do not work here
	MemoryBytes uint64   // of the largest instance that is idle now
}
