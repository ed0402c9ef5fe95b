package worker

import "slices"

// listing holds the model ids that a worker lists, and how long each model is. LoRA adapters are listed like models.
// Workers with equal listings share one, which Snapshot compares by address.
type listing struct {
	ids []string // as listed
	set map[string]struct{}

	roots    []string // of ids; "" = an adapter, or not known
	adapters []string // of ids, those of LoRA adapters

	lengths []int          // of ids; 0 = not known
	length  map[string]int // the same by id, without those that are not known
	least   int            // the shortest; 0 = none is known
}

func newListing(ids []string) *listing {
	l := &listing{ids: ids, set: make(map[string]struct{}, len(ids))}
	for _, id := range ids {
		l.set[id] = struct{}{}
	}
	return l
}

// adapts reports whether the model is listed as a LoRA adapter.
func (l *listing) adapts(model string) bool {
	return len(l.adapters) > 0 && l.has(model) && slices.Contains(l.adapters, model)
}

// equal reports whether two workers list the same.
func (l *listing) equal(o *listing) bool {
	return slices.Equal(l.ids, o.ids) && slices.Equal(l.lengths, o.lengths) && slices.Equal(l.adapters, o.adapters) &&
		slices.Equal(l.roots, o.roots)
}

func (l *listing) has(model string) bool {
	_, ok := l.set[model]
	return ok
}

// fits reports whether a worker with this listing may have the model. The listing nil means that the worker's models
// were not read yet: it may have any. Every worker fits "".
func (l *listing) fits(model string) bool { return l == nil || model == "" || l.has(model) }
