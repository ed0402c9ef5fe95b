package worker

import (
	"encoding/json"
	"slices"
)

// listing is the model ids that a worker lists. LoRA adapters are listed like models. Workers with equal listings share
// one, which Snapshot compares by address.
type listing struct {
	ids []string // as listed
	set map[string]struct{}
}

func newListing(ids []string) *listing {
	l := &listing{ids: ids, set: make(map[string]struct{}, len(ids))}
	for _, id := range ids {
		l.set[id] = struct{}{}
	}
	return l
}

func (l *listing) has(model string) bool {
	_, ok := l.set[model]
	return ok
}

// Models returns the entries of /v1/models of all workers that are up, as the first of them wrote each, one an id.
func (p *Pool) Models() []json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []json.RawMessage
	seen := map[string]bool{}
	for _, w := range p.workers {
		if w.health.state != up || w.listing == nil {
			continue
		}
		for i, id := range w.listing.ids {
			if !seen[id] {
				seen[id] = true
				out = append(out, w.entries[i])
			}
		}
	}
	return out
}

// Listed takes the model ids that a worker lists, each once, and the entry of /v1/models of each. The entries stay the
// worker's own: vLLM writes a new time and a new permission id into each answer.
func (p *Pool) Listed(id uint64, ids []string, entries []json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.watched[id]
	if w == nil {
		return
	}
	var l *listing
	for _, o := range p.workers {
		if o.listing != nil && slices.Equal(o.listing.ids, ids) {
			l = o.listing
			break
		}
	}
	if l == nil {
		l = newListing(ids)
	}
	w.listing, w.entries = l, entries
	w.health.good(byModels)
}
