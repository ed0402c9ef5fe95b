package models

import "slices"

// Listing holds the model ids that a worker lists, and how long each model is. LoRA adapters are listed like models.
// Workers with equal listings share one, which Snapshot compares by address.
type Listing struct {
	IDs []string // as listed
	set map[string]struct{}

	roots    []string // of ids; "" = an adapter, or not known
	Adapters []string // of ids, those of LoRA adapters

	Lengths []int          // of ids; 0 = not known
	length  map[string]int // the same by id, without those that are not known
	least   int            // the shortest; 0 = none is known
}

func newListing(ids []string) *Listing {
	l := &Listing{IDs: ids, set: make(map[string]struct{}, len(ids))}
	for _, id := range ids {
		l.set[id] = struct{}{}
	}
	return l
}

// Adapts reports whether the model is listed as a LoRA adapter.
func (l *Listing) Adapts(model string) bool {
	return len(l.Adapters) > 0 && l.Has(model) && slices.Contains(l.Adapters, model)
}

// Equal reports whether two workers list the same.
func (l *Listing) Equal(o *Listing) bool {
	return slices.Equal(l.IDs, o.IDs) && slices.Equal(l.Lengths, o.Lengths) && slices.Equal(l.Adapters, o.Adapters) &&
		slices.Equal(l.roots, o.roots)
}

// Others reports whether both list models, and o none of l's.
func (l *Listing) Others(o *Listing) bool {
	return len(l.IDs) > 0 && len(o.IDs) > 0 && !slices.ContainsFunc(l.IDs, o.Has)
}

// Has reports whether the model is listed.
func (l *Listing) Has(model string) bool {
	_, ok := l.set[model]
	return ok
}

// Root returns what the model is by its list, "" if that is not known or it is an adapter.
func (l *Listing) Root(model string) string {
	if i := slices.Index(l.IDs, model); i >= 0 && i < len(l.roots) {
		return l.roots[i]
	}
	return ""
}

// Fits reports whether a worker with this listing may have the model. The listing nil means that the worker's models
// were not read yet: it may have any. Every worker fits "".
func (l *Listing) Fits(model string) bool { return l == nil || model == "" || l.Has(model) }

// Base returns the first model that is not an adapter.
func (l *Listing) Base() string {
	for _, id := range l.IDs {
		if !l.Adapts(id) {
			return id
		}
	}
	return ""
}
