package resume

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// asked is what a request asks for, as far as a continuation must know it.
type asked struct {
	body       []byte
	prompt     []byte // of a completion
	messages   []byte // or responses' input
	bounds     []bound
	stops      []string
	withStop   bool // the answer has the stop string
	usage      bool // the stream ends with it
	everyUsage bool // each event has it
}

// bound is a field that bounds the number of tokens.
type bound struct {
	name   string
	tokens int
	least  bool
}

// read reads the body of a request, and reports whether another worker can go on with its answer.
func (a *asked) read(kind prompt.Kind, body []byte) bool {
	a.body = body
	ok := true
	whole := prompt.Fields(body, func(name, value []byte) bool {
		ok = a.readField(kind, string(name), value)
		return ok
	})
	switch kind {
	case prompt.Completion:
		return whole && ok && (a.isList() || len(prompt.Inside(a.prompt)) > 0)
	case prompt.Chat, prompt.Messages, prompt.Responses:
		return whole && ok && given(a.messages) && !endsWithAnswer(a.messages) && !prompt.IsBatch(a.messages)
	}
	return false
}

func (a *asked) readField(kind prompt.Kind, name string, value []byte) (ok bool) {
	switch name {
	case "prompt":
		if kind != prompt.Completion { // OpenAI's stored prompts
			return !given(value)
		}
		a.prompt = value
	case "messages":
		a.messages = value
	case "input":
		a.messages = value
	case "n", "best_of":
		return !given(value) || string(value) == "1"
	case "max_tokens", "max_completion_tokens", "max_output_tokens", "min_tokens":
		if given(value) {
			a.bounds = append(a.bounds, bound{name: name, tokens: integer(value), least: name == "min_tokens"})
		}
	case "stop", "stop_sequences":
		var one string
		if json.Unmarshal(value, &one) == nil && one != "" {
			a.stops = []string{one}
		}
		return json.Unmarshal(value, &one) == nil || json.Unmarshal(value, &a.stops) == nil
	case "include_stop_str_in_output":
		a.withStop = given(value)
	case "stream_options":
		a.usage, a.everyUsage = given(field(value, "include_usage")), given(field(value, "continuous_usage_stats"))
	case "logprobs": // 0 asks for those of the tokens themselves
		return string(value) == "null" || string(value) == "false"
	case "response_format":
		return !given(value) || string(field(value, "type")) == `"text"`
	case "text":
		format := field(value, "format")
		return !given(format) || string(field(format, "type")) == `"text"`
	case "output_config":
		return !given(field(value, "format"))
	case "tool_choice":
		if given(value) && value[0] == '{' {
			value = field(value, "type")
		}
		return !given(value) || string(value) == `"auto"` || string(value) == `"none"`
	case "include":
		return !bytes.Contains(value, []byte("logprobs"))
	case "add_generation_prompt":
		return string(value) != "false"
	case "top_logprobs", "prompt_logprobs", "echo", "suffix", "use_beam_search", "continue_final_message",
		"structured_outputs", "previous_response_id", "conversation", "background", "kv_transfer_params", "prompt_embeds",
		"truncate_prompt_tokens":
		return !given(value)
	default:
		return !strings.HasPrefix(name, "guided_") || !given(value)
	}
	return true
}

// isList reports whether the prompt is one list of token ids.
func (a *asked) isList() bool {
	list := bytes.TrimLeft(bytes.TrimPrefix(a.prompt, []byte{'['}), " \t\r\n")
	return len(list) < len(a.prompt) && len(list) > 0 && list[0]-'0' <= 9
}

// endsWithAnswer reports whether the last message is the assistant's: engines differ in what they make of that.
func endsWithAnswer(list []byte) (is bool) {
	prompt.Elements(list, func(m []byte) bool {
		is = string(field(m, "role")) == `"assistant"`
		return true
	})
	return is
}

// Request is what another worker is asked for.
type Request struct {
	Kind prompt.Kind
	Path string
	Body []byte
}

// Ask returns the request for the rest of an answer that broke off. ok is false if the answer cannot be continued: the
// client has a part of an event, or what it has is not only text.
func (d *Draft) Ask() (r Request, ok bool) {
	if d.over || len(d.part) > 0 || d.id == nil {
		return r, false
	}
	r = Request{Kind: d.kind, Path: "/v1/completions", Body: d.asked.body}
	r.Body, ok = d.Bound(r.Body)
	if !ok {
		return r, false
	}
	switch d.kind {
	case prompt.Responses:
		r.Path = "/v1/responses"
		r.Body, ok = d.askItems(r.Body)
		return r, ok
	case prompt.Completion:
		r.Body, ok = d.askPrompt(r.Body)
	case prompt.Chat:
		r.Path = "/v1/chat/completions"
		r.Body, ok = d.prefill(r.Body, d.asked.messages), true
	default:
		r.Kind, r.Path = prompt.Chat, "/v1/chat/completions"
		var messages []byte
		r.Body, messages, ok = chatOf(r.Body)
		if ok {
			r.Body = d.prefill(r.Body, messages)
		}
	}
	r.Body = set(r.Body, "stream_options", []byte(`{"include_usage":true,"continuous_usage_stats":true}`))
	return r, ok
}

// Bound lowers the bounds in such a request by the tokens that the client has. ok is false if it may have no more.
func (d *Draft) Bound(body []byte) (bounded []byte, ok bool) {
	for _, b := range d.asked.bounds {
		left := b.tokens - d.tokens()
		if left <= 0 && !b.least {
			return nil, false
		}
		body = set(body, b.name, number(max(0, left)))
	}
	return body, true
}

// set gives a field of a body a value.
func set(body []byte, name string, value []byte) []byte {
	return bytes.Join(prompt.Pieces(body, prompt.SetField(body, name, value)), nil)
}

// askPrompt makes the text so far the end of a completion's prompt.
func (d *Draft) askPrompt(body []byte) (with []byte, ok bool) {
	was := d.asked.prompt
	switch {
	case len(d.text) == 0:
		return body, true
	case d.byIDs():
		ids := d.promptIDs
		if ids == nil {
			ids = was
		}
		return set(body, "prompt", slices.Concat(ids[:bytes.LastIndexByte(ids, ']')], d.ids[:d.whole], []byte{']'})), true
	case d.asked.isList():
		return nil, false // nobody knows the ids of the text
	}
	return set(body, "prompt", quoted(slices.Concat(prompt.Inside(was), d.text))), true
}

// prefill makes the text so far the beginning of a chat's answer.
func (d *Draft) prefill(body, messages []byte) []byte {
	if len(d.text) == 0 {
		return body
	}
	last := slices.Concat([]byte(`{"role":"assistant","content":`), quoted(d.text), []byte{'}'})
	body = set(body, "messages", push(messages, last))
	body = set(body, "add_generation_prompt", []byte("false"))
	return set(body, "continue_final_message", []byte("true"))
}

// push adds an element to a list that has some.
func push(list, element []byte) []byte {
	return slices.Concat(list[:bytes.LastIndexByte(list, ']')], []byte{','}, element, []byte{']'})
}

// askItems adds the text so far to a response's input, as a message in progress.
func (d *Draft) askItems(body []byte) (with []byte, ok bool) {
	input := d.asked.messages
	if input[0] == '"' {
		input = slices.Concat([]byte(`[{"role":"user","content":`), input, []byte("}]"))
	}
	if len(d.text) == 0 {
		return body, true
	}
	last := slices.Concat([]byte(`{"type":"message","role":"assistant","status":"in_progress","id":`), d.item,
		[]byte(`,"content":[{"type":"output_text","annotations":[],"text":`), quoted(d.text), []byte("}]}"))
	return set(body, "input", push(input, last)), d.item != nil && !(d.asked.withStop && len(d.asked.stops) > 0)
}
