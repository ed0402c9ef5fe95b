package vllmsim

import (
	"encoding/json"
	"net/http"
)

// messagesBody is what the simulator reads of the body of POST /v1/messages.
type messagesBody struct {
	Model     string          `json:"model"`
	MaxTokens *int            `json:"max_tokens"`
	System    any             `json:"system"`
	Messages  []message       `json:"messages"`
	Tools     []tool          `json:"tools"`
	Choice    json.RawMessage `json:"tool_choice"`
	Output    *struct {
		Format *answerFormat `json:"format"`
	} `json:"output_config"`
	Stream      bool     `json:"stream"`
	Temperature *float64 `json:"temperature"`
	CacheSalt   *string  `json:"cache_salt"`

	Transfer *transferParams `json:"kv_transfer_params"`
}

// chat returns chat's messages for those of /v1/messages, as vLLM does: system first, calls and results as in a chat.
func (b *messagesBody) chat() ([]message, *apiError) {
	if b.Messages == nil {
		return nil, missing("body.messages")
	}
	var list []message
	if b.System != nil {
		list = append(list, message{Role: "system", Content: b.System})
	}
	for _, m := range b.Messages {
		blocks, ok := m.Content.([]any)
		if !ok {
			list = append(list, m)
			continue
		}
		list = appendBlocks(list, m.Role, blocks)
	}
	return list, nil
}

// appendBlocks appends the messages that the blocks of one message make.
func appendBlocks(list []message, role string, blocks []any) []message {
	var rest []any
	for _, raw := range blocks {
		block, _ := raw.(map[string]any)
		switch block["type"] {
		case "tool_use":
			id, _ := block["id"].(string)
			name, _ := block["name"].(string)
			input, _ := json.Marshal(block["input"]) // came from JSON
			list = append(list, callMessage(id, name, string(input)))
		case "tool_result":
			list = append(list, message{Role: "tool", Content: block["content"]})
		default:
			rest = append(rest, raw)
		}
	}
	if len(rest) > 0 {
		list = append(list, message{Role: role, Content: rest})
	}
	return list
}

// messagesAPI serves /v1/messages.
type messagesAPI struct{ checker }

func (a messagesAPI) prepare(r *http.Request, raw []byte) (task, *apiError) {
	var b messagesBody
	if err := parse(r, raw, &b); err != nil {
		return task{}, err
	}
	like := body{
		Model:       b.Model,
		Stream:      b.Stream,
		MaxTokens:   b.MaxTokens,
		Temperature: b.Temperature,
		CacheSalt:   b.CacheSalt,
		Transfer:    b.Transfer,
	}
	if err := a.check(r, &like); err != nil {
		return task{}, err
	}
	if b.MaxTokens == nil {
		return task{}, missing("body.max_tokens")
	}
	messages, err := b.chat()
	if err != nil {
		return task{}, err
	}
	f := &messagesForm{job: job{chat: true, id: "chatcmpl-", softLimit: true}}
	if b.Output != nil {
		f.fixed = b.Output.Format.sample()
	}
	f.chooseCall(a.cfg.Script, b.Tools, b.Choice, messages)
	f.prompts = [][]uint32{chatTokens(nestedTools(b.Tools), messages, true)}
	return task{job: &f.job, form: f}, a.prepareLeg(r, &f.job, &like)
}

// countTokens serves POST /v1/messages/count_tokens.
func (a messagesAPI) countTokens(w http.ResponseWriter, r *http.Request) {
	var b messagesBody
	if !a.parsePlain(w, r, &b, &b.Model, writeMessagesError) {
		return
	}
	messages, err := b.chat()
	if err != nil {
		writeMessagesError(w, err)
		return
	}
	n := len(chatTokens(nestedTools(b.Tools), messages, true))
	writeJSON(w, http.StatusOK, map[string]int{"input_tokens": n})
}
