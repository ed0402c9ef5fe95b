package daemon

import (
	"net/http"
	"strings"

	"github.com/warmpath/warmpath/daemon/prompt"
	"github.com/warmpath/warmpath/daemon/sagemaker"
	"github.com/warmpath/warmpath/daemon/session"
)

// What a key that is for some models needs of a request, in words. Without such a key a worker tells what is wrong.
var (
	faultUnreadJSON = fault{400, "invalid_request_error", "invalid_json", "the body is no JSON that can be read to its end, and what this API key may " +
		"ask for cannot be told without it", 0}
	faultUnsureModel = fault{400, "invalid_request_error", "ambiguous_model", `the body names "model" more than once, in another spelling or not in ` +
		"UTF-8, and this API key is for some models only; send it once", 0}
	faultUnreadForm = fault{400, "invalid_request_error", "ambiguous_form", "the form cannot be read in one way only, and this API key is for some models " +
		"only; send each part with one plain Content-Disposition, the field model once, and the closing boundary", 0}
	faultBodyType = fault{415, "invalid_request_error", "unsupported_media_type", "this API key is for some models only, and its requests need one " +
		"Content-Type: application/json or multipart/form-data", 0}
	faultUnreadBody = fault{413, "invalid_request_error", "body_too_large", "the body is over server.buffer_body_bytes, and what this API key " +
		"may ask for cannot be told without all of it", 0}
	faultNoModel = fault{400, "invalid_request_error", "missing_model", `"model" is missing or is no text, and this API key is for some models only; ` +
		"name one of GET /v1/models", 0}
	faultAdapters = fault{403, "invalid_request_error", "adapter_not_allowed", "this API key is for some models only and may not load or unload adapters", 0}
)

// forbids returns why the key's models do not allow the request, or nil. A key for some models needs a body that was read to its
// end and understood: a worker may read more out of it, another model behind the first for one.
func (e *exchange) forbids() *fault {
	in := e.in
	switch {
	case in.Caller.Allows(""): // any model
		return nil
	case storedPath(in.Method, in.Path): // whose it is, is looked at for all keys
		return nil
	case strings.Contains(strings.ToLower(in.Path), "lora_adapter"): // it would make a model of that name
		return &faultAdapters
	}
	if f := e.unread(); f != nil {
		return f
	}
	if !in.Caller.Allows(e.named) {
		f := faultForbiddenModel(e.named)
		return &f
	}
	if e.req.AmbiguousModel {
		return &faultUnsureModel
	}
	for _, h := range in.Header { // on every path: what a worker makes of it is not known
		if strings.EqualFold(h.Name, sagemaker.HeaderAdapter) && !in.Caller.Allows(h.Value) {
			f := faultForbiddenModel(h.Value)
			return &f
		}
	}
	return nil
}

// unread returns why the body's model is not known for sure, or nil.
func (e *exchange) unread() *fault {
	kinds, kind := 0, ""
	for _, h := range e.in.Header {
		if strings.EqualFold(h.Name, "Content-Type") {
			kinds, kind = kinds+1, strings.ToLower(h.Value)
		}
	}
	form := strings.HasPrefix(kind, "multipart/form-data")
	_, charset, coded := strings.Cut(kind, "charset") // some readers decode JSON by it, and UTF-7 has quotes of its own
	switch {
	case e.in.Tail != nil:
		return &faultUnreadBody
	case kinds > 1 || coded && strings.Trim(charset, ` ="`) != "utf-8" || !form && (strings.Contains(kind, "multipart") || strings.Contains(kind, "form")):
		return &faultBodyType
	case form && !e.clear:
		return &faultUnreadForm
	case len(e.in.Body) == 0:
		return &faultNoModel
	case !e.clear:
		return &faultUnreadJSON
	case e.named == "" && e.req.AmbiguousModel:
		return &faultUnsureModel
	case e.named == "":
		return &faultNoModel
	}
	return nil
}

// foreign returns why a stored response that the request names is not to be had by its key, or nil. A response belongs to the
// key that made it, and one of another key is answered as one that nobody made. Where there are no keys its id is all it takes.
func (e *exchange) foreign() *fault {
	if e.in.Caller.Name == "" {
		return nil
	}
	for _, id := range [...]string{e.req.PreviousResponse, responseID(e.in.Method, e.in.Path)} {
		if id == "" {
			continue
		}
		if p, s := e.d.responsePool(e.in.stored(id), e.arrived); s == session.Silent {
			return &faultSilent
		} else if p == nil {
			f := faultUnknownResponse(id)
			return &f
		}
	}
	return nil
}

// hidesResponse returns why the body may name a stored response that was not seen, or nil.
func (e *exchange) hidesResponse() *fault {
	in := e.in
	if in.Caller.Name == "" || in.Method != http.MethodPost || !strings.HasPrefix(e.targetPath(), "/v1/responses") {
		return nil
	}
	switch {
	case in.Tail != nil:
		return &faultUnreadBody
	case !e.clear && len(in.Body) > 0:
		return &faultUnreadJSON
	}
	return nil
}

// stored is the name under which a response stands: of the key that made it, or of nobody where there are no keys.
func (in *Inbound) stored(id string) session.Name {
	return session.Name{Kind: session.Response, Tenant: in.Caller.Name, ID: id}
}

// responseID is the id in the path of a stored response, as in /v1/responses/{id}/cancel. What is posted to one segment is an
// endpoint beside the ids, as /v1/responses/compact.
func responseID(method, path string) string {
	id, ok := strings.CutPrefix(path, "/v1/responses/")
	if !ok {
		return ""
	}
	id, _, more := strings.Cut(id, "/")
	if method == http.MethodPost && !more {
		return ""
	}
	return id
}

// storedPath tells of the requests for a stored response that name no model: to read, to delete and to cancel it.
func storedPath(method, path string) bool {
	rest, ok := strings.CutPrefix(path, "/v1/responses/")
	if !ok {
		return false
	}
	id, what, more := strings.Cut(rest, "/")
	for i := range len(id) {
		if !isWord(id[i]) {
			return false
		}
	}
	switch {
	case id == "":
		return false
	case !more:
		return method == http.MethodGet || method == http.MethodDelete
	case what == "cancel":
		return method == http.MethodPost
	}
	return what == "input_items" && method == http.MethodGet
}

// readForm takes the model and the stream flag of a form.
func (e *exchange) readForm(contentType string) {
	e.req, _ = e.parser.Parse(prompt.Other, nil)
	e.req.Model, e.req.Stream, e.clear = prompt.Multipart(contentType, e.in.Body)
}
