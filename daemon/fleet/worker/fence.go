package worker

import "slices"

// Fence is the labels, each as name=value, that a worker must have to get a request: all of them. The empty Fence keeps
// a request from no worker.
type Fence []string

// nobody is the mask of a fence that no worker is inside of: a set has fewer labels, see maxLabels.
const nobody = ^uint64(0)

// mask returns the bits of the fence's labels, or nobody if no worker has one of them.
func (l *labelSet) mask(f Fence) (bits uint64) {
	for _, label := range f {
		i, found := slices.BinarySearch(l.names, label)
		if !found {
			return nobody
		}
		bits |= 1 << i
	}
	return bits
}

// inside reports whether a worker with these marks has the labels of the fence. They are looked up in the set that the
// marks were made with: a worker that was removed keeps the labels that it had.
func (m *marks) inside(f Fence) bool {
	if len(f) == 0 {
		return true
	}
	bits := m.set.mask(f)
	return m.labels&bits == bits
}
