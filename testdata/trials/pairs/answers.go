package main

import (
	"fmt"
	"strings"

	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// answer is what a worker says to a request.
type answer struct {
	path   string
	n      int    // of the request
	finish string // why it ended: stop | length | error
	prompt int    // tokens
	cached int
	params string // kv_transfer_params, as JSON
	usage  bool   // a stream ends with the usage
	id     string // of a response
}

// mark is the text by which a client knows its own answer.
func mark(n int) string { return fmt.Sprintf("mark-%d.", n) }

func (a *answer) tokens() string {
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":3,"total_tokens":%d,"prompt_tokens_details":`+
		`{"cached_tokens":%d}}`, a.prompt, a.prompt+3, a.cached)
}

func (a *answer) responseTokens() string {
	return fmt.Sprintf(`{"input_tokens":%d,"output_tokens":3,"total_tokens":%d,"input_tokens_details":`+
		`{"cached_tokens":%d},"output_tokens_details":{"reasoning_tokens":0}}`, a.prompt, a.prompt+3, a.cached)
}

func (a *answer) text() string {
	if a.finish == "error" {
		return ""
	}
	return mark(a.n)
}

// whole is the answer in one piece, as testdata/vllm/ok.json has it.
func (a *answer) whole() string {
	params := a.params
	if params == "" {
		params = "null"
	}
	switch a.path {
	case pathCompletion:
		return fmt.Sprintf(`{"id":"cmpl-1","object":"text_completion","created":1,"model":"sim","choices":[{"index":0,`+
			`"text":%q,"logprobs":null,"finish_reason":%q}],"usage":%s,"kv_transfer_params":%s}`, a.text(), a.finish,
			a.tokens(), params)
	case pathResponses:
		return fmt.Sprintf(`{%s,"kv_transfer_params":%s}`, a.response("completed"), params)
	case pathMessages:
		return fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":%q}],`+
			`"model":"sim","stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":3,`+
			`"cache_creation_input_tokens":0,"cache_read_input_tokens":%d},"kv_transfer_params":%s}`, a.text(),
			a.prompt-a.cached, a.cached, params)
	case pathGenerate:
		return fmt.Sprintf(`{"request_id":%q,"choices":[{"index":0,"logprobs":null,"finish_reason":%q,"token_ids":`+
			`[5,6,7]}],"prompt_logprobs":null,"kv_transfer_params":%s}`, mark(a.n), a.finish, params)
	}
	return fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"sim","choices":[{"index":0,`+
		`"message":{"role":"assistant","content":%q},"logprobs":null,"finish_reason":%q}],"usage":%s,`+
		`"kv_transfer_params":%s}`, a.text(), a.finish, a.tokens(), params)
}

// response are the fields of a response.
func (a *answer) response(status string) string {
	return fmt.Sprintf(`"id":%q,"object":"response","created_at":1,"status":%q,"model":"sim","output":[{"type":"message",`+
		`"id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":%q,"annotations":`+
		`[]}]}],"usage":%s`, a.id, status, a.text(), a.responseTokens())
}

// events is the answer as a stream, as testdata/vllm/*-stream.sse have it.
func (a *answer) events() []string {
	named := func(name, data string) string {
		return fmt.Sprintf("event: %s\ndata: {\"type\":%q,%s}\n\n", name, name, data)
	}
	var list []string
	switch a.path {
	case pathResponses:
		list = []string{named("response.created", fmt.Sprintf(`"response":{%s}`,
			strings.Replace(a.response("in_progress"), a.text(), "", 1)))}
		for _, piece := range pieces(a.text()) {
			list = append(list, named("response.output_text.delta", fmt.Sprintf(`"item_id":"msg_1","output_index":0,`+
				`"content_index":0,"delta":%q`, piece)))
		}
		return append(list, named("response.completed", fmt.Sprintf(`"response":{%s}`, a.response("completed"))))
	case pathMessages:
		list = []string{named("message_start", fmt.Sprintf(`"message":{"id":"msg_1","type":"message","role":"assistant",`+
			`"content":[],"model":"sim","stop_reason":null,"usage":{"input_tokens":%d,"output_tokens":0}}`, a.prompt)),
			named("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`)}
		for _, piece := range pieces(a.text()) {
			list = append(list, named("content_block_delta", fmt.Sprintf(`"index":0,"delta":{"type":"text_delta",`+
				`"text":%q}`, piece)))
		}
		return append(list, named("content_block_stop", `"index":0`), named("message_delta", fmt.Sprintf(
			`"delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":%d,"output_tokens":3}`, a.prompt)),
			named("message_stop", `"index":0`))
	case pathCompletion:
		piece := func(text, finish string) string {
			return fmt.Sprintf(`data: {"id":"cmpl-1","object":"text_completion","created":1,"model":"sim","choices":`+
				`[{"index":0,"text":%q,"logprobs":null,"finish_reason":%s}]}`+"\n\n", text, finish)
		}
		for _, text := range pieces(a.text()) {
			list = append(list, piece(text, "null"))
		}
		list = append(list, piece("", fmt.Sprintf("%q", a.finish)))
	case pathGenerate:
		list = []string{fmt.Sprintf(`data: {"request_id":%q,"choices":[{"index":0,"finish_reason":"stop","token_ids":`+
			`[5,6,7]}]}`+"\n\n", mark(a.n))}
	default:
		list = []string{engine.Role}
		for _, text := range pieces(a.text()) {
			list = append(list, engine.Delta(fmt.Sprintf(`{"content":%q}`, text), "null"))
		}
		list = append(list, engine.Stop)
	}
	if a.usage && a.path != pathGenerate {
		list = append(list, fmt.Sprintf(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,`+
			`"model":"sim","choices":[],"usage":%s}`+"\n\n", a.tokens()))
	}
	return append(list, engine.Done)
}

// pieces are the parts of a text. One of them has all of the mark, so that a client finds it.
func pieces(text string) []string { return []string{"a ", text, " b"} }

// failed is the event by which an engine ends a stream that has failed.
func (a *answer) failed() string {
	const words = `"error":{"message":"EngineCore encountered an issue.","type":"InternalServerError","param":null,` +
		`"code":500}`
	switch a.path {
	case pathResponses:
		return "event: error\ndata: {\"type\":\"error\",\"code\":\"500\",\"message\":\"an engine failed\"}\n\n"
	case pathMessages:
		return "event: error\ndata: {\"type\":\"error\"," + words + "}\n\n"
	}
	return "data: {" + words + "}\n\n"
}

// cut writes a part of the answer, and no more.
func (a *answer) cut(c *wire.Call, stream bool) {
	if stream {
		if c.StreamHead() == nil {
			_ = c.Chunk(a.events()[0])
		}
		return
	}
	text := a.whole()
	_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(text),
		text[:len(text)/2])
}
