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

// outside reports whether the request's fence keeps it from a worker.
func (s *shot) outside(w *Worker) bool { return w.labels&s.inside != s.inside }

// Count is how many workers a request may go to.
type Count struct {
	Configured int // inside of its fence
	Up         int // of them those that answer their health checks
}

// count counts the workers inside of the request's fence. Without one the fleet has both numbers.
func (s *shot) count() (c Count) {
	if len(s.Fence) == 0 {
		return Count{Configured: len(s.fleet.workers), Up: s.fleet.up}
	}
	for _, w := range s.fleet.workers {
		if s.outside(w) {
			continue
		}
		c.Configured++
		if w.isUp() {
			c.Up++
		}
	}
	return c
}
