package prompt

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"
)

// Parser reads request bodies. It is reused (pool it) and not safe for concurrent use.
type Parser struct {
	req Request
}

// Request is what the router needs of a body. It belongs to its Parser and holds until the next Parse; its strings are
// copies and may be kept.
type Request struct {
	Kind             Kind // as given to Parse, never Invocations
	Model            string
	Stream           bool
	IncludeUsage     bool   // stream_options.include_usage
	MaxTokens        uint32 // max_completion_tokens or max_output_tokens, else max_tokens; 0 = not given
	N                int    // answers per prompt, at least 1
	Priority         int32  // vLLM's: lower goes first
	SessionKey       string // prompt_cache_key, else session_id, else user, else Anthropic's metadata.user_id
	CacheSalt        string
	PreviousResponse string  // previous_response_id: the conversation before lies in the worker that gave that answer
	AmbiguousModel   bool    // readers may differ on the model: it comes twice, as Model, which Go's readers take for it, or is no UTF-8
	HasPrompt        bool    // there is something to hash
	BypassesCache    bool    // the worker computes the whole prompt, cached or not: prompt_logprobs, or echo with logprobs
	Chains           []Chain // one per prompt, filled by Hash

	body     []byte
	messages []message
	tools    span
	system   span    // system or instructions
	prompt   span    // prompt, or a Responses input that is a string
	input    span    // what is to be embedded
	pair     [2]span // query and documents
	model    span
	salt     span
	previous span
	session  [4]span
	tokens   [2]uint32
	echo     bool
	logprobs bool // of the answer
	resume   bool // continue_final_message, or an item that is in progress
	partial  bool // the body did not end well: what is hashed may lack its end
	w        writer
}

// Bounds on what small bodies could blow up to: "{}," is 3 bytes of body and 80 of memory. What comes after is not hashed.
const (
	maxMessages = 1 << 16
	maxPrompts  = 1 << 10
)

// message is one chat message, or one item of a Responses input, as ranges of the body.
type message struct {
	role, content, name, toolCallID, toolCalls span
	form                                       form
}

// Parse scans the body once. With an error (always a *SyntaxError) the Request holds all that stood complete before the fault.
// The body must stay unchanged until Hash has run.
func (p *Parser) Parse(kind Kind, body []byte) (*Request, error) {
	r := &p.req
	r.reset(kind, body)
	s := &r.w.scan
	s.reset(body)
	ok := s.document(r.field)
	r.partial = !ok
	r.settle()
	if !ok {
		return r, &SyntaxError{Offset: min(s.i, len(body))}
	}
	return r, nil
}

func (r *Request) reset(kind Kind, body []byte) {
	*r = Request{Kind: kind, N: 1, body: body, Model: r.Model, SessionKey: r.SessionKey, CacheSalt: r.CacheSalt,
		PreviousResponse: r.PreviousResponse, Chains: r.Chains[:0], messages: r.messages[:0], w: r.w}
}

// field takes one field of the top level; of a field that comes twice the last counts, as in Python.
func (r *Request) field(key []byte) bool {
	s := &r.w.scan
	switch string(key) {
	case "model":
		r.AmbiguousModel = r.AmbiguousModel || r.model.hi > 0
		return s.take(&r.model)
	case "messages":
		if r.Kind.hasMessages() {
			r.messages = r.messages[:0]
			return s.array(r.readMessage)
		}
	case "tools":
		return s.take(&r.tools)
	case "prompt", "input", "query", "queries", "text_1", "data_1", "documents", "items", "text_2", "data_2":
		return r.readPrompt(key)
	case "instructions", "system":
		return s.take(&r.system)
	case "previous_response_id":
		return s.take(&r.previous)
	case "metadata":
		return s.object(r.metadata)
	case "stream":
		return r.flag(&r.Stream)
	case "echo":
		return r.flag(&r.echo)
	case "logprobs", "top_logprobs":
		return r.given(&r.logprobs)
	case "prompt_logprobs":
		return r.given(&r.BypassesCache)
	case "continue_final_message":
		return r.flag(&r.resume)
	case "stream_options":
		r.IncludeUsage = false
		return s.object(r.streamOption)
	case "max_completion_tokens", "max_output_tokens":
		return r.count(&r.tokens[0])
	case "max_tokens":
		return r.count(&r.tokens[1])
	case "n":
		var n uint32
		ok := r.count(&n)
		r.N = int(max(n, 1))
		return ok
	case "priority":
		var v span
		ok := s.take(&v)
		r.Priority = int32(min(max(number(v.of(r.body)), math.MinInt32), math.MaxInt32))
		return ok
	case "prompt_cache_key":
		return s.take(&r.session[0])
	case "session_id":
		return s.take(&r.session[1])
	case "user":
		return s.take(&r.session[2])
	case "cache_salt":
		return s.take(&r.salt)
	default:
		if len(key) == len("model") && bytes.EqualFold(key, []byte("model")) {
			r.AmbiguousModel = true
		}
	}
	return s.value()
}

func (r *Request) streamOption(key []byte) bool {
	if string(key) == "include_usage" {
		return r.flag(&r.IncludeUsage)
	}
	return r.w.scan.value()
}

// metadata takes Anthropic's name for the user.
func (r *Request) metadata(key []byte) bool {
	if r.Kind == Messages && string(key) == "user_id" {
		return r.w.scan.take(&r.session[3])
	}
	return r.w.scan.value()
}

// readPrompt takes the field that holds the prompt, if it does so in a body of this kind.
func (r *Request) readPrompt(key []byte) bool {
	s := &r.w.scan
	switch string(key) {
	case "prompt":
		if r.Kind == Completion || r.Kind == Tokenize || r.Kind == Invocations {
			return s.take(&r.prompt)
		}
	case "input":
		switch r.Kind {
		case Responses:
			r.messages, r.prompt = r.messages[:0], span{}
			if s.at() == '[' {
				return s.array(r.readItem)
			}
			return s.take(&r.prompt)
		case Embedding, Invocations:
			return s.take(&r.input)
		}
	case "query", "queries", "text_1", "data_1":
		return s.take(&r.pair[0])
	default:
		return s.take(&r.pair[1])
	}
	return s.value()
}

func (r *Request) readMessage() bool {
	s := &r.w.scan
	if s.at() != '{' {
		return s.value()
	}
	var m message
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "role":
			return s.take(&m.role)
		case "content":
			return s.take(&m.content)
		case "name":
			return s.take(&m.name)
		case "tool_call_id":
			return s.take(&m.toolCallID)
		case "tool_calls":
			return s.take(&m.toolCalls)
		}
		return s.value()
	})
	if ok && len(r.messages) < maxMessages {
		r.messages = append(r.messages, m)
	}
	return ok
}

// settle turns the places found into values.
func (r *Request) settle() {
	r.set(&r.Model, r.model)
	r.AmbiguousModel = r.AmbiguousModel || !utf8.ValidString(r.Model)
	r.set(&r.CacheSalt, r.salt)
	key := span{}
	for _, v := range r.session {
		if len(inside(v.of(r.body))) > 0 {
			key = v
			break
		}
	}
	r.set(&r.SessionKey, key)
	if r.MaxTokens = r.tokens[0]; r.MaxTokens == 0 {
		r.MaxTokens = r.tokens[1]
	}
	r.set(&r.PreviousResponse, r.previous)
	r.BypassesCache = r.BypassesCache || r.echo && r.logprobs
	if r.Kind == Invocations {
		r.Kind = r.shown()
	}
	if r.input.hi > 0 {
		r.prompt = r.input
	}
	switch r.Kind {
	case Responses:
		// Of a conversation that lies in the worker only the end would be hashed, as if it were a beginning.
		r.HasPrompt = r.PreviousResponse == "" && (len(r.messages) > 0 || r.hasPrompt())
	case Rerank, Score:
		r.HasPrompt = r.pair[0].hi > 0 && r.pair[1].hi > 0
	default:
		r.HasPrompt = len(r.messages) > 0 || r.hasPrompt()
	}
}

// shown is the kind of an /invocations body by what it holds, in the order in which vLLM tries.
func (r *Request) shown() Kind {
	switch {
	case len(r.messages) > 0:
		return Chat
	case r.prompt.hi > 0:
		return Completion
	case r.input.hi > 0:
		return Embedding
	}
	return Other
}

// set gives *s the text of a string value. A value that is the same as in the request before costs no allocation.
func (r *Request) set(s *string, v span) {
	raw := inside(v.of(r.body))
	if escaped(raw) {
		r.w.scratch = unescape(r.w.scratch[:0], raw)
		raw = r.w.scratch
	}
	if *s != string(raw) {
		*s = string(raw)
	}
}

func (r *Request) flag(into *bool) bool {
	lo := r.w.scan.i
	ok := r.w.scan.value()
	*into = ok && r.body[lo] == 't'
	return ok
}

// given sets *into if the value is neither null nor false. 0 is given: no further alternatives, but the token's own.
func (r *Request) given(into *bool) bool {
	lo := r.w.scan.i
	ok := r.w.scan.value()
	*into = *into || ok && r.body[lo] != 'n' && r.body[lo] != 'f'
	return ok
}

func (r *Request) count(into *uint32) bool {
	var v span
	ok := r.w.scan.take(&v)
	*into = uint32(min(max(number(v.of(r.body)), 0), math.MaxUint32))
	return ok
}

// number reads a number; 0 for anything else. Python's 16.0 counts as 16.
func number(raw []byte) float64 {
	if len(raw) == 0 || raw[0] != '-' && raw[0]-'0' > 9 {
		return 0
	}
	if len(raw) <= 9 { // the usual case, without strconv's string
		n, i := 0, 0
		for ; i < len(raw) && raw[i]-'0' <= 9; i++ {
			n = n*10 + int(raw[i]-'0')
		}
		if i == len(raw) {
			return float64(n)
		}
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if math.IsNaN(f) || err != nil && !math.IsInf(f, 0) {
		return 0
	}
	return f
}

// SessionField is what the body names its session by in one field: prompt_cache_key, session_id or user (Anthropic's
// metadata.user_id too). SessionKey is the first of them. Like the Request it holds until the next Parse.
func (r *Request) SessionField(name string) string {
	s := ""
	for i, known := range [...]string{"prompt_cache_key", "session_id", "user", "user"} {
		if name == known && s == "" {
			r.set(&s, r.session[i])
		}
	}
	return s
}
