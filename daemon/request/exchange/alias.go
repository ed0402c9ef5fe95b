package exchange

import (
	"strings"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// An alias changes the bytes of the model's name on the way to the worker, and on the way back. Between the two all is
// judged by the target: pool, index, limits and metrics.

// faultAliasPlace is for a body in which the alias cannot be replaced.
var faultAliasPlace = message.Fault{Status: 400, Kind: "invalid_request_error", Code: "ambiguous_model",
	Message: `the body names its model in a way in which this router cannot replace it;` +
		` send "model" once, as plain text`}

// rename replaces an alias with the model that serves the request's session.
func rename(r *request) *message.Fault {
	req := r.read.req
	a := r.alias // of a fallback
	if a == nil {
		a = r.epoch.Names.Find(req.Model)
	}
	if a == nil && req.Model == "" {
		r.alias = aliasOfResponse(r)
	}
	if a == nil || req.Model != r.read.named { // a door's own name is in no body
		return nil
	}
	if len(modelSpans(r, r.in.Body)) == 0 {
		return &faultAliasPlace
	}
	r.alias = a
	key := sessionKey(r)
	if r.kept == nil {
		req.Model = a.Choose(key)
	} else {
		req.Model = r.kept.models.Model(a, key)
	}
	r.in.Seen.Model = req.Model
	if a.Name != req.Model {
		r.in.Seen.Aliased = &route.Aliased{Alias: a.Name}
	}
	return nil
}

// aliasOfResponse returns the alias by which the stored response was made that the path names; nil if it was none.
func aliasOfResponse(r *request) *names.Alias {
	if r.epoch.Names == nil || r.kept == nil || r.in.Endpoint.ID == "" {
		return nil
	}
	name, model := r.kept.models.Maker(makerKey(r, r.in.Endpoint.ID))
	a := r.epoch.Names.Find(name)
	if a != nil {
		r.in.Seen.Aliased, r.in.Seen.Model = &route.Aliased{Alias: name}, model
	}
	return a
}

// makerKey returns a hash of a response of the request's caller.
func makerKey(r *request, response string) uint64 {
	return names.Key("maker", r.in.Caller.Name, response)
}

// sessionKey returns a hash of what the turns of a session have in common: the response that they go on with, the name
// of the session, or the beginning of the chat.
func sessionKey(r *request) uint64 {
	tenant := r.in.Caller.Name
	if id := r.read.req.PreviousResponse; id != "" {
		return names.Key("response", tenant, id)
	}
	var c route.Claim
	if id := r.identify(&c).Session; id != "" {
		return names.Key("session", tenant, id)
	}
	if text := r.read.req.Opening(); text != "" {
		return names.Key("chat", tenant, text)
	}
	return names.Key("request", r.in.ID)
}

// keepModel has requests that go on with a response ask its model, and what is read of it later have the alias.
func keepModel(r *request, response string) {
	if r.alias != nil {
		r.kept.models.Made(r.alias, makerKey(r, response), r.read.req.Model)
		r.kept.models.Keep(r.alias, names.Key("response", r.in.Caller.Name, response), r.read.req.Model)
	}
}

// modelSpans returns where the names of models stand in a body.
func modelSpans(r *request, body []byte) [][2]int {
	if kind := r.in.Get("Content-Type"); len(kind) > 10 && strings.EqualFold(kind[:10], "multipart/") {
		return prompt.FormModel(kind, body)
	}
	return names.Find(body)
}
