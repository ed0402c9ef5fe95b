package vllmsim

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
)

// body is what the simulator reads of a chat or completion body. It ignores the rest, as vLLM ignores what it does
// not know.
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
	Session       string   `json:"session_id"`
	Args          struct {
		Report  string `json:"kv_cache_report_mode"`
		Session string `json:"session_id"`
	} `json:"vllm_xargs"`
	RequestID string          `json:"request_id"`
	Transfer  *transferParams `json:"kv_transfer_params"`
	Hints     *kvHints        `json:"kv_hints"`
	ReturnIDs bool            `json:"return_token_ids"`
	Continue  bool            `json:"continue_final_message"`
	Generate  *bool           `json:"add_generation_prompt"`

	// Read for what they do to the cache alone: see recomputes.
	Echo           bool `json:"echo"`
	Logprobs       any  `json:"logprobs"` // a number, or a chat's bool
	PromptLogprobs *int `json:"prompt_logprobs"`
}

// recomputes reports whether the logprobs of the prompt are asked for: then vLLM reads nothing from the cache, and
// still enters the prompt.
func (b *body) recomputes() bool {
	return b.PromptLogprobs != nil || b.Echo && b.Logprobs != nil && b.Logprobs != false
}

// parse reads a body. Wrong types are refused as vLLM's validation does, in kind; the refused value itself is not
// repeated.
func parse(r *http.Request, raw []byte, into any) *apiError {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if media != "application/json" {
		return newError(http.StatusBadRequest, "Bad Request", "",
			"1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed")
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

// wanted returns pydantic's name and text for a value of the wrong type.
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

// transferParams is what vLLM's NixlConnector (0.32) reads of kv_transfer_params, and what it answers with.
type transferParams struct {
	RemotePrefill bool     `json:"do_remote_prefill"`
	RemoteDecode  bool     `json:"do_remote_decode"`
	Blocks        [][]int  `json:"remote_block_ids"` // by the groups of the cache: here there is one
	EngineID      string   `json:"remote_engine_id"`
	RequestID     string   `json:"remote_request_id"`
	Host          string   `json:"remote_host"`
	Port          int      `json:"remote_port"`
	TPSize        int      `json:"tp_size"`
	DCPSize       int      `json:"dcp_size"`
	PPSize        int      `json:"pp_size"`
	Tokens        int      `json:"remote_num_tokens"`
	Expiry        *float64 `json:"remote_blocks_expiry_time"` // of what a decoder keeps: null
	Mode          string   `json:"transfer_mode"`
	Cached        int      `json:"remote_prefill_cached_tokens"`
}

// UnmarshalJSON implements json.Unmarshaler. Parameters that come twice are the last ones alone, as in Python.
func (p *transferParams) UnmarshalJSON(text []byte) error {
	type plain transferParams
	var last plain
	err := json.Unmarshal(text, &last)
	*p = transferParams(last)
	return err
}
