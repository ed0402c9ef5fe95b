package served

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/warmpath/warmpath/daemon/lab/world"
)

// model is the name of the one model of a simulated fleet.
const model = "m"

// appendBody appends the body of a completion request, as a client sends it. The text needs no escaping.
func appendBody(b []byte, q *world.Request, text []byte) []byte {
	b = append(b, `{"model":"`+model+`","stream":true,"stream_options":{"include_usage":true},"ignore_eos":true,`...)
	b = append(b, `"max_tokens":`...)
	b = strconv.AppendInt(b, int64(q.MaxTokens), 10)
	b = append(b, `,"prompt":"`...)
	b = append(b, text...)
	return append(b, `"}`...)
}

// textOf returns the prompt of a body of appendBody, or of a part of one.
func textOf(body []byte) []byte {
	_, text, _ := bytes.Cut(body, []byte(`"prompt":"`))
	text, _, _ = bytes.Cut(text, []byte{'"'})
	return text
}

// chunk begins each event of a stream.
const chunk = `data: {"id":"cmpl-1","object":"text_completion","created":1,"model":"` + model + `","choices":`

// appendAnswer appends the stream that a worker answers with: one event with all of the text, which is the same to a
// client as many, then the counts.
func appendAnswer(b []byte, prompt, output, cached int, text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic("BUG: served: a text that is no JSON")
	}
	b = append(b, chunk+`[{"index":0,"text":`...)
	b = append(b, quoted...)
	b = append(b, `,"logprobs":null,"finish_reason":"length","stop_reason":null}]}`+"\n\n"...)
	b = append(b, chunk+`[],"usage":{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(prompt), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(prompt+output), 10)
	b = append(b, `,"completion_tokens":`...)
	b = strconv.AppendInt(b, int64(output), 10)
	b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(cached), 10)
	return append(b, "}}}\n\ndata: [DONE]\n\n"...)
}
