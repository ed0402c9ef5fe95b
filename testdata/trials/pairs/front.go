package main

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// fields are a body as an engine reads it: of a field that comes twice, Python's json takes the last.
type fields map[string]json.RawMessage

func read(body []byte) (f fields, ok bool) {
	return f, json.Unmarshal(body, &f) == nil && f != nil
}

// number returns a field that is a number, and whether it is one.
func (f fields) number(name string) (int, bool) {
	n, err := strconv.Atoi(string(f[name]))
	return n, err == nil
}

func (f fields) is(name, value string) bool { return string(f[name]) == value }

// has reports whether a field is there and not null.
func (f fields) has(name string) bool { return f[name] != nil && !f.is(name, "null") }

// object returns a field that is an object, or nil.
func (f fields) object(name string) fields {
	in, _ := read(f[name])
	return in
}

// front is the HTTP side of an engine: what it refuses, and how it reads a prompt.
type front struct {
	name string
	// cuts: of a prompt that may be cut, it leaves what the answer leaves of the context. vLLM before 0.32,
	// vllm/entrypoints/openai/responses/protocol.py, build_tok_params: max_output_tokens goes off max_total_tokens.
	cuts bool
	// strict: a field that comes twice, or has a value of another type, is refused. vLLM's Rust front end reads a body
	// with axum's Json into structs that serde derives: rust/src/server/src/routes/openai/utils/validated_json.rs.
	strict bool
	// rooms: SGLang in a disaggregation mode. python/sglang/srt/managers/scheduler.py, handle_generate_request:
	// without a bootstrap_room it aborts with 400, "Disaggregated request received without bootstrap room id".
	rooms bool
	// plain are the paths at which no kv_transfer_params are known, so that they are read over. ResponsesRequest has
	// none in the protocol.py above, and messages got theirs (vllm/entrypoints/anthropic/protocol.py) later than chat.
	plain []string
}

// maxLen is the context of every model.
const maxLen = 4096

// limits are the fields that bound the answer, the one that counts first.
func limits(path string) []string {
	switch path {
	case pathChat:
		return []string{"max_completion_tokens", "max_tokens"}
	case pathResponses:
		return []string{"max_output_tokens"}
	}
	return []string{"max_tokens"}
}

// maxTokens returns the bound of the answer, 0 if there is none.
func maxTokens(path string, f fields) int {
	if path == pathGenerate {
		f = f.object("sampling_params")
	}
	for _, name := range limits(path) {
		if n, ok := f.number(name); ok {
			return n
		}
	}
	return 0
}

// refuses returns why a worker that has no role refuses a request, "" if it accepts it.
func (e *front) refuses(path string, body []byte) string {
	f, ok := read(body)
	if !ok {
		return "JSON decode error"
	}
	if e.strict {
		if why := strictly(path, f, body); why != "" {
			return why
		}
	}
	most := maxTokens(path, f)
	least, _ := f.number("min_tokens")
	switch {
	// vllm/sampling_params.py, _verify_args; vllm/renderers/params.py. Responses had no min_tokens where it cuts.
	case most > maxLen:
		return "max_tokens cannot be greater than max_model_len"
	case least > most && most > 0 && (path != pathResponses || !e.cuts):
		return "min_tokens must be less than or equal to max_tokens"
	// vllm/entrypoints/openai/chat_completion/protocol.py: validate_stream_options, check_cache_salt_support,
	// check_logprobs.
	case f.has("stream_options") && !f.is("stream", "true"):
		return "Stream options can only be defined when `stream=True`."
	case f.is("cache_salt", `""`) && path != pathMessages:
		return "Parameter 'cache_salt' must be a non-empty string if provided."
	case f.has("prompt_logprobs") && f.is("stream", "true"):
		return "`prompt_logprobs` are not available when `stream=True`."
	case f.has(keyParams) && f.object(keyParams) == nil && !e.reads(path):
		return "kv_transfer_params: Input should be a valid dictionary"
	case path == pathMessages && most == 0:
		return "max_tokens: Field required"
	case path == pathMessages && budget(f) >= most: // since 0.32
		return "max_tokens must be greater than thinking.budget_tokens"
	}
	if !e.cuts {
		most = 1
	}
	for _, p := range e.prompts(path, f) { // vllm/renderers/params.py, max_input_tokens
		if p.n+most > maxLen {
			return "This model's maximum context length is exceeded"
		}
	}
	return ""
}

// reads reports whether a path knows no kv_transfer_params.
func (e *front) reads(path string) bool {
	for _, p := range e.plain {
		if p == path {
			return true
		}
	}
	return false
}

// budget returns the tokens that an answer of messages may think, 0 if it does not.
func budget(f fields) int {
	in := f.object("thinking")
	if !in.is("type", `"enabled"`) {
		return 0
	}
	n, _ := in.number("budget_tokens")
	return n
}

// typed are the fields whose values the Rust structs fix, with the first bytes that a value may have.
// rust/src/server/src/routes/openai/{chat_completions,completions,responses}/types.rs and anthropic/types.rs. A bool
// with a default is no Option, so that null is refused, too.
var typed = map[string]string{"stream": "tf", "ignore_eos": "tf", "echo": "tf", "max_tokens": "0123456789n",
	"max_completion_tokens": "0123456789n", "max_output_tokens": "0123456789n", "min_tokens": "0123456789n",
	"n": "0123456789n", "stop_token_ids": "[n", keyParams: "{n", "stream_options": "{n", "cache_salt": `"n`,
	"vllm_xargs": "{n"}

// strictly returns why the Rust front end refuses a body.
func strictly(path string, f fields, body []byte) string {
	d := json.NewDecoder(bytes.NewReader(body))
	_, _ = d.Token()
	seen := map[any]bool{}
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return "Failed to parse the request body as JSON"
		}
		first, known := typed[key.(string)]
		switch {
		case seen[key] && names[key.(string)]:
			return "duplicate field `" + key.(string) + "`"
		case known && bytes.IndexByte([]byte(first), value[0]) < 0:
			return key.(string) + ": invalid type"
		}
		seen[key] = true
	}
	// chat_completions/validate.rs and completions/validate.rs. A request for several answers is none of its own.
	if n, _ := f.number("n"); n > 1 && path != pathResponses {
		return "Only n=1 is supported."
	}
	if f.has("previous_response_id") { // responses/validate.rs
		return "previous_response_id is not supported"
	}
	return ""
}

// names are fields of those structs, of all that are sent here: a field that a struct does not have may come twice.
var names = map[string]bool{"model": true, "messages": true, "prompt": true, "input": true, "stream": true,
	"stream_options": true, "max_tokens": true, "max_completion_tokens": true, "max_output_tokens": true,
	"min_tokens": true, "n": true, "cache_salt": true, keyParams: true, "ignore_eos": true, "stop_token_ids": true,
	"temperature": true, "store": true, "background": true, "token_ids": true, "sampling_params": true,
	"vllm_xargs": true}

// prompt is what an engine computes, by its words.
type prompt struct {
	sum uint64
	n   int // tokens: words
}

// shapes are the fields that make the prompt, by path.
var shapes = map[string][]string{
	pathChat:       {"messages", "tools", "chat_template_kwargs"},
	pathCompletion: {"prompt"},
	pathResponses:  {"instructions", "input", "tools", "previous_response_id"},
	pathMessages:   {"system", "messages", "tools"},
	pathGenerate:   {"token_ids"},
}

// prompts returns the prompts of a request: one, or those of a list.
func (e *front) prompts(path string, f fields) []prompt {
	var list []json.RawMessage
	if path == pathCompletion && json.Unmarshal(f["prompt"], &list) == nil && len(list) > 0 &&
		(list[0][0] == '"' || list[0][0] == '[') {
		var all []prompt
		for _, one := range list {
			all = append(all, e.cut(path, f, bytes.Fields(one)))
		}
		return all
	}
	var words [][]byte
	for _, name := range shapes[path] {
		text := f[name]
		if len(text) > 0 && text[0] == '[' && text[len(text)-1] == ']' && bytes.IndexByte(text, '"') < 0 {
			words = append(words, bytes.Split(text, []byte{','})...) // token ids
			continue
		}
		words = append(words, bytes.Fields(text)...)
	}
	if f.object("thinking").is("type", `"disabled"`) {
		words = append(words, []byte("/nothink"))
	}
	return []prompt{e.cut(path, f, words)}
}

// cut returns a prompt as far as the request has it cut: from its beginning.
func (e *front) cut(path string, f fields, words [][]byte) prompt {
	keep := len(words)
	if n, ok := f.number("truncate_prompt_tokens"); ok && n >= 0 {
		keep = n
	} else if ok || f.is("truncation", `"auto"`) {
		keep = maxLen - 1
		if e.cuts {
			keep = maxLen - max(1, maxTokens(path, f))
		}
	}
	words = words[max(0, len(words)-keep):]
	p := prompt{n: len(words), sum: 14695981039346656037}
	for _, w := range words {
		for _, b := range w {
			p.sum = (p.sum ^ uint64(b)) * 1099511628211
		}
		p.sum = (p.sum ^ ' ') * 1099511628211
	}
	return p
}
