package catalogue

import (
	"context"
	"encoding/json"
	"time"

	"github.com/warmpath/warmpath/daemon/request/message"
)

// List answers GET /v1/models, all on one page.
func (c *Catalogue) List(in *message.Inbound) *message.Outbound {
	return jsonAnswer(c.page(in))
}

// Describe answers GET /v1/models/{id} out of the same list. A model that the key may not use is none. Before the
// answer that there is none, the workers' lists are read anew.
func (c *Catalogue) Describe(ctx context.Context, in *message.Inbound) *message.Outbound {
	id := in.Endpoint.ID
	out := c.described(in, id)
	if p := in.Epoch.For(id); out == nil && p != nil && in.Caller.Allows(id) {
		p.Workers.RenewLists(time.Now())
		Await(ctx, p.Workers.Renewing, func(time.Time) bool {
			out = c.described(in, id)
			return out != nil
		})
	}
	if out != nil {
		return out
	}
	f := message.FaultUnknownModel(id)
	in.Seen.End = f.Code
	if in.SpeaksAnthropic() {
		return f.Outbound(message.Anthropic)
	}
	return f.Outbound(message.OpenAI)
}

// described returns the entry of the model of that id, nil if no worker lists it.
func (c *Catalogue) described(in *message.Inbound, id string) *message.Outbound {
	entry := c.entry(in, id)
	switch {
	case entry == nil:
		return nil
	case in.SpeaksAnthropic():
		return inJSON(anthropicModel(id, entry))
	}
	return inJSON(entry)
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
func inJSON(v any) *message.Outbound {
	body, _ := json.Marshal(v)
	return jsonAnswer(body)
}

// jsonAnswer answers with a text of JSON.
func jsonAnswer(body []byte) *message.Outbound {
	out := &message.Outbound{Status: 200, Body: body}
	out.Set("Content-Type", "application/json")
	return out
}
