package vllmsim

import "encoding/json"

// responseBody is what the simulator reads of the body of POST /v1/responses.
type responseBody struct {
	Model        string          `json:"model"`
	Input        json.RawMessage `json:"input"` // a text or a list of items
	Instructions *string         `json:"instructions"`
	Metadata     json.RawMessage `json:"metadata"`
	Tools        []tool          `json:"tools"`
	ToolChoice   json.RawMessage `json:"tool_choice"`
	Text         *struct {
		Format *answerFormat `json:"format"`
	} `json:"text"`
	MaxOutput   *int     `json:"max_output_tokens"`
	Previous    *string  `json:"previous_response_id"`
	Background  bool     `json:"background"`
	Store       *bool    `json:"store"`
	Stream      bool     `json:"stream"`
	Temperature *float64 `json:"temperature"`
	TopP        *float64 `json:"top_p"`
	CacheSalt   *string  `json:"cache_salt"`
	RequestID   string   `json:"request_id"`

	Transfer *transferParams `json:"kv_transfer_params"`
}

// inputItem is one item of a list of input.
type inputItem struct {
	Type      string `json:"type"`
	Role      string `json:"role"`
	Content   any    `json:"content"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Output    any    `json:"output"`
}

// inProgress reports whether the last item of the input is a message that the reply goes on with.
func inProgress(raw json.RawMessage) bool {
	var items []struct{ Type, Status string }
	if json.Unmarshal(raw, &items) != nil || len(items) == 0 {
		return false
	}
	last := items[len(items)-1]
	return (last.Type == "" || last.Type == "message") && (last.Status == "in_progress" || last.Status == "incomplete")
}

// readInput returns the input as chat messages. As in vLLM, calls and their results become an assistant's and a tool's.
func readInput(raw json.RawMessage) ([]message, *apiError) {
	if isNull(raw) {
		return nil, missing("body.input")
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []message{{Role: "user", Content: text}}, nil
	}
	var items []inputItem
	if json.Unmarshal(raw, &items) != nil {
		return nil, invalid("string_type", "body.input", "Input should be a valid string", "'<value>'")
	}
	var messages []message
	for _, it := range items {
		switch it.Type {
		case "function_call":
			messages = append(messages, callMessage(it.CallID, it.Name, it.Arguments))
		case "function_call_output":
			messages = append(messages, message{Role: "tool", Content: it.Output})
		case "reasoning":
		default:
			messages = append(messages, message{Role: it.Role, Content: it.Content})
		}
	}
	return messages, nil
}
