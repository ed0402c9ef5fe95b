package vllmsim

import (
	"strconv"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// chatForm is the form of chat and, if the job is none, of completions.
type chatForm struct {
	job
	usage      bool   // the last event of a stream carries it
	everyUsage bool   // each does
	head       []byte // what every event of the stream begins with
}

func (f *chatForm) body(b []byte) []byte {
	if f.sglang {
		return f.bodySGLang(b)
	}
	if f.chat {
		b = f.appendHead(b, "chat.completion")
	} else {
		b = f.appendHead(b, "text_completion")
	}
	for i, c := range f.choices {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"index":`...), int64(i), 10)
		b = f.appendChoice(b, i, c)
	}
	cached, created := f.cacheUse()
	b = append(b, `],"service_tier":null,"system_fingerprint":"`+f.fingerprint()+`",`...)
	b = append(f.appendCounts(b), `,"prompt_tokens_details":{"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(cached), 10)
	if f.chat {
		b = strconv.AppendInt(append(b, `,"created_cache_tokens":`...), int64(created), 10)
	} else {
		b = append(b, `,"created_cache_tokens":null`...)
	}
	b = append(b, `,"multimodal_tokens":null},"completion_tokens_details":null}`...)
	if f.chat {
		b = f.appendPromptIDs(append(b, `,"prompt_logprobs":null,"prompt_token_ids":`...), 0)
		b = append(b, `,"prompt_text":null`...)
	}
	b = appendTransfer(append(b, `,"kv_transfer_params":`...), f.choices[0])
	return append(b, `,"ec_transfer_params":null,"metrics":null}`...)
}

// appendHead appends what every body and event begins with, up to the choices.
func (f *chatForm) appendHead(b []byte, object string) []byte {
	b = appendQuoted(append(b, `{"id":`...), f.id)
	b = append(append(append(b, `,"object":"`...), object...), `","created":`...)
	b = strconv.AppendInt(b, f.created, 10)
	b = appendQuoted(append(b, `,"model":`...), f.model)
	return append(b, `,"choices":[`...)
}

// appendCounts appends a usage object without its end. vLLM counts a prompt once, however many choices it has.
func (f *chatForm) appendCounts(b []byte) []byte {
	prompt, reply := 0, 0
	for i, c := range f.choices {
		if i%f.n == 0 {
			prompt += c.seq.PromptTokens()
		}
		reply += c.tokens()
	}
	b = strconv.AppendInt(append(b, `"usage":{"prompt_tokens":`...), int64(prompt), 10)
	b = strconv.AppendInt(append(b, `,"total_tokens":`...), int64(prompt+reply), 10)
	return strconv.AppendInt(append(b, `,"completion_tokens":`...), int64(reply), 10)
}

// appendChoice appends a choice of a plain answer, behind its index.
func (f *chatForm) appendChoice(b []byte, i int, c *choice) []byte {
	const rest = `"refusal":null,"annotations":null,"audio":null,"function_call":null,`
	n := c.tokens()
	switch {
	case f.tool != "":
		b = append(b, `,"message":{"role":"assistant","content":null,`+rest+`"tool_calls":[{"id":`...)
		b = append(appendQuoted(b, f.callID(i)), `,"type":"function","function":{"name":`...)
		b = append(appendQuoted(b, f.tool), `,"arguments":"`...)
		b = append(c.appendText(b, 0, n), `"}}],"reasoning":null}`...)
	case f.chat:
		b = c.appendText(append(b, `,"message":{"role":"assistant","content":"`...), 0, n)
		b = append(b, `",`+rest+`"reasoning":null}`...)
	default:
		b = append(c.appendText(append(b, `,"text":"`...), 0, n), '"')
	}
	b = append(append(b, `,"logprobs":null,"finish_reason":"`...), f.finishReason(c.finish())...)
	b = f.appendReplyIDs(append(b, `","stop_reason":null,"token_ids":`...), c, 0, n)
	if !f.chat {
		b = f.appendPromptIDs(append(b, `,"prompt_logprobs":null,"prompt_token_ids":`...), i/f.n)
	}
	return append(b, `,"routed_experts":null}`...)
}

func (f *chatForm) open(*sse) {
	object := "text_completion"
	if f.chat {
		object = "chat.completion.chunk"
	}
	f.head = f.appendHead([]byte("data: "), object)
}

func (f *chatForm) token(v *sse, p piece) {
	if f.sglang {
		f.tokenSGLang(v, p)
		return
	}
	if p.first && f.chat {
		f.role(v, p.choice)
	}
	b := strconv.AppendInt(append(append(v.buf[:0], f.head...), `{"index":`...), int64(p.choice), 10)
	b = append(f.appendDelta(b, p), `,"logprobs":null,"finish_reason":`...)
	if p.end == engine.Unfinished {
		b = append(b, "null"...)
	} else {
		b = append(append(append(b, '"'), f.finishReason(p.end)...), '"')
	}
	if !f.chat || p.end != engine.Unfinished {
		b = append(b, `,"stop_reason":null`...)
	}
	if !f.chat {
		b = append(b, `,"prompt_token_ids":`...)
		if p.from == 0 {
			b = f.appendPromptIDs(b, p.choice/f.n)
		} else {
			b = append(b, "null"...)
		}
	}
	b = append(f.appendReplyIDs(append(b, `,"token_ids":`...), f.choices[p.choice], p.from, p.to), `}]`...)
	if f.everyUsage {
		b = append(f.appendCounts(append(b, ',')), '}')
	}
	v.end(b)
}

// appendDelta appends the new tokens of a choice.
func (f *chatForm) appendDelta(b []byte, p piece) []byte {
	c := f.choices[p.choice]
	switch {
	case f.tool != "":
		b = append(f.appendToolDelta(append(b, `,"delta":`...), p), `"function":{`...)
		if p.first {
			b = append(appendQuoted(append(b, `"name":`...), f.tool), ',')
		}
		return append(c.appendText(append(b, `"arguments":"`...), p.from, p.to), `"}}]}`...)
	case f.chat:
		return append(c.appendText(append(b, `,"delta":{"content":"`...), p.from, p.to), `"}`...)
	}
	return append(c.appendText(append(b, `,"text":"`...), p.from, p.to), '"')
}

// appendToolDelta appends a delta up to the call's function; the first names the call.
func (f *chatForm) appendToolDelta(b []byte, p piece) []byte {
	if !p.first {
		return append(b, `{"tool_calls":[{"index":0,`...)
	}
	b = appendQuoted(append(b, `{"tool_calls":[{"id":`...), f.callID(p.choice))
	return append(b, `,"type":"function","index":0,`...)
}

// role writes the first event of a chat choice.
func (f *chatForm) role(v *sse, choice int) {
	b := strconv.AppendInt(append(append(v.buf[:0], f.head...), `{"index":`...), int64(choice), 10)
	b = append(b, `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
	b = f.appendPromptIDs(append(b, `,"prompt_token_ids":`...), 0)
	v.end(append(b, `,"prompt_text":null`...))
}

func (f *chatForm) close(v *sse) {
	if f.usage && !f.aborted() {
		f.writeUsage(v)
	}
	f.done(v)
}

// writeUsage writes the last event before [DONE].
func (f *chatForm) writeUsage(v *sse) {
	if f.sglang {
		v.end(append(f.appendCounts(append(append(v.buf[:0], f.head...), `],`...)), sglangUsage...))
		return
	}
	cached, created := f.cacheUse()
	b := f.appendCounts(append(append(v.buf[:0], f.head...), `],`...))
	b = strconv.AppendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), int64(cached), 10)
	if f.chat {
		b = strconv.AppendInt(append(b, `,"created_cache_tokens":`...), int64(created), 10)
	}
	v.end(append(b, `}},"system_fingerprint":"`+f.fingerprint()+`"`...))
}

func (f *chatForm) fail(v *sse, e *apiError) {
	v.write(append(e.appendTo(append(v.buf[:0], "data: "...)), "\n\n"...))
	f.done(v)
}

func (f *chatForm) done(v *sse) { v.write(append(v.buf[:0], "data: [DONE]\n\n"...)) }
