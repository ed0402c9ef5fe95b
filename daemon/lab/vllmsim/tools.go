package vllmsim

import (
	"encoding/json"
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

// nested returns the tool in chat's form, which is the one that enters the prompt.
func (t tool) nested() tool {
	if t.Function != nil {
		return t
	}
	parameters := t.Parameters
	if parameters == nil {
		parameters = t.InputSchema
	}
	return tool{Type: "function", Function: &toolFunction{
		Name:        t.Name,
		Description: t.Description,
		Parameters:  parameters,
	}}
}

// nestedTools returns the tools in chat's form, as they enter the prompt.
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

// Turn is what an agent is made to do next: the arguments of the call, by the names of the tools that can do it.
type Turn map[string]json.RawMessage

// chooseCall makes the replies a call of a tool, if the request, its last message or the script asks for one. A client
// that offers tools goes on for many turns: its replies end on their own.
func (j *job) chooseCall(script []Turn, tools []tool, choice json.RawMessage, messages []message) {
	j.softLimit = j.softLimit || len(tools) > 0
	turn := 0
	for i := range messages {
		if messages[i].Role == "tool" {
			turn++
		}
	}
	if turn < len(script) && string(choice) != `"none"` {
		for _, t := range tools {
			f := t.nested().Function
			if arguments, ok := script[turn][f.Name]; ok {
				j.tool, j.fixed = f.Name, string(arguments)
				return
			}
		}
	}
	if called := chooseTool(tools, choice, lastOf(messages)); called != nil {
		j.callTool(called)
	}
}

// chooseTool returns the tool that the reply calls, or nil. choice is a tool_choice of any of the endpoints.
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
