package admission

import (
	"strings"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// An alias changes the bytes of the model's name on the way to the worker, and on the way back. Between the two all is
// judged by the target: pool, index, limits and metrics.

// faultAliasPlace is for a body in which the alias cannot be replaced.
var faultAliasPlace = message.Fault{Status: 400, Kind: "invalid_request_error", Code: "ambiguous_model",
	Message: `the body names its model in a way in which this router cannot replace it;` +
		` send "model" once, as plain text`}

// faultAliasSocket is for a WebSocket, whose query and frames go to the worker as they come.
var faultAliasSocket = message.Fault{Status: 400, Kind: "invalid_request_error", Code: "ambiguous_model",
	Message: "an alias serves no WebSocket; give ?model= and the frames a model's own name, as GET /v1/models lists them"}

// Rename replaces an alias with the model that serves the request's session.
func Rename(r *Request) *message.Fault {
	req := r.Read.Req
	a := r.Alias // of a fallback
	if a == nil {
		a = r.Epoch.Names.Find(req.Model)
	}
	if a == nil && req.Model == "" {
		r.Alias = aliasOfResponse(r)
	}
	if a == nil || req.Model != r.Read.named { // a door's own name is in no body
		return nil
	}
	if len(ModelSpans(r, r.In.Body)) == 0 {
		if r.In.Socket {
			return &faultAliasSocket
		}
		return &faultAliasPlace
	}
	r.Alias = a
	key := sessionKey(r)
	if r.Kept == nil {
		req.Model = a.Choose(key)
	} else {
		req.Model = r.Kept.models.Model(a, key)
	}
	r.In.Seen.Model = req.Model
	if a.Name != req.Model {
		r.In.Seen.Aliased = &record.Aliased{Alias: a.Name}
		if r.Fell != 0 {
			r.In.Seen.Aliased.Fell = r.Fell.String()
		}
	}
	return nil
}

// aliasOfResponse returns the alias by which the stored response was made that the path names; nil if it was none.
func aliasOfResponse(r *Request) *names.Alias {
	if r.Epoch.Names == nil || r.Kept == nil || r.In.Endpoint.ID == "" {
		return nil
	}
	name, model := r.Kept.models.Maker(makerKey(r, r.In.Endpoint.ID))
	a := r.Epoch.Names.Find(name)
	if a != nil {
		r.In.Seen.Aliased, r.In.Seen.Model = &record.Aliased{Alias: name}, model
	}
	return a
}

// makerKey returns a hash of a response of the request's caller.
func makerKey(r *Request, response string) uint64 {
	return names.Key("maker", r.In.Caller.Name, response)
}

// sessionKey returns a hash of the value that all turns of a session share: the response that they continue, the name
// of the session, or the beginning of the chat.
func sessionKey(r *Request) uint64 {
	tenant := r.In.Caller.Name
	if id := r.Read.Req.PreviousResponse; id != "" {
		return names.Key("response", tenant, id)
	}
	var c route.Claim
	if id := r.identify(&c).Session; id != "" {
		return names.Key("session", tenant, id)
	}
	if text := r.Read.Req.Opening(); text != "" {
		return names.Key("chat", tenant, text)
	}
	return names.Key("request", r.In.ID)
}

// KeepModel has requests that go on with a response ask its model, and what is read of it later have the alias.
func KeepModel(r *Request, response string) {
	if r.Alias != nil {
		r.Kept.models.Made(r.Alias, makerKey(r, response), r.Read.Req.Model)
		r.Kept.models.Keep(r.Alias, names.Key("response", r.In.Caller.Name, response), r.Read.Req.Model)
	}
}

// ModelSpans returns the positions of the models' names in a body.
func ModelSpans(r *Request, body []byte) [][2]int {
	if kind := r.In.Get("Content-Type"); len(kind) > 10 && strings.EqualFold(kind[:10], "multipart/") {
		return prompt.FormModel(kind, body)
	}
	return names.Find(body)
}
