package vllmsim

import (
	"bytes"
	"encoding/json"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// MessageTokens is what the chat template adds to each message: its role token and its end token.
const MessageTokens = 2

// GenerationTokens is what the chat template adds at the end: the assistant's role token.
const GenerationTokens = 1

// message is one message of a chat body. Content is a string, a list of parts or null; any avoids a second scan of it.
type message struct {
	Role      string          `json:"role"`
	Content   any             `json:"content"`
	ToolCalls json.RawMessage `json:"tool_calls"`
}

// text returns the text of a message, its parts joined.
func (m *message) text() string {
	if s, ok := m.Content.(string); ok {
		return s
	}
	var b strings.Builder
	parts, _ := m.Content.([]any)
	for _, p := range parts {
		part, _ := p.(map[string]any)
		s, _ := part["text"].(string)
		b.WriteString(s)
	}
	return b.String()
}

// lastOf returns the last message, or nil.
func lastOf(messages []message) *message {
	if len(messages) == 0 {
		return nil
	}
	return &messages[len(messages)-1]
}

// callMessage returns an assistant's message that calls a tool, in chat's form.
func callMessage(id, name, arguments string) message {
	calls, _ := json.Marshal([]map[string]any{{
		"id":       id,
		"type":     "function",
		"function": map[string]string{"name": name, "arguments": arguments},
	}})
	return message{Role: "assistant", ToolCalls: calls}
}

// chatTokens returns the tokens of a chat by the chat template: tools first, then each message, then the assistant's
// role token.
//
//	<|tools|> compact JSON <|end|>
//	<|role|> content [<|calls|> compact JSON] <|end|>      for each message
//	<|assistant|>                                          if generate
//
// The reply's own tokens stand directly behind <|assistant|>, as they do when the client sends the reply back.
func chatTokens(tools json.RawMessage, messages []message, generate bool) []uint32 {
	size := len(tools)/engine.BytesPerToken + GenerationTokens
	for i := range messages {
		size += MessageTokens
		if s, ok := messages[i].Content.(string); ok {
			size += engine.CountTokens(s)
		}
	}
	ids := make([]uint32, 0, size+engine.BlockTokens)
	if !isNull(tools) {
		ids = append(appendJSON(append(ids, engine.TokenTools), tools), engine.TokenEnd)
	}
	for i := range messages {
		m := &messages[i]
		ids = appendContent(append(ids, roleToken(m.Role)), m.Content)
		if !isNull(m.ToolCalls) {
			ids = appendJSON(append(ids, engine.TokenCalls), m.ToolCalls)
		}
		ids = append(ids, engine.TokenEnd)
	}
	if generate {
		ids = append(ids, engine.TokenAssistant)
	}
	return ids
}

// promptOf returns the prompt of a chat. If the last message is to be continued, it has no end, and what follows n
// tokens of the prompt is the beginning of the reply; else n is 0.
func promptOf(tools json.RawMessage, messages []message, continues bool) (prompts [][]uint32, n int) {
	ids := chatTokens(tools, messages, !continues)
	if continues && len(messages) > 0 {
		ids = ids[:len(ids)-1]
		n = len(chatTokens(tools, messages[:len(messages)-1], false)) + 1
	}
	return [][]uint32{ids}, n
}

func roleToken(role string) uint32 {
	switch role {
	case "system", "developer":
		return engine.TokenSystem
	case "user":
		return engine.TokenUser
	case "assistant":
		return engine.TokenAssistant
	case "tool", "function":
		return engine.TokenTool
	}
	return engine.TokenOther
}

func appendContent(ids []uint32, content any) []uint32 {
	switch c := content.(type) {
	case string:
		return engine.AppendTokens(ids, c)
	case []any:
		for _, p := range c {
			part, _ := p.(map[string]any)
			if text, ok := part["text"].(string); ok {
				ids = engine.AppendTokens(ids, text)
				continue
			}
			ids = appendPart(ids, p)
		}
	}
	return ids
}

// appendPart appends what stands for an image, audio or unknown part: a special token and 16 hexadecimal digits of its
// hash.
func appendPart(ids []uint32, part any) []uint32 {
	raw, _ := json.Marshal(part) // sorts the keys; the value came from JSON, so it cannot fail
	h := fnv.New64a()
	h.Write(raw)
	digits := strconv.FormatUint(h.Sum64()|1<<63, 16)
	return engine.AppendTokens(append(ids, engine.TokenPart), digits)
}

func appendJSON(ids []uint32, raw json.RawMessage) []uint32 {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return ids
	}
	return engine.AppendTokens(ids, b.String())
}
