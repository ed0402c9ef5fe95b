package daemon

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/warmpath/warmpath/daemon/gate"
	"github.com/warmpath/warmpath/daemon/sagemaker"
	"github.com/warmpath/warmpath/daemon/session"
	"github.com/warmpath/warmpath/host"
)

// fault is an error that we answer ourselves, in the shape of the endpoint. Code is a string: the C# client cannot read numbers.
type fault struct {
	status  int
	kind    string // error.type
	code    string // error.code
	message string
	retry   int // seconds for Retry-After; 0 = none
}

// The faults whose text does not depend on the request.
var (
	faultNoWorker = fault{503, "service_unavailable", "no_worker", "no worker is up for this request; try again shortly", 2}
	faultTooLarge = fault{413, "invalid_request_error", "body_too_large", "the request body is over this router's limit (server.max_body_bytes)", 0}
	faultRejected = fault{429, "rate_limit_error", "rejected_by_strategy", "the routing strategy refused the request; try again shortly", 1}
	faultUpstream = fault{503, "service_unavailable", "worker_failed", "every worker that was tried failed before it answered; try again shortly", 1}
	faultURL      = fault{400, "invalid_request_error", "invalid_url", "the path has dot segments, empty segments, backslashes, encoded slashes or control characters", 0}
	faultRequest  = fault{400, "invalid_request_error", "invalid_request", "the request's method or headers cannot be passed on", 0}
	faultInternal = fault{500, "internal_error", "internal_error", "this router failed on the request; its log has the reason", 0}
	faultBroken   = fault{502, "upstream_error", "worker_broke_off", "the worker broke off in the middle of its answer", 0}
	faultDown     = fault{503, "service_unavailable", "worker_down", "the worker went down with the request; try again shortly", 1}
	faultHidden   = fault{503, "service_unavailable", "worker_draining", "the worker accepted the request and then gave it up; try again shortly", 1}
	faultFull     = fault{429, "rate_limit_error", "workers_full", "every worker has as many requests as it may have (max_in_flight); try again shortly", 1}
	faultOverload = fault{429, "rate_limit_error", "overloaded", "this router has as many requests as it may have; try again shortly", 1}
	faultStopping = fault{503, "service_unavailable", "router_stopping", "this router is stopping and the answer did not end in time; try again", 1}
	faultGone     = fault{499, "invalid_request_error", "client_gone", "the client left", 0}
	faultKey      = fault{401, "invalid_request_error", "invalid_api_key", "no known API key was shown: send Authorization: Bearer KEY, or X-Api-Key", 0}
	faultFraming  = fault{400, "invalid_request_error", "bad_request", "the request is not well-formed HTTP", 0}
	faultSlowBody = fault{408, "invalid_request_error", "request_timeout", "the request did not arrive within server.read_timeout", 0}
	faultTokenize = fault{413, "invalid_request_error", "prompt_too_long", "the text is over this router's limit for tokenizing (1 MiB)", 0}

	faultUnknownURL = fault{404, "invalid_request_error", "unknown_url", "there is nothing at this URL; the API is under /v1", 0}
	faultHeaders    = fault{431, "invalid_request_error", "headers_too_large", "the request's headers are over this router's limit (server.max_header_bytes)", 0}

	faultResting    = fault{503, "service_unavailable", "session_worker_resting", "the session's worker is not answering well now; try again shortly", 1}
	faultOtherModel = fault{400, "invalid_request_error", "session_of_another_model", "the session's worker does not serve this model", 0}

	faultSilent      = fault{503, "service_unavailable", "session_store_silent", "the store of sessions (cache.redis) does not answer, and this router does not hold the session; try again shortly", 1}
	faultOpening     = fault{502, "upstream_error", "session_not_opened", "the worker did not open the session", 0}
	faultSessionBody = fault{400, "invalid_request_error", "session_malformed", "the body must be small and JSON, as {\"model\": \"NAME\"}, or empty", 0}

	faultTimeout = fault{504, "upstream_error", "worker_timeout", "the worker did not begin its answer in time (header_timeout)", 0}
)

// faultRejectedBy returns what a client gets that the strategy turns away: the strategy's words where it has some.
func faultRejectedBy(r *host.Rejection) fault {
	f := faultRejected
	f.status = r.Status
	switch {
	case r.Status >= 500:
		f.kind = "service_unavailable"
	case r.Status == 401:
		f.kind = "authentication_error"
	case r.Status == 403:
		f.kind = "permission_error"
	case r.Status != 429:
		f.kind = "invalid_request_error"
	}
	if r.Text != "" {
		f.message = r.Text
	}
	if r.RetryAfter > 0 {
		f.retry = int(r.RetryAfter / time.Second)
	} else if r.Status != 429 && r.Status != 503 {
		f.retry = 0 // to come again does not help
	}
	return f
}

func faultUnknownModel(model string) fault {
	return fault{404, "invalid_request_error", "model_not_found", "the model " + strconv.Quote(gate.Cut(model)) + " is served by no worker", 0}
}

// faultForbiddenModel has the code that OpenAI's own 403 has.
func faultForbiddenModel(model string) fault {
	return fault{403, "invalid_request_error", "model_not_found", "this API key may not use the model " + strconv.Quote(gate.Cut(model)), 0}
}

// faultUnknownResponse has vLLM's words.
func faultUnknownResponse(id string) fault {
	return fault{404, "invalid_request_error", "response_not_found", "Response with id '" + gate.Cut(id) + "' not found.", 0}
}

// faultSession tells why an opened session is not to be had.
func faultSession(s session.Status) fault {
	if s == session.Silent {
		return faultSilent
	}
	why := map[session.Status]string{
		session.Unknown: "there is no such session; open one", session.Expired: "the session has expired; open a new one",
		session.Closed: "the session has been closed; open a new one", session.Lost: "the session ended with its worker; open a new one"}[s]
	return fault{400, "invalid_request_error", "session_" + s.String(), why, 0}
}

// inner is OpenAI's error object. A stream of the responses API has it flat, with a type of its own.
type inner struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

// body is the error's JSON in the endpoint's shape.
func (f fault) body(s shape) []byte {
	switch s {
	case anthropic:
		return f.anthropic()
	case aws:
		return sagemaker.Refusal(f.status, f.message).Body()
	}
	b, _ := json.Marshal(map[string]inner{"error": {Message: f.message, Type: f.kind, Code: f.code}})
	return b
}

// anthropicTypes are the names by status (docs.anthropic.com, "Errors").
var anthropicTypes = map[int]string{400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
	404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 503: "overloaded_error", 529: "overloaded_error"}

func (f fault) anthropic() []byte {
	kind := anthropicTypes[f.status]
	switch {
	case kind != "":
	case f.status < 500:
		kind = "invalid_request_error"
	default:
		kind = "api_error"
	}
	type reason struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	b, _ := json.Marshal(struct {
		Type  string `json:"type"`
		Error reason `json:"error"`
	}{"error", reason{kind, f.message}})
	return b
}

// event is the error as the last event of a stream.
func (f fault) event(s shape) []byte {
	var b []byte
	switch s {
	case anthropic:
		b = append([]byte("event: error\ndata: "), f.anthropic()...)
	case responses:
		data, _ := json.Marshal(inner{Message: f.message, Type: "error", Code: f.code})
		b = append([]byte("event: error\ndata: "), data...)
	default:
		b = append([]byte("data: "), f.body(openAI)...)
	}
	return append(b, "\n\n"...)
}

func (f fault) outbound(s shape) *Outbound {
	o := &Outbound{Status: f.status, Body: f.body(s)}
	if s == aws {
		bad := sagemaker.Refusal(f.status, f.message)
		o.Status = bad.Status
		for _, h := range bad.Headers("") {
			o.setOnce(h[0], h[1])
		}
	} else {
		o.set("Content-Type", "application/json")
	}
	if f.retry > 0 {
		o.set("Retry-After", strconv.Itoa(f.retry))
	}
	return o
}
