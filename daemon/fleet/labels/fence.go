package labels

import (
	"slices"
	"strconv"
	"strings"
)

// Not begins the label of a fence that a worker must not have.
const Not = "!"

// AtLeast stands between the name and the least value of a fence's label whose values are whole numbers, as
// weights>=12.
const AtLeast = ">="

// Fence has the bits of the labels that a worker must have, of those that it must not have, and of those of which it
// must have one. The zero value keeps a request from no worker.
type Fence struct{ with, without, some uint64 }

// nobody is a mask that excludes every worker: a set has fewer labels, see Max.
var nobody = Fence{with: ^uint64(0)}

// Mask returns the bits of the fence's labels, or nobody if no worker has one that it must have.
func (l *Set) Mask(f []string) (bits Fence) {
	for _, label := range f {
		if name, least, ok := strings.Cut(label, AtLeast); ok {
			some := l.atLeast(name+"=", least)
			if bits.some != 0 { // the bits of both are those of one name
				some &= bits.some
			}
			if some == 0 {
				return nobody
			}
			bits.some = some
			continue
		}
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

// atLeast returns the bits of the labels that begin so and go on with a number that is not below least.
func (l *Set) atLeast(begin, least string) (bits uint64) {
	min, err := strconv.ParseUint(least, 10, 64)
	for i, name := range l.Names {
		value, ok := strings.CutPrefix(name, begin)
		if n, wrong := strconv.ParseUint(value, 10, 64); ok && err == nil && wrong == nil && n >= min {
			bits |= 1 << i
		}
	}
	return bits
}

// Admit reports whether a worker with these labels may get the request.
func (b Fence) Admit(labels uint64) bool {
	return labels&b.with == b.with && labels&b.without == 0 && (b.some == 0 || labels&b.some != 0)
}

// Admits is Mask and Admit for a worker of which no Set has the labels: it has no bound of Max.
func Admits(f []string, has map[string]string) bool {
	return !slices.ContainsFunc(f, func(label string) bool {
		if name, least, ok := strings.Cut(label, AtLeast); ok {
			min, err := strconv.ParseUint(least, 10, 64)
			n, wrong := strconv.ParseUint(has[name], 10, 64)
			return err != nil || wrong != nil || n < min
		}
		label, without := strings.CutPrefix(label, Not)
		name, value, _ := strings.Cut(label, "=")
		own, ok := has[name]
		return (ok && own == value) == without
	})
}
