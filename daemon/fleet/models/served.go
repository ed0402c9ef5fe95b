package models

import "encoding/json"

// A worker may serve one model under several names (--served-model-name a b). Its engine keeps one cache for all of
// them, and so does whoever remembers what it holds. The workers' lists show which names are the same model: names
// with the same root. Adapters, which have a parent, are excluded.

// SameModels returns the least name of each model that a worker lists under several, by all names of that root. A name
// of which two workers list other roots is not among them. nil = there is none.
func SameModels(all []*Listing) *map[string]string {
	var lists []*Listing // each once
	seen := map[*Listing]bool{nil: true}
	roots := map[string]string{} // by name; "" = none, or several
	for _, l := range all {
		if seen[l] {
			continue
		}
		seen[l] = true
		lists = append(lists, l)
		for i, id := range l.IDs {
			root := l.roots[i]
			if was, ok := roots[id]; ok && was != root {
				root = ""
			}
			roots[id] = root
		}
	}
	least, several := map[string]string{}, map[string]bool{} // by root
	for _, l := range lists {
		here := map[string]bool{}
		for _, id := range l.IDs {
			root := roots[id]
			if is, ok := least[root]; !ok || id < is {
				least[root] = id
			}
			several[root] = several[root] || here[root]
			here[root] = true
		}
	}
	same := map[string]string{}
	for id, root := range roots {
		if root != "" && several[root] {
			same[id] = least[root]
		}
	}
	if len(same) == 0 {
		return nil
	}
	return &same
}

// Read returns a listing of these models by their entries of /v1/models. Those with a parent are adapters, and
// have no root.
func Read(ids []string, entries []json.RawMessage) *Listing {
	l, cards := newListing(ids), make([]card, len(ids))
	l.roots = make([]string, len(ids))
	for i := range min(len(ids), len(entries)) {
		cards[i] = readCard(entries[i])
		if cards[i].parent == "" {
			l.roots[i] = cards[i].root
		} else {
			l.Adapters = append(l.Adapters, ids[i])
		}
	}
	l.setLengths(lengthsOf(ids, cards))
	return l
}
