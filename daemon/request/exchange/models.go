package exchange

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/request/names"
)

// listed returns the entries of /v1/models over the workers of all pools: each as its worker wrote it, each id once,
// and only those that a pool serves and the caller may use.
func listed(in *Inbound) (ids []string, entries []json.RawMessage) {
	known := map[string]bool{}
	for _, p := range in.Epoch.Pools {
		for _, raw := range p.Workers.Models(p.Pairing.answering(in.Caller.Workers)) {
			var entry struct {
				ID string `json:"id"`
			}
			if json.Unmarshal(raw, &entry) != nil || known[entry.ID] || in.Epoch.For(entry.ID) != p ||
				!in.Caller.Allows(entry.ID) || in.Epoch.Names.Find(entry.ID) != nil || in.Epoch.Names.Hides(entry.ID) {
				continue
			}
			known[entry.ID] = true
			ids, entries = append(ids, entry.ID), append(entries, raw)
		}
	}
	return listAliases(in, ids, entries)
}

// SpeaksAnthropic reports whether a client wants Anthropic's shapes on paths that OpenAI's API has too.
func (in *Inbound) SpeaksAnthropic() bool { return in.Get("anthropic-version") != "" }

// listModels answers GET /v1/models, all on one page.
func listModels(in *Inbound) *Outbound {
	ids, entries := listed(in)
	if in.SpeaksAnthropic() {
		page := aboutModels{Data: []aboutModel{}}
		for i, id := range ids {
			page.Data = append(page.Data, anthropicModel(id, entries[i]))
		}
		if len(ids) > 0 {
			page.FirstID, page.LastID = &ids[0], &ids[len(ids)-1]
		}
		return inJSON(page)
	}
	return inJSON(struct {
		Object string            `json:"object"`
		Data   []json.RawMessage `json:"data"`
	}{"list", append([]json.RawMessage{}, entries...)})
}

// describeModel answers GET /v1/models/{id} out of the same list. A model that the key may not use is none. Before the
// answer that there is none, the workers' lists are read anew.
func describeModel(ctx context.Context, in *Inbound) *Outbound {
	id := in.Endpoint.ID
	out := described(in, id)
	if p := in.Epoch.For(id); out == nil && p != nil && in.Caller.Allows(id) {
		p.Workers.RenewLists(time.Now())
		awaitLists(ctx, p.Workers.Renewing, func(time.Time) bool {
			out = described(in, id)
			return out != nil
		})
	}
	if out != nil {
		return out
	}
	f := FaultUnknownModel(id)
	in.Seen.End = f.Code
	if in.SpeaksAnthropic() {
		return f.Outbound(Anthropic)
	}
	return f.Outbound(OpenAI)
}

// described returns the entry of the model of that id, nil if no worker lists it.
func described(in *Inbound, id string) *Outbound {
	ids, entries := listed(in)
	i := slices.Index(ids, id)
	switch {
	case i < 0:
		return nil
	case in.SpeaksAnthropic():
		return inJSON(anthropicModel(id, entries[i]))
	}
	return inJSON(entries[i])
}

// aboutModel is Anthropic's entry of a model.
type aboutModel struct {
	Type        string    `json:"type"`
	ID          string    `json:"id"`
	DisplayName string    `json:"display_name"`
	CreatedAt   time.Time `json:"created_at"`
}

// aboutModels is Anthropic's page of models.
type aboutModels struct {
	Data    []aboutModel `json:"data"`
	HasMore bool         `json:"has_more"`
	FirstID *string      `json:"first_id"`
	LastID  *string      `json:"last_id"`
}

// anthropicModel returns Anthropic's entry of a model that a worker lists.
func anthropicModel(id string, raw json.RawMessage) aboutModel {
	var entry struct {
		Created int64 `json:"created"`
	}
	_ = json.Unmarshal(raw, &entry) // a worker may write no time
	return aboutModel{Type: "model", ID: id, DisplayName: id, CreatedAt: time.Unix(entry.Created, 0).UTC()}
}

// inJSON answers with v.
func inJSON(v any) *Outbound {
	body, _ := json.Marshal(v)
	out := &Outbound{Status: 200, Body: body}
	out.Set("Content-Type", "application/json")
	return out
}

// listAliases adds the aliases that the caller may use and of which a target is listed: each as that entry, under its
// own name.
func listAliases(in *Inbound, ids []string, entries []json.RawMessage) ([]string, []json.RawMessage) {
	for _, a := range in.Epoch.Names.All() {
		if a.Hidden || len(a.Targets) == 0 || !in.mayUse(a.Name) {
			continue
		}
		raw := entryOf(in, &a)
		if raw == nil {
			continue
		}
		ids, entries = append(ids, a.Name), append(entries, raw)
	}
	return ids, entries
}

// entryOf returns the entry of the alias's first target that a worker lists, under the alias's name; nil if none does.
func entryOf(in *Inbound, a *names.Alias) json.RawMessage {
	for _, t := range a.Targets {
		p := in.Epoch.For(t.Model)
		if p == nil {
			continue
		}
		for _, raw := range p.Workers.Models(in.Caller.Workers) {
			var entry map[string]json.RawMessage
			var id string
			if json.Unmarshal(raw, &entry) != nil || json.Unmarshal(entry["id"], &id) != nil || id != t.Model {
				continue
			}
			entry["id"], _ = json.Marshal(a.Name)
			renamed, _ := json.Marshal(entry)
			return renamed
		}
	}
	return nil
}
