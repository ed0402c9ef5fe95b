package vllmsim

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// body is what the simulator reads of a chat or completion body; it ignores the rest, as vLLM ignores what it does not know.
type body struct {
	Model         string          `json:"model"`
	Messages      []message       `json:"messages"`
	Prompt        json.RawMessage `json:"prompt"`
	Tools         json.RawMessage `json:"tools"`
	ToolChoice    json.RawMessage `json:"tool_choice"`
	Format        *answerFormat   `json:"response_format"`
	Stream        bool            `json:"stream"`
	StreamOptions *struct {
		IncludeUsage    bool `json:"include_usage"`
		ContinuousUsage bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
	MaxTokens     *int     `json:"max_tokens"`
	MaxCompletion *int     `json:"max_completion_tokens"`
	MinTokens     int      `json:"min_tokens"`
	IgnoreEOS     bool     `json:"ignore_eos"`
	N             *int     `json:"n"`
	Temperature   *float64 `json:"temperature"`
	Seed          uint64   `json:"seed"`
	CacheSalt     *string  `json:"cache_salt"`
	RequestID     string   `json:"request_id"`
	ReturnIDs     bool     `json:"return_token_ids"`

	// Read for what they do to the cache alone: see recomputes.
	Echo           bool `json:"echo"`
	Logprobs       any  `json:"logprobs"` // a number, or a chat's bool
	PromptLogprobs *int `json:"prompt_logprobs"`
}

// recomputes says that the logprobs of the prompt are asked for: then vLLM reads nothing from the cache, and still enters the
// prompt.
func (b *body) recomputes() bool {
	return b.PromptLogprobs != nil || b.Echo && b.Logprobs != nil && b.Logprobs != false
}

// job is one inference request on its way through the engine.
type job struct {
	form                        form
	chat, stream                bool
	usage, everyUsage, tokenIDs bool
	id, model                   string
	created                     int64
	prompts                     [][]uint32
	n                           int         // choices a prompt
	seqs                        []*sequence // prompt by prompt, n of each
	notify                      chan struct{}
	tool                        string                             // the function that the reply calls, "" for none
	callSeed                    uint64                             // of the call's id
	softLimit                   bool                               // max_tokens bounds the reply, which has an end of its own
	fixed                       string                             // what the reply must be, "" for anything
	ready                       func()                             // called once all is generated and before the answer says so; may be nil
	background                  func(http.ResponseWriter, *engine) // answers at once, and cares for the sequences; may be nil
}

// parse reads a body. Wrong types are refused as vLLM's validation does, in kind; the refused value itself is not repeated.
func parse(r *http.Request, raw []byte, into any) *apiError {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if media != "application/json" {
		return newError(http.StatusBadRequest, "Bad Request", "", "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed")
	}
	err := json.Unmarshal(raw, into)
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return invalidJSON(syntax.Offset, err)
	case errors.As(err, &wrong):
		kind, msg := wanted(wrong.Type.Kind().String())
		loc := "body"
		if wrong.Field != "" {
			loc += "." + wrong.Field
		}
		return invalid(kind, loc, msg, "'<"+wrong.Value+">'")
	}
	return invalidJSON(0, err)
}

// wanted is pydantic's name and text for a value of the wrong type.
func wanted(kind string) (name, msg string) {
	switch kind {
	case "slice":
		return "list_type", "Input should be a valid list"
	case "struct":
		return "dict_type", "Input should be a valid dictionary"
	case "bool":
		return "bool_parsing", "Input should be a valid boolean, unable to interpret input"
	case "string":
		return "string_type", "Input should be a valid string"
	}
	return "int_parsing", "Input should be a valid integer, unable to parse string as an integer"
}

// prepareEither is /invocations: a body with messages is a chat.
func (s *Server) prepareEither(r *http.Request, raw []byte) (*job, *apiError) {
	var probe struct {
		Messages json.RawMessage `json:"messages"`
	}
	if json.Unmarshal(raw, &probe) == nil && probe.Messages != nil {
		return s.prepareChat(r, raw)
	}
	return s.prepareCompletion(r, raw)
}

func (s *Server) prepareChat(r *http.Request, raw []byte) (*job, *apiError) {
	var b body
	if err := parse(r, raw, &b); err != nil {
		return nil, err
	}
	if b.Messages == nil {
		return nil, invalid("missing", "body.messages", "Field required", "'<dict>'")
	}
	j := &job{form: chatForm{}, chat: true, id: "chatcmpl-"}
	if err := s.check(r, &b); err != nil {
		return nil, err
	}
	j.fixed = b.Format.sample()
	var tools []tool
	if !isNull(b.Tools) && json.Unmarshal(b.Tools, &tools) != nil {
		return nil, invalid("list_type", "body.tools", "Input should be a valid list", "'<value>'")
	}
	if len(b.Messages) > 0 {
		if f := chooseTool(tools, b.ToolChoice, &b.Messages[len(b.Messages)-1]); f != nil {
			j.callTool(f)
		}
	}
	j.prompts = [][]uint32{chatTokens(b.Tools, b.Messages, true)}
	return j, s.finishJob(r, j, &b)
}

func (s *Server) prepareCompletion(r *http.Request, raw []byte) (*job, *apiError) {
	var b body
	if err := parse(r, raw, &b); err != nil {
		return nil, err
	}
	j := &job{form: chatForm{}, id: "cmpl-", fixed: b.Format.sample()}
	if err := s.check(r, &b); err != nil {
		return nil, err
	}
	var err *apiError
	if j.prompts, err = parsePrompts(b.Prompt); err != nil {
		return nil, err
	}
	if b.MaxTokens == nil {
		sixteen := 16 // OpenAI's default for completions, kept by vLLM
		b.MaxTokens = &sixteen
	}
	return j, s.finishJob(r, j, &b)
}

// check refuses what vLLM refuses before it looks at the prompt.
func (s *Server) check(r *http.Request, b *body) *apiError {
	if adapter := r.Header.Get(adapterHeader); adapter != "" && r.URL.Path == "/invocations" {
		b.Model = adapter
	}
	if err := s.checkModel(b.Model); err != nil {
		return err
	}
	if b.StreamOptions != nil && !b.Stream {
		return badRequest("stream_options", "Stream options can only be defined when `stream=True`.")
	}
	if b.CacheSalt != nil && *b.CacheSalt == "" {
		return badRequest("cache_salt", "Parameter 'cache_salt' must be a non-empty string if provided.")
	}
	if t := b.Temperature; t != nil && *t < 0 {
		v := strconv.FormatFloat(*t, 'f', -1, 64)
		if !strings.Contains(v, ".") {
			v += ".0"
		}
		return badValue("temperature", v, "temperature must be non-negative, got "+v+".")
	}
	if b.N != nil && (*b.N < 1 || *b.N > 128) {
		return badValue("n", strconv.Itoa(*b.N), fmt.Sprintf("n must be from 1 to 128, got %d.", *b.N))
	}
	if rank, err := strconv.Atoi(r.Header.Get("X-Data-Parallel-Rank")); err == nil && rank != 0 {
		return badRequest("", fmt.Sprintf("data_parallel_rank %d is out of range [0, 1).", rank))
	}
	return nil
}

func (s *Server) checkModel(name string) *apiError {
	if name == "" {
		return nil
	}
	for _, m := range s.cfg.Models {
		if m == name {
			return nil
		}
	}
	return unknownModel(name, strings.Join(s.cfg.Models, ", "))
}

// finishJob makes the sequences of a request whose prompts are known.
func (s *Server) finishJob(r *http.Request, j *job, b *body) *apiError {
	j.model, j.created, j.stream, j.tokenIDs, j.n = s.cfg.Models[0], time.Now().Unix(), b.Stream, b.ReturnIDs, 1
	if o := b.StreamOptions; o != nil {
		j.usage, j.everyUsage = o.IncludeUsage, o.ContinuousUsage
	}
	if b.N != nil {
		j.n = *b.N
	}
	j.id += requestID(r, b)
	j.notify, j.callSeed = make(chan struct{}, 1), rand.Uint64()
	salt := ""
	if b.CacheSalt != nil {
		salt = *b.CacheSalt
	}
	if payload := payloadOf(r); payload != nil {
		for i := range j.prompts {
			j.prompts[i] = slices.Concat(payload, j.prompts[i])
		}
	}
	for _, ids := range j.prompts {
		limit, err := s.limit(len(ids), b)
		if err != nil {
			return err
		}
		for i := range j.n {
			q := newSequence(ids, salt, mix(s.cfg.Seed^b.Seed, uint64(i)), s.cfg.BlockTokens)
			q.notify, q.max, q.recompute = j.notify, limit, b.recomputes()
			if j.fixed != "" {
				q.reply = fixedReply(j.fixed)
			} else if (j.softLimit || b.MaxTokens == nil && b.MaxCompletion == nil) && !b.IgnoreEOS {
				q.reply.stop = max(b.MinTokens, s.cfg.ReplyTokens/2+int(q.reply.seed%uint64(s.cfg.ReplyTokens)))
			}
			j.seqs = append(j.seqs, q)
		}
	}
	return nil
}

func requestID(r *http.Request, b *body) string {
	if id := r.Header.Get("X-Request-Id"); id != "" {
		return id
	}
	if b.RequestID != "" {
		return b.RequestID
	}
	return newID()
}

// limit is the length of the reply at most. A stated max_tokens is used up: a simulated reply has no end of its own then.
func (s *Server) limit(prompt int, b *body) (int, *apiError) {
	window := s.cfg.MaxModelLen
	if prompt >= window {
		return 0, badValue("input_tokens", strconv.Itoa(prompt), fmt.Sprintf("This model's maximum context length is %d tokens. However, "+
			"your prompt contains %d input tokens, which exceeds this limit even without any output tokens. "+
			"Please reduce the length of the input prompt.", window, prompt))
	}
	limit, name := b.MaxTokens, "max_tokens"
	if b.MaxCompletion != nil {
		limit, name = b.MaxCompletion, "max_completion_tokens"
	}
	switch {
	case limit == nil:
		return window - prompt, nil
	case *limit < 1:
		return 0, badValue(name, strconv.Itoa(*limit), fmt.Sprintf("max_tokens must be at least 1, got %d.", *limit))
	case *limit > window:
		return 0, badValue(name, strconv.Itoa(*limit), fmt.Sprintf("%s=%d cannot be greater than max_model_len=%d. "+
			"Please request fewer output tokens.", name, *limit, window))
	case prompt+*limit > window:
		return 0, badValue("input_tokens", strconv.Itoa(prompt), fmt.Sprintf("This model's maximum context length is %d tokens. However, "+
			"you requested %d output tokens and your prompt contains %d input tokens, for a total of %d tokens. "+
			"Please reduce the length of the input prompt or the number of requested output tokens.", window, *limit, prompt, prompt+*limit))
	}
	return *limit, nil
}
