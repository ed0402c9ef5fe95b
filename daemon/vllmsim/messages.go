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
}

func (s *Server) prepareMessages(r *http.Request, raw []byte) (*job, *apiError) {
	var b messagesBody
	if err := parse(r, raw, &b); err != nil {
		return nil, err
	}
	like := body{Model: b.Model, Stream: b.Stream, MaxTokens: b.MaxTokens, Temperature: b.Temperature, CacheSalt: b.CacheSalt}
	if err := s.check(r, &like); err != nil {
		return nil, err
	}
	if b.MaxTokens == nil {
		return nil, invalid("missing", "body.max_tokens", "Field required", "'<dict>'")
	}
	messages, err := b.chat()
	if err != nil {
		return nil, err
	}
	j := &job{form: messagesForm{}, chat: true, id: "chatcmpl-", softLimit: true}
	if b.Output != nil {
		j.fixed = b.Output.Format.sample()
	}
	if t := chooseTool(b.Tools, b.Choice, lastOf(messages)); t != nil {
		j.callTool(t)
	}
	j.prompts = [][]uint32{chatTokens(nestedTools(b.Tools), messages, true)}
	return j, s.finishJob(r, j, &like)
}

// chat makes chat's messages of those of /v1/messages, as vLLM does: system first, calls and results as in a chat.
func (b *messagesBody) chat() ([]message, *apiError) {
	if b.Messages == nil {
		return nil, invalid("missing", "body.messages", "Field required", "'<dict>'")
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

// handleCountTokens is POST /v1/messages/count_tokens.
func (s *Server) handleCountTokens(w http.ResponseWriter, r *http.Request) {
	var b messagesBody
	if !s.readPlain(w, r, &b, &b.Model, writeMessagesError) {
		return
	}
	messages, err := b.chat()
	if err != nil {
		writeMessagesError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]int{"input_tokens": len(chatTokens(nestedTools(b.Tools), messages, true))})
}

// writeMessagesError is an error in the shape of /v1/messages.
func writeMessagesError(w http.ResponseWriter, e *apiError) {
	writeBody(w, e.Code, e.appendMessages(nil))
}

func (e *apiError) appendMessages(b []byte) []byte {
	b = appendQuoted(append(b, `{"type":"error","error":{"type":`...), e.Type)
	return append(appendQuoted(append(b, `,"message":`...), e.Message), "}}"...)
}
