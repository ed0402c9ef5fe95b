package vllmsim

import (
	"bytes"
	"encoding/json"
	"hash/fnv"
	"strconv"
)

// message is one message of a chat body. Content is a string, a list of parts or null; any avoids a second scan of it.
type message struct {
	Role      string          `json:"role"`
	Content   any             `json:"content"`
	ToolCalls json.RawMessage `json:"tool_calls"`
}

// chatTokens is the chat template: tools first, then each message, then the assistant's role token.
//
//	<|tools|> compact JSON <|end|>
//	<|role|> content [<|calls|> compact JSON] <|end|>      for each message
//	<|assistant|>                                          if generate
//
// The reply's own tokens stand directly behind <|assistant|>, as they do when the client sends the reply back.
func chatTokens(tools json.RawMessage, messages []message, generate bool) []uint32 {
	size := len(tools)/BytesPerToken + GenerationTokens
	for i := range messages {
		size += MessageTokens
		if s, ok := messages[i].Content.(string); ok {
			size += CountTokens(s)
		}
	}
	ids := make([]uint32, 0, size+BlockTokens)
	if !isNull(tools) {
		ids = append(appendJSON(append(ids, tokenTools), tools), tokenEnd)
	}
	for i := range messages {
		m := &messages[i]
		ids = appendContent(append(ids, roleToken(m.Role)), m.Content)
		if !isNull(m.ToolCalls) {
			ids = appendJSON(append(ids, tokenCalls), m.ToolCalls)
		}
		ids = append(ids, tokenEnd)
	}
	if generate {
		ids = append(ids, tokenAssistant)
	}
	return ids
}

func roleToken(role string) uint32 {
	switch role {
	case "system", "developer":
		return tokenSystem
	case "user":
		return tokenUser
	case "assistant":
		return tokenAssistant
	case "tool", "function":
		return tokenTool
	}
	return tokenOther
}

func appendContent(ids []uint32, content any) []uint32 {
	switch c := content.(type) {
	case string:
		return appendTokens(ids, c)
	case []any:
		for _, p := range c {
			part, _ := p.(map[string]any)
			if text, ok := part["text"].(string); ok {
				ids = appendTokens(ids, text)
				continue
			}
			ids = appendPart(ids, p)
		}
	}
	return ids
}

// appendPart stands for an image, audio or unknown part: a special token and 16 hexadecimal digits of its hash.
func appendPart(ids []uint32, part any) []uint32 {
	raw, _ := json.Marshal(part) // sorts the keys; the value came from JSON, so it cannot fail
	h := fnv.New64a()
	h.Write(raw)
	digits := strconv.FormatUint(h.Sum64()|1<<63, 16)
	return appendTokens(append(ids, tokenPart), digits)
}

func appendJSON(ids []uint32, raw json.RawMessage) []uint32 {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return ids
	}
	return appendTokens(ids, b.String())
}

func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || string(raw) == "null"
}
