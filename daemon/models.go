package daemon

import (
	"encoding/json"
	"time"

	"github.com/warmpath/warmpath/daemon/gate"
)

// listed are the entries of /v1/models over the workers of all pools: each as its worker wrote it, each id once, and only those
// that a pool serves and the caller may use.
func (d *Daemon) listed(caller *gate.Caller) (ids []string, entries []json.RawMessage) {
	seen := map[string]bool{}
	for _, p := range d.state.Load().pools {
		for _, raw := range p.workers.Models() {
			var entry struct {
				ID string `json:"id"`
			}
			if json.Unmarshal(raw, &entry) != nil || seen[entry.ID] || d.poolFor(entry.ID) != p || !caller.Allows(entry.ID) {
				continue
			}
			seen[entry.ID] = true
			ids, entries = append(ids, entry.ID), append(entries, raw)
		}
	}
	return ids, entries
}

// speaksAnthropic tells of clients that want Anthropic's shapes on paths that OpenAI's API has too.
func speaksAnthropic(in *Inbound) bool { return in.get("anthropic-version") != "" }

// models answers GET /v1/models, all on one page.
func (d *Daemon) models(in *Inbound) *Outbound {
	ids, entries := d.listed(in.Caller)
	if speaksAnthropic(in) {
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

// model answers GET /v1/models/{id} out of the same list. A model that the key may not use is none.
func (d *Daemon) model(in *Inbound, id string) *Outbound {
	ids, entries := d.listed(in.Caller)
	for i := range ids {
		switch {
		case ids[i] != id:
		case speaksAnthropic(in):
			return inJSON(anthropicModel(id, entries[i]))
		default:
			return inJSON(entries[i])
		}
	}
	f := faultUnknownModel(id)
	in.Seen.End = f.code
	if speaksAnthropic(in) {
		return f.outbound(anthropic)
	}
	return f.outbound(openAI)
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

func anthropicModel(id string, raw json.RawMessage) aboutModel {
	var entry struct {
		Created int64 `json:"created"`
	}
	_ = json.Unmarshal(raw, &entry) // a worker may write no time
	return aboutModel{"model", id, id, time.Unix(entry.Created, 0).UTC()}
}

func inJSON(v any) *Outbound {
	body, _ := json.Marshal(v)
	out := &Outbound{Status: 200, Body: body}
	out.set("Content-Type", "application/json")
	return out
}
