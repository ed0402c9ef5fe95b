package worker

import "slices"

// maxLabels is the number of label bits that are given out. A row has one more: so no worker has all of them.
const maxLabels = 63

// labelSet is the list of the different labels of a pool's workers, each as name=value, sorted. A label's index is its
// bit in a row. The set is never changed, only replaced.
type labelSet struct {
	names []string
	epoch uint32 // changes with the names
}

// after returns the set for specs that follows l: l itself if the names are the same. Labels beyond maxLabels have no
// bit.
func (l *labelSet) after(specs []Spec) *labelSet {
	var names []string
	for _, s := range specs {
		for name, value := range s.Labels {
			names = append(names, name+"="+value)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	names = names[:min(len(names), maxLabels)]
	if slices.Equal(names, l.names) {
		return l
	}
	return &labelSet{names: names, epoch: l.epoch + 1}
}

// bits returns the bits of a worker's labels.
func (l *labelSet) bits(labels map[string]string) (bits uint64) {
	for name, value := range labels {
		if i, ok := slices.BinarySearch(l.names, name+"="+value); ok {
			bits |= 1 << i
		}
	}
	return bits
}
