package host

import "slices"

// Surface is what a module shows to the outside, for whoever writes or reviews it.
type Surface struct {
	Exports     []string // functions, in the order of their names
	Imports     []string // functions, as module.name
	MemoryBytes uint64   // of the largest instance that is idle now
}

// Surface describes the loaded module. It borrows each instance for a moment, so do not call it while requests are
// served.
func (s *Strategy) Surface() Surface {
	var f Surface
	for name := range s.compiled.ExportedFunctions() {
		f.Exports = append(f.Exports, name)
	}
	slices.Sort(f.Exports)
	for _, i := range s.compiled.ImportedFunctions() {
		module, name, _ := i.Import()
		f.Imports = append(f.Imports, module+"."+name)
	}
	slices.Sort(f.Imports)
	for i := range s.slots {
		if sl := &s.slots[i]; sl.state.CompareAndSwap(idle, taken) {
			f.MemoryBytes = max(f.MemoryBytes, uint64(sl.in.mem.Size()))
			sl.state.Store(idle)
		}
	}
	return f
}
