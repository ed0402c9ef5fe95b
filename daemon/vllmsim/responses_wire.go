package vllmsim

import (
	"encoding/json"
	"slices"
	"strconv"
	"sync"
)

// pyNumber is a number written as Python's repr of a float.
type pyNumber float64

// MarshalJSON writes 1 as 1.0.
func (n pyNumber) MarshalJSON() ([]byte, error) { return []byte(pyFloat(float64(n))), nil }

// responseObject is the object of /v1/responses, in vLLM's order of keys.
type responseObject struct {
	ID               string             `json:"id"`
	CreatedAt        int64              `json:"created_at"`
	Incomplete       *incompleteDetails `json:"incomplete_details"`
	Instructions     *string            `json:"instructions"`
	Metadata         json.RawMessage    `json:"metadata"`
	Model            string             `json:"model"`
	Object           string             `json:"object"`
	Output           []any              `json:"output"`
	Parallel         bool               `json:"parallel_tool_calls"`
	Temperature      pyNumber           `json:"temperature"`
	ToolChoice       json.RawMessage    `json:"tool_choice"`
	Tools            []tool             `json:"tools"`
	TopP             pyNumber           `json:"top_p"`
	Background       bool               `json:"background"`
	MaxOutput        *int               `json:"max_output_tokens"`
	MaxToolCalls     *int               `json:"max_tool_calls"`
	Previous         *string            `json:"previous_response_id"`
	Prompt           *string            `json:"prompt"`
	Reasoning        *string            `json:"reasoning"`
	ServiceTier      string             `json:"service_tier"`
	Status           string             `json:"status"`
	Text             *string            `json:"text"`
	TopLogprobs      *int               `json:"top_logprobs"`
	Truncation       string             `json:"truncation"`
	Usage            *responseUsage     `json:"usage"`
	User             *string            `json:"user"`
	PresencePenalty  pyNumber           `json:"presence_penalty"`
	FrequencyPenalty pyNumber           `json:"frequency_penalty"`
	KVTransfer       *string            `json:"kv_transfer_params"`
	ECTransfer       *string            `json:"ec_transfer_params"`
	InputMessages    *string            `json:"input_messages"`
	OutputMessages   *string            `json:"output_messages"`
}

type incompleteDetails struct {
	Reason string `json:"reason"`
}

type responseUsage struct {
	Input        int `json:"input_tokens"`
	InputDetails struct {
		Cached        int   `json:"cached_tokens"`
		Written       int   `json:"cache_write_tokens"`
		PerTurn       []int `json:"input_tokens_per_turn"`
		CachedPerTurn []int `json:"cached_tokens_per_turn"`
	} `json:"input_tokens_details"`
	Output        int `json:"output_tokens"`
	OutputDetails struct {
		Reasoning   int   `json:"reasoning_tokens"`
		Tool        int   `json:"tool_output_tokens"`
		PerTurn     []int `json:"output_tokens_per_turn"`
		ToolPerTurn []int `json:"tool_output_tokens_per_turn"`
	} `json:"output_tokens_details"`
	Total int `json:"total_tokens"`
}

type outputText struct {
	Annotations []any  `json:"annotations"`
	Text        string `json:"text"`
	Type        string `json:"type"`
	Logprobs    []any  `json:"logprobs"`
}

type outputMessage struct {
	ID      string  `json:"id"`
	Content []any   `json:"content"`
	Role    string  `json:"role"`
	Status  string  `json:"status"`
	Type    string  `json:"type"`
	Phase   *string `json:"phase"`
}

type outputCall struct {
	Arguments string `json:"arguments"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Type      string `json:"type"`
	ID        string `json:"id"`
	Status    string `json:"status"`
}

// responseForm is the form of one answer of /v1/responses, and what is kept of it.
type responseForm struct {
	j        *job
	messages []message // the conversation that was asked, without instructions
	store    bool
	item     string // id of the one output item, without its prefix

	mu     sync.Mutex // guards object
	object responseObject
}

func (f *responseForm) snapshot() responseObject {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.object
}

func (f *responseForm) setStatus(status string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.object.Status = status
}

// cancel marks a response that has not ended; false: it has.
func (f *responseForm) cancel() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.object.Status != "queued" && f.object.Status != "in_progress" {
		return false
	}
	f.object.Status = "cancelled"
	return true
}

// turn is the conversation with its answer: what a next response builds on.
func (f *responseForm) turn() []message {
	answer := message{Role: "assistant", Content: f.j.seqs[0].text()}
	if f.j.tool != "" {
		answer = callMessage(f.j.callID(0), f.j.tool, f.j.seqs[0].text())
	}
	return append(slices.Clip(f.messages), answer)
}

// finish puts output, usage and status into the object.
func (f *responseForm) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, q := &f.object, f.j.seqs[0]
	if o.Status == "cancelled" {
		return
	}
	switch finish(q.ended.Load()) {
	case finishLength:
		o.Status, o.Incomplete = "incomplete", &incompleteDetails{"max_output_tokens"}
	case finishAbort:
		o.Status = "cancelled"
	default:
		o.Status = "completed"
	}
	o.Output = []any{f.output("completed")}
	u := &responseUsage{Input: q.prompt, Output: int(q.produced.Load())}
	u.InputDetails.Cached, _ = f.j.cacheUse()
	u.InputDetails.PerTurn, u.InputDetails.CachedPerTurn = []int{}, []int{}
	u.OutputDetails.PerTurn, u.OutputDetails.ToolPerTurn = []int{}, []int{}
	u.Total = u.Input + u.Output
	o.Usage = u
	f.j.prompts = nil // a stored response needs them no more
}

// output is the output item.
func (f *responseForm) output(status string) any {
	text := f.j.seqs[0].text()
	if f.j.tool != "" {
		return outputCall{text, f.j.callID(0), f.j.tool, "function_call", "fc_" + f.item, status}
	}
	return outputMessage{"msg_" + f.item, []any{outputText{[]any{}, text, "output_text", nil}}, "assistant", status, "message", nil}
}

func (f *responseForm) body(b []byte, _ *job) []byte {
	raw, _ := json.Marshal(f.snapshot()) // no channels in it
	return append(b, raw...)
}

// event writes one event; fields stand before its number, and behind it between number and type.
func (f *responseForm) event(v *events, name string, fields []byte, behind ...byte) {
	b := append(append(append(v.buf[:0], "event: "...), name...), "\ndata: {"...)
	b = strconv.AppendInt(append(append(b, fields...), `,"sequence_number":`...), int64(v.seq), 10)
	v.seq++
	b = append(b, behind...)
	v.end(append(append(append(b, `,"type":"`...), name...), '"'))
}

func jsonField(name string, value any) []byte {
	raw, _ := json.Marshal(value) // plain structs
	return append([]byte(`"`+name+`":`), raw...)
}

func (f *responseForm) open(v *events) {
	f.event(v, "response.created", jsonField("response", f.snapshot()))
	f.event(v, "response.in_progress", jsonField("response", f.snapshot()))
}

func (f *responseForm) token(v *events, i, from, to int, _ finish) {
	call := f.j.tool != ""
	if v.sent[i] < 0 {
		f.begin(v, call)
	}
	if from == to {
		return
	}
	delta := string(f.j.seqs[i].reply.appendText([]byte(`"delta":"`), from, to)) + `","item_id":"`
	if call {
		f.event(v, "response.function_call_arguments.delta", []byte(delta+"fc_"+f.item+`","output_index":0`))
		return
	}
	f.event(v, "response.output_text.delta", []byte(`"content_index":0,`+delta+"msg_"+f.item+`","logprobs":[],"output_index":0`))
}

// begin opens the output item.
func (f *responseForm) begin(v *events, call bool) {
	var item any = outputMessage{"msg_" + f.item, []any{}, "assistant", "in_progress", "message", nil}
	if call {
		item = outputCall{"", f.j.callID(0), f.j.tool, "function_call", "fc_" + f.item, "in_progress"}
	}
	f.event(v, "response.output_item.added", append(jsonField("item", item), `,"output_index":0`...))
	if !call {
		f.event(v, "response.content_part.added", []byte(`"content_index":0,"item_id":"msg_`+f.item+
			`","output_index":0,"part":{"annotations":[],"text":"","type":"output_text","logprobs":[]}`))
	}
}

func (f *responseForm) close(v *events) {
	if v.sent[0] >= 0 {
		text, _ := json.Marshal(f.j.seqs[0].text())
		if f.j.tool != "" {
			f.event(v, "response.function_call_arguments.done", []byte(`"arguments":`+string(text)+`,"item_id":"fc_`+f.item+
				`","name":"`+f.j.tool+`","output_index":0`))
		} else {
			id := `"content_index":0,"item_id":"msg_` + f.item + `"`
			f.event(v, "response.output_text.done", []byte(id+`,"logprobs":[],"output_index":0`), append([]byte(`,"text":`), text...)...)
			f.event(v, "response.content_part.done", []byte(id+`,"output_index":0,"part":{"annotations":[],"text":`+string(text)+
				`,"type":"output_text","logprobs":null}`))
		}
		f.event(v, "response.output_item.done", append(jsonField("item", f.output("completed")), `,"output_index":0`...))
	}
	f.event(v, "response.completed", jsonField("response", f.snapshot()))
}

func (f *responseForm) fail(v *events, e *apiError) {
	v.buf = append(e.appendTo(append(v.buf[:0], "event: error\ndata: "...)), "\n\n"...)
	v.flush()
}
