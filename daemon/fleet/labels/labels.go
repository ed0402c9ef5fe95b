package labels

import "slices"

// Max is the number of label bits that are given out. A row has one more: so no worker has all of them.
const Max = 63

// Set is the list of the different labels of a pool's workers, each as name=value, sorted. A label's index in
// Names is its bit in a row. The set is never changed, only replaced.
type Set struct {
	Names []string
	Epoch uint32 // changes with the names
}

// After returns the set that follows l for workers with these labels: l itself if the names are the same. Labels beyond
// Max have no bit.
func (l *Set) After(workers []map[string]string) *Set {
	var names []string
	for _, labels := range workers {
		for name, value := range labels {
			names = append(names, name+"="+value)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	names = names[:min(len(names), Max)]
	if slices.Equal(names, l.Names) {
		return l
	}
	return &Set{Names: names, Epoch: l.Epoch + 1}
}

// Has reports whether the set has a bit for the label.
func (l *Set) Has(label string) bool {
	_, ok := slices.BinarySearch(l.Names, label)
	return ok
}

// Bits returns the bits of a worker's labels.
func (l *Set) Bits(labels map[string]string) (bits uint64) {
	for name, value := range labels {
		if i, ok := slices.BinarySearch(l.Names, name+"="+value); ok {
			bits |= 1 << i
		}
	}
	return bits
}
