package tokens

import (
	"bytes"
	"encoding/json"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// Question is what decides the tokens of one request's prompt. It keeps nothing of the body but the ids in Given. Its
// zero value asks for nothing.
type Question struct {
	Given []uint32 // the body names the ids itself
	Fence []string // see Group; Read clears it

	kind     prompt.Kind
	model    string
	why      Outcome  // "" = there is a text whose ids can be asked for
	key      digest   // of all that decides the ids
	context  digest   // of all of it but the messages
	messages []digest // messages[i] is of the context and the messages up to i
	roles    []role
	class    digest // of what decides how the ids are made: model, kind and the fields that /tokenize does not know
	ending   bool   // the body sets how the prompt ends, in place of the beginning of an answer
	renamed  bool   // the request is for another model than its body names
	plain    bool   // /tokenize knows every field that decides
	mayLearn bool   // return_token_ids changes nothing else of the answer
	size     int    // bytes of the body
	n        int
}

// role is the author of a message.
type role uint8

const (
	roleOther role = iota
	roleUser
	roleAssistant
)

// idle are the fields of a body on which no token of its prompt depends. What is in no table does decide: a field that
// is not known here makes another text of the same messages.
var idle = names("stream", "stream_options", "temperature", "top_p", "top_k", "min_p", "max_tokens",
	"max_completion_tokens", "n", "best_of", "stop", "stop_token_ids", "seed", "presence_penalty", "frequency_penalty",
	"repetition_penalty", "length_penalty", "logit_bias", "user", "metadata", "store", "priority", "request_id",
	"cache_salt", "kv_transfer_params", "session_id", "prompt_cache_key", "ignore_eos", "min_tokens", "bad_words",
	"skip_special_tokens", "spaces_between_special_tokens", "include_stop_str_in_output", "return_token_ids",
	"return_tokens_as_token_ids", "logprobs", "top_logprobs", "prompt_logprobs", "echo", "allowed_token_ids",
	"use_beam_search", "service_tier", "safety_identifier", "include_reasoning", "vllm_xargs", "suffix")

// shared are the fields that /tokenize and /v1/chat/completions take alike.
var shared = names("model", "messages", "add_generation_prompt", "continue_final_message", "add_special_tokens",
	"chat_template", "chat_template_kwargs", "tools", "prompt")

// beyond are the fields with which a prompt is more, or less, than the ids of its text.
var beyond = names("truncate_prompt_tokens", "truncation_side", "prompt_embeds", "mm_processor_kwargs",
	"media_io_kwargs", "images", "audio", "modalities")

// telling are the fields with which return_token_ids changes more of an answer than its own two fields (vLLM 0.11 to
// 0.32: echo without the text of the prompt, and events that logprobs have made or not made).
var telling = names("echo", "logprobs", "top_logprobs", "prompt_logprobs", "return_token_ids",
	"return_tokens_as_token_ids", "return_prompt_text", "return_token_offsets", "suffix")

func names(list ...string) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, n := range list {
		m[n] = true
	}
	return m
}

// Limits of a question.
const (
	maxText     = 2 << 20 // bytes of a body: half a million tokens
	maxMessages = 4096
	maxGiven    = 4 << 20 // token ids of one prompt
	maxFields   = 64
)

// Read reads the prompt of a request of the kind from its body, which is whole. The previous question is dropped.
func (q *Question) Read(kind prompt.Kind, model string, body []byte) {
	*q = Question{kind: kind, model: model, plain: true, mayLearn: true, size: len(body)}
	var text []byte
	seen := [maxFields]string{}
	whole := prompt.Fields(body, func(name, value []byte) bool {
		if q.n == maxFields {
			q.why = Unsupported
			return false
		}
		for _, s := range seen[:q.n] { // readers differ on which of the two counts
			if s == string(name) {
				q.why = Unsupported
				return false
			}
		}
		seen[q.n] = string(name)
		q.n++
		return q.readField(name, value, &text)
	})
	if !whole && q.why == "" {
		q.why = Unsupported
	}
	if q.why != "" {
		return
	}
	q.context = q.context.plus(digestOf([]byte(model))).then(digest{uint64(kind)})
	q.class = q.class.plus(digestOf([]byte(model))).then(digest{uint64(kind)})
	switch {
	case (kind == prompt.Completion || kind == prompt.Tokens) && text != nil:
		q.readPrompt(text)
	case (kind == prompt.Chat || kind == prompt.Messages) && text != nil && !prompt.IsBatch(text):
		q.readMessages(text)
	case kind == prompt.Responses && text != nil:
		q.key = q.context.then(digestOf(text))
	default:
		q.why = Unsupported
	}
	if kind == prompt.Messages || kind == prompt.Responses {
		q.mayLearn = false
	}
	if q.why == "" && q.Given == nil && len(body) > maxText {
		q.why = TooLong
	}
}

// readField reads one field of the body. text becomes the value of the one that holds the prompt.
func (q *Question) readField(name, value []byte, text *[]byte) bool {
	if telling[string(name)] && set(value) {
		q.mayLearn = false
	}
	switch {
	case idle[string(name)] || !set(value) && !shared[string(name)]:
		return true
	case beyond[string(name)]:
		q.why = Unsupported
		return false
	case string(name) == "model": // a header may name another
		var named string
		q.renamed = json.Unmarshal(value, &named) != nil || named != q.model
		return true
	case string(name) == promptField(q.kind):
		*text = value
		return true
	case string(name) == "previous_response_id":
		q.why = Unsupported // the conversation lies in the worker
		return false
	}
	if string(name) == "add_generation_prompt" || string(name) == "continue_final_message" {
		q.ending = true
	}
	of := digestOf(name).then(digestOf(value))
	q.context = q.context.plus(of)
	if !shared[string(name)] {
		q.plain = false
		q.class = q.class.plus(of)
	}
	if string(name) == "tools" {
		q.class = q.class.plus(digestOf(name))
	}
	return true
}

// promptField is the field of a body that holds the prompt.
func promptField(k prompt.Kind) string {
	switch k {
	case prompt.Completion:
		return "prompt"
	case prompt.Tokens:
		return "token_ids"
	case prompt.Responses:
		return "input"
	}
	return "messages"
}

// set reports whether a field's value is neither null nor false.
func set(value []byte) bool { return len(value) > 0 && value[0] != 'n' && value[0] != 'f' }

// readPrompt reads a completion's prompt: a text, token ids, or a list of one of these.
func (q *Question) readPrompt(v []byte) {
	if v[0] == '[' {
		n, first := 0, []byte(nil)
		if len(v) > 1 && isDigit(bytes.TrimLeft(v[1:], " \t\r\n")) {
			q.give(v)
			return
		}
		prompt.Elements(v, func(e []byte) bool {
			n++
			first = e
			return n < 2
		})
		if n != 1 { // each of several prompts has its own place in the cache
			q.why = Unsupported
			return
		}
		v = first
	}
	switch v[0] {
	case '"':
		q.key = q.context.then(digestOf(v))
	case '[':
		q.give(v)
	default:
		q.why = Unsupported
	}
}

// give takes the ids that the body names.
func (q *Question) give(list []byte) {
	ids, ok := appendIDs(nil, list, len(list))
	if !ok || len(ids) == 0 || len(ids) > maxGiven {
		q.why = Unsupported
		return
	}
	q.Given = ids
}

// readMessages reads a chat's messages. It does not ask for the ids of messages that hold more than text: an image
// becomes tokens only after the step that /tokenize and render show.
func (q *Question) readMessages(list []byte) {
	at := q.context
	ok := prompt.Elements(list, func(m []byte) bool {
		if len(q.messages) == maxMessages {
			q.why = TooLong
			return false
		}
		who, onlyText := readMessage(m)
		if !onlyText {
			q.why = Unsupported
			return false
		}
		at = at.then(digestOf(m))
		q.messages = append(q.messages, at)
		q.roles = append(q.roles, who)
		return true
	})
	if q.why == "" && (!ok || len(q.messages) == 0) {
		q.why = Unsupported
	}
	q.key = at.then(digest{1})
}

// readMessage returns the author of a message, and whether it holds only text.
func readMessage(m []byte) (who role, onlyText bool) {
	onlyText = true
	whole := prompt.Fields(m, func(name, value []byte) bool {
		switch string(name) {
		case "role":
			switch string(value) {
			case `"user"`:
				who = roleUser
			case `"assistant"`:
				who = roleAssistant
			}
		case "content":
			onlyText = textual(value)
		}
		return onlyText
	})
	return who, whole && onlyText
}

// textual reports whether a message's content is text alone.
func textual(content []byte) bool {
	if content[0] != '[' {
		return true
	}
	only := true
	whole := prompt.Elements(content, func(part []byte) bool {
		if part[0] == '"' {
			return true
		}
		kind := []byte(nil)
		only = prompt.Fields(part, func(name, value []byte) bool {
			if string(name) == "type" {
				kind = value
			}
			return true
		}) && string(kind) == `"text"`
		return only
	})
	return whole && only
}

func isDigit(b []byte) bool { return len(b) > 0 && b[0]-'0' <= 9 }
