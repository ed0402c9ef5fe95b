package prompt

import (
	"bytes"
	"math"
	"sync"
	"unicode/utf8"
)

// Parser reads request bodies. It is reused (pool it) and not safe for concurrent use.
type Parser struct {
	req Request
}

// Request is what the router needs of a body. It belongs to its Parser and holds until the next Parse; its strings
// are copies and may be kept.
type Request struct {
	Kind             Kind // as given to Parse, never Invocations
	Model            string
	AmbiguousModel   bool // readers may differ on the model: it occurs twice, as Model, or is not UTF-8
	Stream           bool
	IncludeUsage     bool   // stream_options.include_usage
	Background       bool   // the answer is made whether the client waits for it or not
	MaxTokens        uint32 // max_completion_tokens or max_output_tokens, else max_tokens; 0 = not given
	N                int    // answers per prompt, at least 1; of a text, as engines read one as a number, at least 2
	Priority         int32  // vLLM's: lower goes first. Without one the opposite of nvext.agent_hints.priority
	Expected         uint32 // tokens of answer that the client expects, by nvext.agent_hints.osl; 0 = it does not say
	CacheSalt        string
	PreviousResponse string  // previous_response_id: the conversation before lies in the worker that gave that answer
	HasPrompt        bool    // there is something to hash
	Hints            bool    // it has kv_hints, which tell an engine where other KV is
	BypassesCache    bool    // the worker computes the whole prompt, cached or not: prompt_logprobs, or echo with logprobs
	Chains           []Chain // one per prompt, filled by Hash
	Watch            int     // 1 + the index of the block that Hash puts into each chain's Fine; 0 = none. Parse sets 0

	fixed bool // of the chains: echo, continue_final_message, an item in progress, or a body that did not end well
	open  bool // likewise: continue_final_message alone
	*work      // nil before the first Parse, and after Trim
}

// work is what Parse leaves to Hash and Name: places in the body, and memory. It is the largest part of a
// request, the more so with many messages, and an answer may take minutes.
type work struct {
	fields fields
	talk   conversation
	w      writer
}

var works = sync.Pool{New: func() any { return new(work) }}

// Trim gives back the memory that only Hash and Name need. Neither may be called again before the next Parse.
func (r *Request) Trim() {
	if r.work != nil {
		works.Put(r.work)
		r.work = nil
	}
}

// Parse scans the body once. If it returns an error (always a *SyntaxError), the Request has all values that were
// complete before the fault. It has none if the body is over 4 GiB. The body must stay unchanged until Hash has run.
func (p *Parser) Parse(kind Kind, body []byte) (*Request, error) {
	r := &p.req
	if len(body) > maxSpan {
		body = nil
	}
	if r.work == nil {
		r.work = works.Get().(*work)
	}
	r.reset(kind, body)
	s := &r.w.scan
	s.reset(body)
	whole := s.document(r.readField)
	r.resolve()
	if !whole {
		r.fixed, r.open = true, false
		return r, &SyntaxError{Offset: min(s.i, len(body))}
	}
	return r, nil
}

// reset drops the previous body, except strings and memory that can be reused. resolve sets all that is not set here.
func (r *Request) reset(kind Kind, body []byte) {
	r.Kind = kind
	r.AmbiguousModel = false
	r.Watch = 0
	r.Chains = r.Chains[:0]
	r.fields.reset(body)
	r.talk.reset(body)
}

// readField scans one field of the top level.
func (r *Request) readField(key []byte) bool {
	s := &r.w.scan
	f := fieldNamed(key)
	if f == fieldUnknown {
		if len(key) == len("model") && bytes.EqualFold(key, []byte("model")) {
			r.AmbiguousModel = true
		}
		return s.value()
	}
	switch f {
	case fieldMaxNew, fieldMaxTokens, fieldN, fieldEcho, fieldLogprobs, fieldTopLogprobs, fieldPromptLogprobs:
		if r.Kind == Tokens {
			return s.value()
		}
	case fieldSampling:
		if r.Kind == Tokens {
			r.fields.forget(fieldMaxTokens, fieldN, fieldPromptLogprobs)
			return s.object(r.readSampling)
		}
		return s.value()
	case fieldModel:
		r.AmbiguousModel = r.AmbiguousModel || r.fields.has(fieldModel)
	case fieldMessages:
		if r.Kind.hasMessages() {
			return r.talk.readMessages(s)
		}
		return s.value()
	case fieldInput:
		if r.Kind == Responses {
			return r.readInput()
		}
	case fieldMetadata:
		return s.object(r.readMetadata)
	case fieldStreamOptions:
		r.fields.forget(fieldIncludeUsage)
		lo := s.i
		ok := s.object(r.readStreamOption)
		r.fields.at[fieldStreamOptions] = span{uint32(lo), uint32(s.i)}
		r.fields.seen |= 1 << fieldStreamOptions
		return ok
	case fieldExtension:
		r.fields.forget(fieldHintLength, fieldHintPriority)
		return s.object(r.readExtension)
	case fieldExtra:
		r.fields.forget(fieldProgram, fieldProgramOf)
		return s.object(r.readExtra)
	}
	return r.fields.locate(s, f)
}

// readInput scans a Responses input: items, or a string.
func (r *Request) readInput() bool {
	s := &r.w.scan
	r.fields.forget(fieldInput)
	r.talk.messages = r.talk.messages[:0]
	if s.at() == '[' {
		return r.talk.readItems(s)
	}
	return r.fields.locate(s, fieldInput)
}

func (r *Request) readStreamOption(key []byte) bool {
	if string(key) == "include_usage" {
		return r.fields.locate(&r.w.scan, fieldIncludeUsage)
	}
	return r.w.scan.value()
}

// readSampling scans a field of sampling_params.
func (r *Request) readSampling(key []byte) bool {
	switch f := fieldNamed(key); f {
	case fieldMaxTokens, fieldN, fieldPromptLogprobs:
		return r.fields.locate(&r.w.scan, f)
	}
	return r.w.scan.value()
}

// readMetadata scans a field of metadata, which has Anthropic's name for the user.
func (r *Request) readMetadata(key []byte) bool {
	if r.Kind == Messages && string(key) == "user_id" {
		return r.fields.locate(&r.w.scan, fieldUserID)
	}
	return r.w.scan.value()
}

// readExtension scans a field of nvext.
func (r *Request) readExtension(key []byte) bool {
	if string(key) == "agent_hints" {
		return r.w.scan.object(r.readHint)
	}
	return r.w.scan.value()
}

// readHint scans a field of nvext's agent_hints.
func (r *Request) readHint(key []byte) bool {
	switch string(key) {
	case "osl":
		return r.fields.locate(&r.w.scan, fieldHintLength)
	case "priority":
		return r.fields.locate(&r.w.scan, fieldHintPriority)
	}
	return r.w.scan.value()
}

// readExtra scans a field of vllm_xargs.
func (r *Request) readExtra(key []byte) bool {
	if string(key) == "agentic_context" {
		return r.w.scan.object(r.readProgram)
	}
	return r.w.scan.value()
}

// readProgram scans a field of vllm_xargs' agentic_context.
func (r *Request) readProgram(key []byte) bool {
	switch string(key) {
	case "program_id":
		return r.fields.locate(&r.w.scan, fieldProgram)
	case "parent_program_id":
		return r.fields.locate(&r.w.scan, fieldProgramOf)
	}
	return r.w.scan.value()
}

// resolve turns the places found into values.
func (r *Request) resolve() {
	f := &r.fields
	r.setText(&r.Model, fieldModel)
	r.AmbiguousModel = r.AmbiguousModel || !utf8.ValidString(r.Model)
	r.setText(&r.CacheSalt, fieldSalt)
	r.Hints = f.has(fieldHints)
	r.setText(&r.PreviousResponse, fieldPrevious)
	r.Stream = f.flag(fieldStream)
	r.IncludeUsage = f.flag(fieldIncludeUsage)
	r.Background = r.Kind == Responses && f.flag(fieldBackground)
	r.N = int(max(f.count(fieldN), 1))
	if text := f.inside(fieldN); len(text) > 0 {
		r.N = int(max(bounded(text, 0, math.MaxUint32), 2))
	}
	r.Priority = f.signed(fieldPriority)
	if !f.has(fieldPriority) {
		r.Priority = -max(f.signed(fieldHintPriority), -math.MaxInt32)
	}
	r.Expected = f.count(fieldHintLength)
	r.MaxTokens = f.count(fieldMaxNew)
	if r.MaxTokens == 0 {
		r.MaxTokens = f.count(fieldMaxTokens)
	}
	logprobs := f.given(fieldLogprobs) || f.given(fieldTopLogprobs)
	r.BypassesCache = f.given(fieldPromptLogprobs) || f.flag(fieldEcho) && logprobs
	r.fixed = f.flag(fieldEcho) || f.flag(fieldContinue) || r.talk.unfinished
	r.open = f.flag(fieldContinue) && !f.flag(fieldEcho)
	if r.Kind == Invocations {
		r.Kind = r.shownKind()
	}
	r.HasPrompt = r.hasPrompt()
}

// shownKind returns the kind of an /invocations body by its fields, in vLLM's order of trial.
func (r *Request) shownKind() Kind {
	switch {
	case len(r.talk.messages) > 0:
		return Chat
	case r.fields.has(fieldPrompt):
		return Completion
	case r.fields.has(fieldInput):
		return Embedding
	}
	return Other
}

// prompt returns the value of the field that holds the prompt in a body of this kind, unless it holds messages.
func (r *Request) prompt() []byte {
	switch r.Kind {
	case Completion, Tokenize:
		return r.fields.raw(fieldPrompt)
	case Tokens:
		return r.fields.raw(fieldTokens)
	case Responses, Embedding:
		return r.fields.raw(fieldInput)
	}
	return nil
}

// hasPrompt reports whether there is something to hash.
func (r *Request) hasPrompt() bool {
	switch r.Kind {
	case Rerank, Score:
		return r.fields.has(fieldQuery) && r.fields.has(fieldDocuments)
	case Tokens:
		if r.fields.given(fieldFeatures) { // equal token ids may mean other images
			return false
		}
	case Responses:
		// If the worker has the conversation, only its end would be hashed, as if it were a beginning.
		if r.PreviousResponse != "" {
			return false
		}
	}
	return len(r.talk.messages) > 0 || isPrompt(r.prompt())
}

// isPrompt reports whether a value is one of the forms that can be hashed: text, token ids, or a list of these.
func isPrompt(v []byte) bool {
	if len(Inside(v)) > 0 {
		return true
	}
	if len(v) == 0 || v[0] != '[' {
		return false
	}
	var s scanner
	s.reset(v)
	s.i = 1
	s.space()
	c := s.at()
	return c == '"' || c == '[' || c-'0' <= 9
}

// setText sets *s to the text of a field. A text that is the same as in the request before costs no allocation.
func (r *Request) setText(s *string, f bodyField) {
	raw := r.fields.inside(f)
	if len(raw) > 0 && escaped(raw) {
		r.w.scratch = unescape(r.w.scratch[:0], raw)
		raw = r.w.scratch
	}
	if *s != string(raw) {
		*s = string(raw)
	}
}

// Named reports whether the body may name a conversation or its user. Without it Name finds nothing.
func (r *Request) Named() bool { return r.fields.seen&names != 0 }

// Name returns the text of a field that names a conversation or its user, one of nameFields. A field inside another is
// written with dots. Like the Request it holds until the next Parse.
func (r *Request) Name(field string) (s string) {
	for i := range nameFields {
		if field == nameFields[i].name {
			r.setText(&s, nameFields[i].bodyField)
		}
	}
	return s
}
