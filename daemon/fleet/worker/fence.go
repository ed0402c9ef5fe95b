package worker

import (
	"slices"
	"strings"
)

// Fence is the labels, each as name=value, that a worker must have to get a request, and one, as !name=value, that it
// must not have. The empty Fence keeps a request from no worker.
type Fence []string

// Not begins the label of a Fence that a worker must not have.
const Not = "!"

// fenceBits are the bits of a fence's labels. The zero value keeps a request from no worker.
type fenceBits struct {
	with    uint64
	without uint8 // 1 + the bit of the label that a worker must not have; 0 = none
}

// nobody keeps a request from every worker: a set has fewer labels, see maxLabels.
var nobody = fenceBits{with: ^uint64(0)}

// mask returns the bits of the fence's labels, or nobody if no worker has one that it must have.
func (l *labelSet) mask(f Fence) (bits fenceBits) {
	for _, label := range f {
		name, without := strings.CutPrefix(label, Not)
		i, found := slices.BinarySearch(l.names, name)
		switch {
		case found && without:
			bits.without = uint8(1 + i)
		case found:
			bits.with |= 1 << i
		case !without:
			return nobody
		}
	}
	return bits
}

// admit reports whether a worker with these labels may get the request.
func (b fenceBits) admit(labels uint64) bool {
	return labels&b.with == b.with && (b.without == 0 || labels&(1<<(b.without-1)) == 0)
}

// inside reports whether a worker with these marks has the labels of the fence. They are looked up in the set that the
// marks were made with: a worker that was removed keeps the labels that it had.
func (m *marks) inside(f Fence) bool { return len(f) == 0 || m.set.mask(f).admit(m.labels) }
