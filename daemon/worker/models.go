package worker

import (
	"encoding/json"
	"fmt"
	"slices"
)

// listing is the model ids that a worker lists; LoRA adapters are entries like models. Workers with equal listings share
// one, which Snapshot compares by address. Their entries stay their own: vLLM writes a new time and a new permission id into
// each answer.
type listing struct {
	ids []string // as listed
	set map[string]struct{}
}

func (l *listing) has(model string) bool {
	_, ok := l.set[model]
	return ok
}

func parseModels(b []byte) (*listing, []json.RawMessage, error) {
	var answer struct {
		Data []json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return nil, nil, fmt.Errorf("worker: /v1/models is not JSON: %w", err)
	}
	if answer.Data == nil {
		return nil, nil, fmt.Errorf(`worker: /v1/models has no list "data"`)
	}
	l := &listing{set: map[string]struct{}{}}
	var entries []json.RawMessage
	for _, raw := range answer.Data {
		var entry struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(raw, &entry) != nil || entry.ID == "" {
			continue
		}
		if !l.has(entry.ID) {
			l.set[entry.ID] = struct{}{}
			l.ids, entries = append(l.ids, entry.ID), append(entries, raw)
		}
	}
	return l, entries, nil
}

// listed takes a worker's models.
func (p *Pool) listed(w *Worker, l *listing, entries []json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.workers {
		if o.listing != nil && slices.Equal(o.listing.ids, l.ids) {
			l = o.listing
			break
		}
	}
	w.listing, w.entries = l, entries
	w.health.good(byModels)
}

// Models gives the entries of /v1/models of all workers that are up, as the first of them wrote each, one an id.
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
