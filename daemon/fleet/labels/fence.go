package labels

import (
	"slices"
	"strings"
)

// Not begins the label of a fence that a worker must not have.
const Not = "!"

// Fence has the bits of the labels that a worker must have, and of those that it must not have. The zero value keeps a
// request from no worker.
type Fence struct{ with, without uint64 }

// nobody is a mask that excludes every worker: a set has fewer labels, see Max.
var nobody = Fence{with: ^uint64(0)}

// Mask returns the bits of the fence's labels, or nobody if no worker has one that it must have.
func (l *Set) Mask(f []string) (bits Fence) {
	for _, label := range f {
		name, without := strings.CutPrefix(label, Not)
		i, found := slices.BinarySearch(l.Names, name)
		switch {
		case found && without:
			bits.without |= 1 << i
		case found:
			bits.with |= 1 << i
		case !without:
			return nobody
		}
	}
	return bits
}

// Admit reports whether a worker with these labels may get the request.
func (b Fence) Admit(labels uint64) bool {
	return labels&b.with == b.with && labels&b.without == 0
}
