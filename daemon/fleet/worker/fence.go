package worker

import "github.com/warmpath/warmpath/daemon/fleet/labels"

// Fence is the labels, each as name=value, that a worker must have to get a request, and one, as !name=value, that it
// must not have. The empty Fence keeps a request from no worker.
type Fence []string

// Not begins the label of a Fence that a worker must not have.
const Not = labels.Not

// inside reports whether a worker with these marks has the labels of the fence. They are looked up in the set that the
// marks were made with: a worker that was removed keeps the labels that it had.
func (m *marks) inside(f Fence) bool { return len(f) == 0 || m.set.Mask(f).Admit(m.labels) }
