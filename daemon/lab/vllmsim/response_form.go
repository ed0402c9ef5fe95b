package vllmsim

import (
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// responseForm is the form of one answer of /v1/responses, and what is kept of it.
type responseForm struct {
	job
	messages   []message // the conversation that was asked, without instructions
	background bool      // it is made while nobody waits for it
	item       string    // id of the one output item, without its prefix
	begun      bool      // the stream has shown a token
	events     int       // sent

	mu     sync.Mutex // guards object
	object responseObject
}

// describe fills in what an answer repeats of its request.
func (f *responseForm) describe(b *responseBody) {
	f.item = newID()
	o := &f.object
	*o = responseObject{
		ID:           f.id,
		CreatedAt:    time.Now().Unix(),
		Object:       "response",
		Model:        f.model,
		Instructions: b.Instructions,
		Metadata:     b.Metadata,
		MaxOutput:    b.MaxOutput,
		Previous:     b.Previous,
		Background:   b.Background,
		Temperature:  1,
		TopP:         1,
		Parallel:     true,
		ServiceTier:  "auto",
		Truncation:   "disabled",
		Tools:        b.Tools,
		ToolChoice:   b.ToolChoice,
		Output:       []any{},
		Status:       statusInProgress,
	}
	if b.Temperature != nil {
		o.Temperature = pyNumber(*b.Temperature)
	}
	if b.TopP != nil {
		o.TopP = pyNumber(*b.TopP)
	}
	if len(b.Tools) == 0 {
		o.Tools = []tool{}
		o.ToolChoice = json.RawMessage(`"none"`)
	} else if isNull(b.ToolChoice) {
		o.ToolChoice = json.RawMessage(`"auto"`)
	}
}

// snapshot returns the response as it is now.
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

// markCancelled marks a response that has not ended. It returns false if it has.
func (f *responseForm) markCancelled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.object.Status != statusQueued && f.object.Status != statusInProgress {
		return false
	}
	f.object.Status = statusCancelled
	return true
}

// turn returns the conversation with its answer: what a next response builds on.
func (f *responseForm) turn() []message {
	answer := message{Role: "assistant", Content: f.choices[0].text()}
	if f.tool != "" {
		answer = callMessage(f.callID(0), f.tool, f.choices[0].text())
	}
	return append(slices.Clip(f.messages), answer)
}

// complete puts output, usage and status into the object.
func (f *responseForm) complete() {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, c := &f.object, f.choices[0]
	if o.Status == statusCancelled {
		return
	}
	switch c.finish() {
	case engine.FinishLength:
		o.Status = statusIncomplete
		o.Incomplete = &incompleteDetails{"max_output_tokens"}
	case engine.FinishAbort:
		o.Status = statusCancelled
	default:
		o.Status = statusCompleted
	}
	o.Output = []any{f.output(statusCompleted, c.text())}
	u := &responseUsage{Input: c.seq.PromptTokens(), Output: c.tokens()}
	u.InputDetails.Cached, _ = f.cacheUse()
	u.InputDetails.PerTurn = []int{}
	u.InputDetails.CachedPerTurn = []int{}
	u.OutputDetails.PerTurn = []int{}
	u.OutputDetails.ToolPerTurn = []int{}
	u.Total = u.Input + u.Output
	o.Usage = u
	if c.side != nil {
		o.KVTransfer = c.side.answer(c)
	}
	f.prompts = nil // a stored response needs them no more
}

// output returns the output item.
func (f *responseForm) output(status, text string) any {
	if f.tool != "" {
		return outputCall{
			Arguments: text,
			CallID:    f.callID(0),
			Name:      f.tool,
			Type:      "function_call",
			ID:        "fc_" + f.item,
			Status:    status,
		}
	}
	m := outputMessage{ID: "msg_" + f.item, Content: []any{}, Role: "assistant", Status: status, Type: "message"}
	if status != statusInProgress {
		m.Content = []any{outputText{Annotations: []any{}, Text: text, Type: "output_text"}}
	}
	return m
}

func (f *responseForm) body(b []byte) []byte {
	raw, _ := json.Marshal(f.snapshot()) // no channels in it
	return append(b, raw...)
}

// event writes one event; fields stand before its number, and behind it between number and type.
func (f *responseForm) event(v *sse, name string, fields []byte, behind ...byte) {
	b := append(append(append(v.buf[:0], "event: "...), name...), "\ndata: {"...)
	b = strconv.AppendInt(append(append(b, fields...), `,"sequence_number":`...), int64(f.events), 10)
	f.events++
	b = append(b, behind...)
	v.end(append(append(append(b, `,"type":"`...), name...), '"'))
}

func (f *responseForm) open(v *sse) {
	f.event(v, "response.created", jsonField("response", f.snapshot()))
	f.event(v, "response.in_progress", jsonField("response", f.snapshot()))
}

func (f *responseForm) token(v *sse, p piece) {
	if p.first {
		f.begin(v)
	}
	if p.from == p.to {
		return
	}
	delta := string(f.choices[p.choice].appendText([]byte(`"delta":"`), p.from, p.to)) + `","item_id":"`
	if f.tool != "" {
		f.event(v, "response.function_call_arguments.delta", []byte(delta+"fc_"+f.item+`","output_index":0`))
		return
	}
	f.event(v, "response.output_text.delta",
		[]byte(`"content_index":0,`+delta+"msg_"+f.item+`","logprobs":[],"output_index":0`))
}

// begin opens the output item.
func (f *responseForm) begin(v *sse) {
	f.begun = true
	item := f.output(statusInProgress, "")
	f.event(v, "response.output_item.added", append(jsonField("item", item), `,"output_index":0`...))
	if f.tool == "" {
		f.event(v, "response.content_part.added", []byte(`"content_index":0,"item_id":"msg_`+f.item+
			`","output_index":0,"part":{"annotations":[],"text":"","type":"output_text","logprobs":[]}`))
	}
}

func (f *responseForm) close(v *sse) {
	if f.begun {
		f.end(v)
	}
	f.event(v, "response.completed", jsonField("response", f.snapshot()))
}

// end closes the output item.
func (f *responseForm) end(v *sse) {
	plain := f.choices[0].text()
	text := string(appendQuoted(nil, plain))
	if f.tool != "" {
		f.event(v, "response.function_call_arguments.done", []byte(`"arguments":`+text+`,"item_id":"fc_`+f.item+
			`","name":"`+f.tool+`","output_index":0`))
	} else {
		id := `"content_index":0,"item_id":"msg_` + f.item + `"`
		f.event(v, "response.output_text.done", []byte(id+`,"logprobs":[],"output_index":0`), []byte(`,"text":`+text)...)
		f.event(v, "response.content_part.done", []byte(id+`,"output_index":0,"part":{"annotations":[],"text":`+text+
			`,"type":"output_text","logprobs":null}`))
	}
	item := jsonField("item", f.output(statusCompleted, plain))
	f.event(v, "response.output_item.done", append(item, `,"output_index":0`...))
}

func (f *responseForm) fail(v *sse, e *apiError) {
	v.write(append(e.appendTo(append(v.buf[:0], "event: error\ndata: "...)), "\n\n"...))
}
