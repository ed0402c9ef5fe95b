package vllmsim

import (
	"encoding/json"
	"net/http"
	"time"
)

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

func (s *Server) prepareResponse(r *http.Request, raw []byte) (*job, *apiError) {
	var b responseBody
	if err := parse(r, raw, &b); err != nil {
		return nil, err
	}
	like := body{Model: b.Model, Stream: b.Stream, MaxTokens: b.MaxOutput, Temperature: b.Temperature, CacheSalt: b.CacheSalt, RequestID: b.RequestID}
	if err := s.check(r, &like); err != nil {
		return nil, err
	}
	items, err := readInput(b.Input)
	if err != nil {
		return nil, err
	}
	var messages []message
	if b.Previous != nil {
		before := s.stored.Load().get(*b.Previous)
		if before == nil {
			return nil, noResponse(*b.Previous)
		}
		messages = append(messages, before.turn()...)
	}
	messages = append(messages, items...)
	j := &job{chat: true, id: "resp_"}
	f := &responseForm{j: j, messages: messages, store: b.Store == nil || *b.Store}
	j.form = f
	if b.Text != nil {
		j.fixed = b.Text.Format.sample()
	}
	if t := chooseTool(b.Tools, b.ToolChoice, lastOf(messages)); t != nil {
		j.callTool(t)
	}
	asked := messages
	if b.Instructions != nil {
		asked = append([]message{{Role: "system", Content: *b.Instructions}}, messages...)
	}
	j.prompts = [][]uint32{chatTokens(nestedTools(b.Tools), asked, true)}
	if err := s.finishJob(r, j, &like); err != nil {
		return nil, err
	}
	f.describe(&b)
	s.follow(f, b.Background && !b.Stream)
	return j, nil
}

// follow stores the response, and again with each change of what it says.
func (s *Server) follow(f *responseForm, background bool) {
	store, j := s.stored.Load(), f.j
	if f.store {
		store.put(f)
	}
	j.ready = f.finish
	if background {
		j.background = func(w http.ResponseWriter, e *engine) {
			f.setStatus("queued")
			writeJSON(w, http.StatusOK, f.snapshot())
			s.load.Add(1)
			go func() {
				defer s.load.Add(-1)
				defer e.cancel(j.seqs)
				for !j.over() {
					<-j.notify // the engine ends every sequence, at the latest when it closes
				}
				f.finish()
			}()
		}
	}
}

func lastOf(messages []message) *message {
	if len(messages) == 0 {
		return nil
	}
	return &messages[len(messages)-1]
}

// readInput makes chat messages of the input: as vLLM does, calls and their results become an assistant's and a tool's.
func readInput(raw json.RawMessage) ([]message, *apiError) {
	if isNull(raw) {
		return nil, invalid("missing", "body.input", "Field required", "'<dict>'")
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

// callMessage is an assistant's message that calls a tool, in chat's form.
func callMessage(id, name, arguments string) message {
	calls, _ := json.Marshal([]map[string]any{{"id": id, "type": "function", "function": map[string]string{"name": name, "arguments": arguments}}})
	return message{Role: "assistant", ToolCalls: calls}
}

func noResponse(id string) *apiError {
	return newError(http.StatusNotFound, "invalid_request_error", "response_id", "Response with id '"+id+"' not found.")
}

// handleResponse is GET /v1/responses/{id}. vLLM has neither DELETE nor input_items.
func (s *Server) handleResponse(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if f := s.stored.Load().get(id); f != nil {
		writeJSON(w, http.StatusOK, f.snapshot())
		return
	}
	writeError(w, noResponse(id))
}

// handleCancel is POST /v1/responses/{id}/cancel.
func (s *Server) handleCancel(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	f := s.stored.Load().get(id)
	if f == nil {
		writeError(w, noResponse(id))
		return
	}
	if f.j.background == nil || !f.cancel() {
		writeError(w, newError(http.StatusBadRequest, "invalid_request_error", "response_id", "Cannot cancel a synchronous response."))
		return
	}
	s.engine.Load().cancel(f.j.seqs)
	writeJSON(w, http.StatusOK, f.snapshot())
}

// describe fills in what an answer repeats of its request.
func (f *responseForm) describe(b *responseBody) {
	o := &f.object
	o.ID, o.CreatedAt, o.Object, o.Model = f.j.id, time.Now().Unix(), "response", f.j.model
	o.Instructions, o.Metadata, o.MaxOutput, o.Previous, o.Background = b.Instructions, b.Metadata, b.MaxOutput, b.Previous, b.Background
	o.Temperature, o.TopP, o.Parallel, o.ServiceTier, o.Truncation = 1, 1, true, "auto", "disabled"
	if b.Temperature != nil {
		o.Temperature = pyNumber(*b.Temperature)
	}
	if b.TopP != nil {
		o.TopP = pyNumber(*b.TopP)
	}
	o.Tools, o.ToolChoice = b.Tools, b.ToolChoice
	if len(b.Tools) == 0 {
		o.Tools, o.ToolChoice = []tool{}, json.RawMessage(`"none"`)
	} else if isNull(b.ToolChoice) {
		o.ToolChoice = json.RawMessage(`"auto"`)
	}
	o.Output, o.Status = []any{}, "in_progress"
	f.item = newID()
}
