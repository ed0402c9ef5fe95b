package admission

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/sagemaker"
)

// What a key for some models needs of a request, in words. Without such a key the worker's own error goes back.
var (
	faultUnreadJSON = message.Fault{Status: 400, Kind: "invalid_request_error", Code: "invalid_json",
		Message: "the body is no JSON that can be read to its end, and what this API key may ask for cannot be told" +
			" without it"}
	faultUnsalted = message.Fault{Status: 400, Kind: "invalid_request_error", Code: "invalid_json",
		Message: "the prompts of this API key are kept apart (keys.cache_salt), and this router can write its salt into a" +
			" body that is one object in JSON and no other; send one, or use a key without cache_salt"}
	faultUnsureModel = message.Fault{Status: 400, Kind: "invalid_request_error", Code: "ambiguous_model",
		Message: `the body names "model" more than once, in another spelling or not in UTF-8, and this API key is for` +
			" some models only; send it once"}
	faultUnreadForm = message.Fault{Status: 400, Kind: "invalid_request_error", Code: "ambiguous_form",
		Message: "the form cannot be read in one way only, and this API key is for some models only; send each part" +
			" with one plain Content-Disposition, the field model once, and the closing boundary"}
	faultBodyType = message.Fault{Status: 415, Kind: "invalid_request_error", Code: "unsupported_media_type",
		Message: "this API key is for some models only, and its requests need one Content-Type: application/json or " +
			"multipart/form-data"}
	faultUnreadBody = message.Fault{Status: 413, Kind: "invalid_request_error", Code: "body_too_large",
		Message: "the body is over server.buffer_body_bytes, and what this API key may ask for cannot be told without" +
			" all of it, which this router does not keep (server.overflow_bytes)"}
	faultLateModel = message.Fault{Status: 413, Kind: "invalid_request_error", Code: "body_too_large",
		Message: "the body is over server.buffer_body_bytes and names its model behind that or not at all, so that no" +
			" worker can be chosen; put the model first, or have server.overflow_bytes raised"}
	faultOverflow = message.Fault{Status: 413, Kind: "invalid_request_error", Code: "body_too_large",
		Message: "the body is over half of server.overflow_bytes, which is one client's part, and cannot be routed, or" +
			" permitted, before more of it has been read; put the model first, or have the limit raised"}
	faultNotKept = message.Fault{Status: 503, Kind: "service_unavailable", Code: "body_not_kept", Retry: 2,
		Message: "the body is too long to keep in memory before its model is known, and the router could not write it" +
			" to disk (its log has the reason); put the model first, or try again"}
	FaultOverflowFull = message.Fault{Status: 429, Kind: "rate_limit_error", Code: "overflow_full", Retry: 2,
		Message: "long bodies whose model has not come yet take all of server.overflow_bytes that there is for this" +
			" client; try again shortly, or put the model first"}
	faultNoModel = message.Fault{Status: 400, Kind: "invalid_request_error", Code: "missing_model",
		Message: `"model" is missing or is no text,
			and this API key is for some models only; name one of GET /v1/models`}
	faultAdapters = message.Fault{Status: 403, Kind: "invalid_request_error", Code: "adapter_not_allowed",
		Message: "this API key is for some models only and may not load or unload adapters"}
	faultSocket = message.Fault{Status: 403, Kind: "invalid_request_error", Code: "websocket_not_allowed",
		Message: "this API key is for some models only and may open no WebSocket: its frames may name any model"}
)

// Reading is what parse has read of a request's body.
type Reading struct {
	parser *prompt.Parser
	Req    *prompt.Request
	named  string // the body's model; a header may name another
	Clear  bool   // the body was understood to its end
	Salted bool   // the worker gets a cache_salt of the caller's key

	Computes bool // an engine may compute a prompt for it
	Asks     bool // the router asks for the usage of its stream, and its client does not
}

var parsers = sync.Pool{New: func() any { return new(prompt.Parser) }}

// Parse reads from the body what routing needs. A worker reports what is wrong with it.
func (r *Reading) Parse(in *message.Inbound, model string) {
	r.parser = parsers.Get().(*prompt.Parser)
	if in.Socket { // its frames are not read
		r.Req, _ = r.parser.Parse(prompt.Other, nil)
		query, _ := url.ParseQuery(in.Query)
		r.Req.Model, r.Clear, r.named, r.Salted, r.Computes = query.Get("model"), true, query.Get("model"), false, false
		return
	}
	if kind := in.Get("Content-Type"); len(kind) > 10 && strings.EqualFold(kind[:10], "multipart/") {
		r.Req, _ = r.parser.Parse(prompt.Other, nil)
		r.Req.Model, r.Req.Stream, r.Clear = prompt.Multipart(kind, in.Body)
		r.named = r.Req.Model
		r.Salted, r.Computes = false, in.Endpoint.Computes(in.Method, prompt.Other)
		return
	}
	var err error
	r.Req, err = r.parser.Parse(in.Endpoint.Kind, in.Body)
	r.Clear, r.named = err == nil, r.Req.Model
	if model != "" {
		r.Req.Model = model
	}
	r.Computes = in.Endpoint.Computes(in.Method, r.Req.Kind)
	r.addSalt(in)
}

// addSalt makes the body's cache_salt that of the caller's key, with the client's own behind it.
func (r *Reading) addSalt(in *message.Inbound) {
	salt := in.Caller.Salt
	r.Salted = salt != "" && r.Computes && len(in.Body) > 0
	switch {
	case !r.Salted:
	case r.Req.CacheSalt == "":
		r.Req.CacheSalt = salt
	default:
		r.Req.CacheSalt = salt + "/" + r.Req.CacheSalt
	}
}

// faultWide is for a body that engines can read, as Python's json does, and this router cannot: it may name a
// prefiller.
var faultWide = message.Fault{Status: 400, Kind: "invalid_request_error", Code: "invalid_json",
	Message: "the body is in UTF-16 or UTF-32; JSON is sent in UTF-8"}

// faultHints is for a body with hints on KV: these name the address from which the worker takes what other clients'
// prompts then use.
var faultHints = message.Fault{Status: 403, Kind: "invalid_request_error", Code: "kv_hints_not_allowed",
	Message: `the field "kv_hints" would name an address from which the worker reads its cache; leave it out, or have` +
		` the operator allow it (kv_hints = "pass" of the pool)`}

// isWide reports whether a body is JSON in UTF-16 or UTF-32, by its first two characters, which are ASCII, or its mark.
func isWide(body []byte) bool {
	start := body[:min(len(body), 4)]
	return bytes.IndexByte(start, 0) >= 0 || bytes.HasPrefix(start, []byte("\xff\xfe")) ||
		bytes.HasPrefix(start, []byte("\xfe\xff"))
}

// unsalted returns why the salt of the caller's key cannot be written into the body, or nil. Engines take none with a
// sound or a picture, which come in forms.
func (r *Reading) unsalted(in *message.Inbound) *message.Fault {
	other := in.Endpoint.Kind == prompt.Other
	switch {
	case in.Caller.Salt == "" || !r.Computes,
		other && (len(in.Body) == 0 && in.Tail == nil || in.Endpoint.IsMedia() && !message.IsJSON(in)):
		return nil
	case in.Tail != nil:
		return &faultUnreadBody
	case !r.Clear || !message.IsJSON(in):
		return &faultUnsalted
	}
	return nil
}

// release gives the parser back. What was read may not be used after it.
func (r *Reading) release() {
	if r.parser != nil {
		parsers.Put(r.parser)
		r.parser, r.Req = nil, nil
	}
}

// forbids returns why the key's models do not allow the request, or nil. A key for some models needs a body that was
// read to its end and understood: a worker may read more out of it, such as another model behind the first.
func (r *Reading) forbids(in *message.Inbound) *message.Fault {
	switch {
	case in.Caller.Allows(""): // any model
		return nil
	case in.Endpoint.Stored: // foreign checks whose it is
		return nil
	case in.Endpoint.Adapters:
		return &faultAdapters
	case in.Socket:
		return &faultSocket
	}
	if in.Tail != nil && r.named != "" && !in.MayUse(r.named) { // whatever may follow
		f := message.FaultForbiddenModel(r.named)
		return &f
	}
	if f := r.unread(in); f != nil {
		return f
	}
	if !in.MayUse(r.named) {
		f := message.FaultForbiddenModel(r.named)
		return &f
	}
	if r.Req.AmbiguousModel {
		return &faultUnsureModel
	}
	for _, h := range in.Header { // on every path: the router does not know what a worker makes of it
		if strings.EqualFold(h.Name, sagemaker.HeaderAdapter) && !in.Caller.Allows(h.Value) {
			f := message.FaultForbiddenModel(h.Value)
			return &f
		}
	}
	return nil
}

// unread returns why the body's model is not known for sure, or nil.
func (r *Reading) unread(in *message.Inbound) *message.Fault {
	kinds, kind := 0, ""
	for _, h := range in.Header {
		if strings.EqualFold(h.Name, "Content-Type") {
			kinds++
			kind = strings.ToLower(h.Value)
		}
	}
	form := strings.HasPrefix(kind, "multipart/form-data")
	_, charset, coded := strings.Cut(kind, "charset") // some readers decode JSON by it, and UTF-7 has quotes of its own
	switch {
	case kinds > 1 || coded && strings.Trim(charset, ` ="`) != "utf-8" ||
		!form && (strings.Contains(kind, "multipart") || strings.Contains(kind, "form")):
		return &faultBodyType
	case in.Tail != nil:
		return &faultUnreadBody
	case form && !r.Clear:
		return &faultUnreadForm
	case len(in.Body) == 0:
		return &faultNoModel
	case !r.Clear:
		return &faultUnreadJSON
	case r.named == "" && r.Req.AmbiguousModel:
		return &faultUnsureModel
	case r.named == "":
		return &faultNoModel
	}
	return nil
}

// hidesResponse returns why the body, sent to the target at a worker, may name a stored response, or a new job's file,
// that the router has not seen, or nil.
func (r *Reading) hidesResponse(in *message.Inbound, target string) *message.Fault {
	hides := strings.HasPrefix(target, "/v1/responses") || in.Endpoint.Creates && message.IsJSON(in)
	if in.Caller.Name == "" || in.Method != http.MethodPost || !hides {
		return nil
	}
	switch {
	case in.Tail != nil:
		return &faultUnreadBody
	case !r.Clear && len(in.Body) > 0:
		return &faultUnreadJSON
	}
	return nil
}

// hidesModel reports whether the unread part of the body, JSON or a form, may name a model.
func (r *Reading) hidesModel(in *message.Inbound) bool {
	if in.Tail == nil || r.Req.Model != "" {
		return false
	}
	start := bytes.TrimLeft(in.Body, " \t\r\n")
	return bytes.HasPrefix(start, []byte("{")) || bytes.HasPrefix(start, []byte("--"))
}

// maxTokenize bounds the text that goes to /tokenize: vLLM tokenizes whatever comes, at some 650 bytes of its memory a
// byte, and one body of 32 MB has been seen to end a worker. A token has some 4 bytes; 1 MiB is above a prompt of
// 200,000 tokens.
const maxTokenize = 1 << 20

// tooLongToTokenize reports whether a body for /tokenize is over the bound.
func (r *Reading) tooLongToTokenize(in *message.Inbound) bool {
	return r.Req.Kind == prompt.Tokenize && (len(in.Body) > maxTokenize || in.Tail != nil)
}
