package vllmsim

import (
	"strconv"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// messagesForm is the form of /v1/messages.
type messagesForm struct {
	job
	begun bool // the stream has shown a token
}

// stopReasons are the names of engine.Finish in /v1/messages; vLLM has none for an abort.
var stopReasons = [...]string{"null", `"end_turn"`, `"max_tokens"`, "null"}

func (f *messagesForm) stopReason() string {
	end := f.choices[0].finish()
	if f.finishReason(end) == "tool_calls" {
		return `"tool_use"`
	}
	return stopReasons[end]
}

// appendUsage appends the usage: input_tokens are those that were neither found in the cache nor put there.
func (f *messagesForm) appendUsage(b []byte) []byte {
	c := f.choices[0]
	cached, created := f.cacheUse()
	b = strconv.AppendInt(append(b, `"usage":{"input_tokens":`...), int64(c.seq.PromptTokens()-cached-created), 10)
	b = strconv.AppendInt(append(b, `,"output_tokens":`...), int64(c.tokens()), 10)
	b = strconv.AppendInt(append(b, `,"cache_creation_input_tokens":`...), int64(created), 10)
	return append(strconv.AppendInt(append(b, `,"cache_read_input_tokens":`...), int64(cached), 10), '}')
}

func (f *messagesForm) body(b []byte) []byte {
	c := f.choices[0]
	b = appendQuoted(append(b, `{"id":`...), f.id)
	b = append(b, `,"type":"message","role":"assistant","content":[`...)
	if f.tool != "" {
		b = appendQuoted(append(b, `{"type":"tool_use","id":`...), f.callID(0))
		b = append(appendQuoted(append(b, `,"name":`...), f.tool), `,"input":`...)
		if input := c.text(); c.finish() == engine.FinishStop {
			b = append(append(b, input...), '}')
		} else {
			b = append(b, "{}}"...) // cut short, so it is no JSON
		}
	} else {
		b = append(c.appendText(append(b, `{"type":"text","text":"`...), 0, c.tokens()), `"}`...)
	}
	b = append(appendQuoted(append(b, `],"model":`...), f.model), `,"stop_reason":`...)
	b = append(append(b, f.stopReason()...), ',')
	b = f.appendUsage(b)
	if c.side != nil && c.side.answer(c) != nil { // vLLM leaves out what is null
		b = appendTransfer(append(b, `,"kv_transfer_params":`...), c)
	}
	return append(b, '}')
}

// event writes one event.
func (f *messagesForm) event(v *sse, name, fields string) {
	b := append(append(append(v.buf[:0], "event: "...), name...), "\ndata: {\"type\":\""+name+`"`...)
	v.end(append(b, fields...))
}

func (f *messagesForm) open(*sse) {} // vLLM waits for the first token

func (f *messagesForm) token(v *sse, p piece) {
	if p.first {
		f.begin(v, p.choice)
	}
	kind := `text_delta","text`
	if f.tool != "" {
		kind = `input_json_delta","partial_json`
	}
	if text := f.choices[p.choice].appendText(nil, p.from, p.to); len(text) > 0 {
		f.event(v, "content_block_delta", `,"delta":{"type":"`+kind+`":"`+string(text)+`"},"index":0`)
	}
}

// begin writes what stands before the first token.
func (f *messagesForm) begin(v *sse, choice int) {
	f.begun = true
	f.event(v, "message_start", `,"message":{"id":`+string(appendQuoted(nil, f.id))+
		`,"type":"message","role":"assistant","content":[],"model":`+string(appendQuoted(nil, f.model))+
		`,"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":`+
		strconv.Itoa(f.choices[choice].seq.PromptTokens())+`,"output_tokens":0}}`)
	block := `{"type":"text","text":""}`
	if f.tool != "" {
		block = `{"type":"tool_use","id":"` + f.callID(choice) + `","name":` + string(appendQuoted(nil, f.tool)) +
			`,"input":{}}`
	}
	f.event(v, "content_block_start", `,"content_block":`+block+`,"index":0`)
}

func (f *messagesForm) close(v *sse) {
	if f.begun {
		f.event(v, "content_block_stop", `,"index":0`)
		f.event(v, "message_delta", `,"delta":{"stop_reason":`+f.stopReason()+`,"stop_sequence":null},`+
			string(f.appendUsage(nil)))
	}
	f.event(v, "message_stop", "")
}

func (f *messagesForm) fail(v *sse, e *apiError) {
	v.write(append(e.appendMessages(append(v.buf[:0], "event: error\ndata: "...)), "\n\n"...))
}
