package vllmsim

import "strconv"

// messagesForm is the form of /v1/messages.
type messagesForm struct{}

// stopReasons are the names of finish in /v1/messages; vLLM has none for an abort.
var stopReasons = [...]string{"null", `"end_turn"`, `"max_tokens"`, "null"}

func stopReason(j *job) string {
	end := finish(j.seqs[0].ended.Load())
	if j.finishName(end) == "tool_calls" {
		return `"tool_use"`
	}
	return stopReasons[end]
}

// appendMessageUsage appends the usage: input_tokens are those that were neither found in the cache nor put there.
func (j *job) appendMessageUsage(b []byte) []byte {
	q := j.seqs[0]
	cached, created := j.cacheUse()
	b = strconv.AppendInt(append(b, `"usage":{"input_tokens":`...), int64(q.prompt-cached-created), 10)
	b = strconv.AppendInt(append(b, `,"output_tokens":`...), int64(q.produced.Load()), 10)
	b = strconv.AppendInt(append(b, `,"cache_creation_input_tokens":`...), int64(created), 10)
	return append(strconv.AppendInt(append(b, `,"cache_read_input_tokens":`...), int64(cached), 10), '}')
}

func (messagesForm) body(b []byte, j *job) []byte {
	q := j.seqs[0]
	b = appendQuoted(append(b, `{"id":`...), j.id)
	b = append(b, `,"type":"message","role":"assistant","content":[`...)
	switch {
	case j.tool != "":
		b = appendQuoted(append(b, `{"type":"tool_use","id":`...), j.callID(0))
		b = append(appendQuoted(append(b, `,"name":`...), j.tool), `,"input":`...)
		if input := q.text(); finish(q.ended.Load()) == finishStop {
			b = append(append(b, input...), '}')
		} else {
			b = append(b, "{}}"...) // cut short, so it is no JSON
		}
	default:
		b = append(q.reply.appendText(append(b, `{"type":"text","text":"`...), 0, int(q.produced.Load())), `"}`...)
	}
	b = append(appendQuoted(append(b, `],"model":`...), j.model), `,"stop_reason":`...)
	b = append(append(b, stopReason(j)...), ',')
	return append(j.appendMessageUsage(b), '}')
}

func (messagesForm) event(v *events, name, fields string) {
	v.end(append(append(append(append(v.buf[:0], "event: "...), name...), "\ndata: {\"type\":\""+name+`"`...), fields...))
}

func (messagesForm) open(*events) {} // vLLM waits for the first token

func (f messagesForm) token(v *events, i, from, to int, _ finish) {
	j, q := v.j, v.j.seqs[i]
	kind := "text_delta\",\"text"
	if j.tool != "" {
		kind = "input_json_delta\",\"partial_json"
	}
	if v.sent[i] < 0 {
		f.event(v, "message_start", `,"message":{"id":`+string(appendQuoted(nil, j.id))+`,"type":"message","role":"assistant","content":[],"model":`+
			string(appendQuoted(nil, j.model))+`,"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":`+
			strconv.Itoa(q.prompt)+`,"output_tokens":0}}`)
		block := `{"type":"text","text":""}`
		if j.tool != "" {
			block = `{"type":"tool_use","id":"` + j.callID(i) + `","name":` + string(appendQuoted(nil, j.tool)) + `,"input":{}}`
		}
		f.event(v, "content_block_start", `,"content_block":`+block+`,"index":0`)
	}
	if text := q.reply.appendText(nil, from, to); len(text) > 0 {
		f.event(v, "content_block_delta", `,"delta":{"type":"`+kind+`":"`+string(text)+`"},"index":0`)
	}
}

func (f messagesForm) close(v *events) {
	if v.sent[0] >= 0 {
		f.event(v, "content_block_stop", `,"index":0`)
		f.event(v, "message_delta", `,"delta":{"stop_reason":`+stopReason(v.j)+`,"stop_sequence":null},`+string(v.j.appendMessageUsage(nil)))
	}
	f.event(v, "message_stop", "")
}

func (messagesForm) fail(v *events, e *apiError) {
	v.buf = append(e.appendMessages(append(v.buf[:0], "event: error\ndata: "...)), "\n\n"...)
	v.flush()
}
