package vllmsim

import (
	"encoding/json"
	"strconv"
	"strings"
)

// useTheTool in the last user message makes the worker call its first tool, where tool_choice leaves it free.
const useTheTool = "use the tool"

// tool is one entry of a chat body's tools, or in flat form of /v1/responses and /v1/messages.
type tool struct {
	Type        string          `json:"type,omitempty"`
	Function    *toolFunction   `json:"function,omitempty"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
}

type toolFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// nested is the tool in chat's form, which is the one that enters the prompt.
func (t tool) nested() tool {
	if t.Function != nil {
		return t
	}
	parameters := t.Parameters
	if parameters == nil {
		parameters = t.InputSchema
	}
	return tool{Type: "function", Function: &toolFunction{t.Name, t.Description, parameters}}
}

func nestedTools(tools []tool) json.RawMessage {
	if len(tools) == 0 {
		return nil
	}
	list := make([]tool, len(tools))
	for i, t := range tools {
		list[i] = t.nested()
	}
	raw, _ := json.Marshal(list) // came from JSON
	return raw
}

// chooseTool is the tool that the reply calls, or nil. choice is a tool_choice of any of the endpoints.
func chooseTool(tools []tool, choice json.RawMessage, last *message) *toolFunction {
	var word string
	var named struct {
		Type, Name string
		Function   struct{ Name string }
	}
	if len(tools) == 0 {
		return nil
	}
	if json.Unmarshal(choice, &word) != nil && json.Unmarshal(choice, &named) == nil {
		word = named.Type
	}
	name := named.Name + named.Function.Name
	for _, t := range tools {
		f := t.nested().Function
		switch word {
		case "required", "any":
			return f
		case "function", "tool":
			if f.Name == name {
				return f
			}
		case "", "auto":
			if last != nil && last.Role == "user" && strings.Contains(last.text(), useTheTool) {
				return f
			}
		}
	}
	return nil
}

// text is what a message says, its parts joined.
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

// callTool makes the replies of the job a call of f.
func (j *job) callTool(f *toolFunction) {
	j.tool, j.fixed = f.Name, sampleOf(f.Parameters)
}

// callID is the id of sequence i's call: the job's, so that a stream need not remember it.
func (j *job) callID(i int) string {
	return "chatcmpl-tool-" + strconv.FormatUint(mix(j.callSeed, uint64(i)), 16)
}

// appendToolDelta appends a delta up to the call's function; the first names the call.
func (j *job) appendToolDelta(b []byte, i int, first bool) []byte {
	if !first {
		return append(b, `{"tool_calls":[{"index":0,`...)
	}
	b = appendQuoted(append(b, `{"tool_calls":[{"id":`...), j.callID(i))
	return append(b, `,"type":"function","index":0,`...)
}

// finishName is finish_reason: a call of a tool ends with its own.
func (j *job) finishName(end finish) string {
	if j.tool != "" && end == finishStop {
		return "tool_calls"
	}
	return finishNames[end]
}
