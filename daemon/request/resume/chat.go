package resume

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// block is a block of Anthropic's content, as far as chats have it too.
type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	Of      string          `json:"tool_use_id"`
	Content json.RawMessage `json:"content"`
}

// blocksOf reads a content, which is a text or a list of blocks.
func blocksOf(raw []byte) (list []block, ok bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []block{{Type: "text", Text: text}}, true
	}
	return list, json.Unmarshal(raw, &list) == nil
}

// textOf joins the texts of a content. vLLM leaves a line out that Claude Code changes with each request.
func textOf(raw []byte) (text string, ok bool) {
	list, ok := blocksOf(raw)
	for _, b := range list {
		ok = ok && b.Type == "text"
		if !strings.HasPrefix(b.Text, "x-anthropic-billing-header") {
			text += b.Text
		}
	}
	return text, ok
}

// chatMessage is a message of a chat.
type chatMessage struct {
	Role    string     `json:"role"`
	Content any        `json:"content,omitempty"`
	Calls   []chatCall `json:"tool_calls,omitempty"`
	Of      string     `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type chatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// chatOf returns a body of Anthropic's messages as the chat that vLLM makes of it, and the chat's messages. ok is false
// if it has what this does not know, such as images.
func chatOf(body []byte) (chat, messages []byte, ok bool) {
	ok = true
	var list []chatMessage
	chat = []byte(`{"stream":true`)
	add := func(name string, value []byte) { chat = slices.Concat(chat, []byte(`,"`+name+`":`), value) }
	marshal := func(v any) []byte {
		text, err := json.Marshal(v)
		ok = ok && err == nil
		return text
	}
	whole := prompt.Fields(body, func(name, value []byte) bool {
		switch string(name) {
		case "system":
			if given(value) {
				text, plain := textOf(value)
				ok = ok && plain
				list = slices.Insert(list, 0, chatMessage{Role: "system", Content: text})
			}
		case "messages":
			ok = prompt.Elements(value, func(m []byte) bool {
				more, plain := chatMessages(m)
				list = append(list, more...)
				return plain
			}) && ok
		case "stop_sequences":
			add("stop", value)
		case "thinking":
			ok = ok && string(field(value, "type")) == `"disabled"`
			add("reasoning_effort", []byte(`"none"`))
		case "tool_choice":
			add("tool_choice", field(value, "type"))
		case "tools":
			var tools []struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Schema      json.RawMessage `json:"input_schema"`
			}
			ok = json.Unmarshal(value, &tools) == nil && ok
			made := make([]chatTool, len(tools))
			for i, t := range tools {
				made[i].Type, made[i].Function.Name = "function", t.Name
				made[i].Function.Description, made[i].Function.Parameters = t.Description, t.Schema
			}
			if len(made) > 0 {
				add("tools", marshal(made))
			}
		case "output_config":
			if effort := field(value, "effort"); given(effort) {
				add("reasoning_effort", effort)
			}
		case "stream", "metadata":
		default: // engines take these in both
			add(string(name), value)
		}
		return ok
	})
	messages = marshal(list)
	add("messages", messages)
	return append(chat, '}'), messages, ok && whole && len(list) > 0
}

// chatMessages returns one of Anthropic's messages as a chat's: results of tools are messages of their own.
func chatMessages(raw []byte) (list []chatMessage, ok bool) {
	role := string(prompt.Inside(field(raw, "role")))
	blocks, ok := blocksOf(field(raw, "content"))
	m := chatMessage{Role: role}
	var texts []map[string]string
	for _, b := range blocks {
		switch b.Type {
		case "text":
			if b.Text != "" {
				texts = append(texts, map[string]string{"type": "text", "text": b.Text})
			}
		case "tool_use":
			c := chatCall{ID: b.ID, Type: "function"}
			c.Function.Name, c.Function.Arguments = b.Name, cmp.Or(string(b.Input), "{}")
			m.Calls = append(m.Calls, c)
		case "tool_result":
			text, plain := "", true
			if b.Content != nil {
				text, plain = resultOf(b.Content)
			}
			ok = ok && plain && role == "user"
			list = append(list, chatMessage{Role: "tool", Content: text, Of: b.Of})
		default:
			ok = false
		}
	}
	switch len(texts) {
	case 0:
		ok = ok && (len(m.Calls) > 0 || role == "user" && len(list) > 0)
	case 1:
		m.Content = texts[0]["text"]
	default:
		m.Content = texts
	}
	if len(texts)+len(m.Calls) > 0 {
		list = append(list, m)
	}
	return list, ok
}

// resultOf joins the texts of a tool's result, each in a line of its own.
func resultOf(raw []byte) (text string, ok bool) {
	list, ok := blocksOf(raw)
	lines := make([]string, len(list))
	for i, b := range list {
		ok = ok && b.Type == "text"
		lines[i] = b.Text
	}
	return strings.Join(lines, "\n"), ok
}
