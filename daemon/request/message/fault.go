package message

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/warmpath/warmpath/daemon/request/sagemaker"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// Fault is an error that the router answers itself, in the shape of the endpoint.
type Fault struct {
	Status  int
	Kind    string // error.type
	Code    string // error.code; a string, as OpenAI's C# client cannot read numbers
	Message string
	Retry   int // seconds for Retry-After; 0 = none
	Cause   Cause
	Dropped string // X-Warmpath-Dropped: why the router turned it away unserved; "" = there is no such field
	Alone   bool   // another worker would not have served it
}

// HeaderDropped has the reason for which a valid request was refused, for programs. The text of an error is for
// people.
const HeaderDropped = "X-Warmpath-Dropped"

// HeaderWeights has the versions of the weights that made an answer, and HeaderWeightsMin the least one that a client
// asks for.
const (
	HeaderWeights    = "X-Warmpath-Weights"
	HeaderWeightsMin = "X-Warmpath-Weights-Min"
)

// Cause is why a request gets no answer of a worker. The counts of requests differ by it.
type Cause uint8

const (
	RouterRefused Cause = iota // the request as it is, or for the router's own load or end
	NoFreeWorker               // none is up for the request, or each is full
	UnknownToAll               // none of those that are up lists the model, and nothing shows that another one would
	WorkerFailed               // the workers that had the request left it without a whole answer
	ClientLeft                 // before the answer
)

// The faults whose text does not depend on the request.
var (
	FaultNoWorker = Fault{Status: 503, Kind: "service_unavailable", Code: "no_worker", Retry: 2, Cause: NoFreeWorker,
		Dropped: "no_workers",
		Message: "no worker that is up can serve this request; try again shortly"}
	FaultFenced = Fault{Status: 503, Kind: "service_unavailable", Code: "no_worker_for_key",
		Message: "this API key has workers of its own (keys.workers), and none of them is among those of the model"}
	FaultWeights = Fault{Status: 503, Kind: "service_unavailable", Code: "old_weights", Retry: 2, Cause: NoFreeWorker,
		Alone: true,
		Message: "no worker that may serve this request has weights of the version that it asks for (" + HeaderWeightsMin +
			") or of a later one; try again shortly"}
	FaultWeightsMin = Fault{Status: 400, Kind: "invalid_request_error", Code: "invalid_weights_min",
		Message: HeaderWeightsMin + " must be a whole number: the least version of the weights"}
	FaultTooLarge = Fault{Status: 413, Kind: "invalid_request_error", Code: "body_too_large",
		Message: "the request body is over this router's limit (server.max_body_bytes)"}
	FaultRejected = Fault{Status: 429, Kind: "rate_limit_error", Code: "rejected_by_strategy", Retry: 1,
		Message: "the routing strategy refused the request; try again shortly"}
	FaultUnchosen = Fault{Status: 503, Kind: "service_unavailable", Code: "strategy_failed", Retry: 2,
		Message: "the routing strategy named no worker for the request, and no other rule may (on_failure); try again" +
			" shortly"}
	FaultUpstream = Fault{Status: 503, Kind: "service_unavailable", Code: "worker_failed", Retry: 1, Cause: WorkerFailed,
		Message: "every worker that was tried failed before it answered; try again shortly"}
	FaultURL = Fault{Status: 400, Kind: "invalid_request_error", Code: "invalid_url",
		Message: "the path has dot segments, empty segments, backslashes, encoded slashes or control characters"}
	FaultRequest = Fault{Status: 400, Kind: "invalid_request_error", Code: "invalid_request",
		Message: "the request's method or headers cannot be passed on"}
	FaultInternal = Fault{Status: 500, Kind: "internal_error", Code: "internal_error",
		Message: "this router failed on the request; its log has the reason"}
	FaultLethal = Fault{Status: 500, Kind: "internal_error", Code: "request_ended_workers", Cause: WorkerFailed,
		Message: "two workers ended when they got this request, so that it is sent to no other for some minutes"}
	FaultWorkerKey = Fault{Status: 502, Kind: "upstream_error", Code: "worker_key_refused", Cause: WorkerFailed,
		Message: "the workers refuse the key that this router sends them; its log has the remedy"}
	FaultBroken = Fault{Status: 502, Kind: "upstream_error", Code: "worker_broke_off", Cause: WorkerFailed,
		Message: "the worker broke off in the middle of its answer"}
	FaultDown = Fault{Status: 503, Kind: "service_unavailable", Code: "worker_down", Retry: 1, Cause: WorkerFailed,
		Message: "the worker went down with the request; try again shortly"}
	FaultNoPrefill = Fault{Status: 503, Kind: "service_unavailable", Code: "no_prefill", Retry: 1, Cause: WorkerFailed,
		Message: "no prefiller that is up has computed the prompt, and the decode servers of this pool compute none; try" +
			" again shortly"}
	FaultHidden = Fault{Status: 503, Kind: "service_unavailable", Code: "worker_draining", Retry: 1, Cause: WorkerFailed,
		Message: "the worker accepted the request and then gave it up; try again shortly"}
	FaultFull = Fault{Status: 429, Kind: "rate_limit_error", Code: "workers_full", Retry: 1, Cause: NoFreeWorker,
		Message: "every worker has as much to do as it may have; try again shortly"}
	FaultQueueFull = Fault{Status: 429, Kind: "rate_limit_error", Code: "queue_full", Retry: 1, Cause: NoFreeWorker,
		Dropped: "queue_full",
		Message: "every worker has as much to do as it may have, and no more requests may wait here; try again shortly"}
	FaultWaited = Fault{Status: 429, Kind: "rate_limit_error", Code: "queue_wait", Retry: 1, Cause: NoFreeWorker,
		Dropped: "wait",
		Message: "no worker had room for as long as a request may wait here; try again shortly"}
	FaultOverdue = Fault{Status: 429, Kind: "rate_limit_error", Code: "deadline", Retry: 1, Cause: NoFreeWorker,
		Dropped: "deadline",
		Message: "the first token would come later than the request asks for (X-Slo-Ttft-Ms, X-Stainless-Timeout)"}
	FaultNoSlot = Fault{Status: 429, Kind: "rate_limit_error", Code: "adapters_full", Retry: 1, Cause: NoFreeWorker,
		Dropped: "adapters",
		Message: "the workers have as many LoRA adapters as they may, all in use, and this one got no place in time, or too" +
			" many wait for one; try again shortly"}
	FaultOverload = Fault{Status: 429, Kind: "rate_limit_error", Code: "overloaded", Retry: 1,
		Message: "this router has as many requests as it may have; try again shortly"}
	FaultStopping = Fault{Status: 503, Kind: "service_unavailable", Code: "router_stopping", Retry: 1,
		Message: "this router is stopping and the answer did not end in time; try again"}
	FaultGone = Fault{Status: 499, Kind: "invalid_request_error", Code: "client_gone", Cause: ClientLeft,
		Message: "the client left"}
	FaultKey = Fault{Status: 401, Kind: "invalid_request_error", Code: "invalid_api_key",
		Message: "no known API key was shown: send Authorization: Bearer KEY, or X-Api-Key"}
	FaultFraming = Fault{Status: 400, Kind: "invalid_request_error", Code: "bad_request",
		Message: "the request is not well-formed HTTP"}
	FaultSlowBody = Fault{Status: 408, Kind: "invalid_request_error", Code: "request_timeout",
		Message: "the request did not arrive within server.read_timeout, or its body at 16 KiB a second"}
	FaultPacking = Fault{Status: 415, Kind: "invalid_request_error", Code: "unsupported_encoding",
		Message: "this router reads no body of that Content-Encoding: send gzip, deflate, zstd or br, or the body as it is"}
	FaultPacked = Fault{Status: 400, Kind: "invalid_request_error", Code: "invalid_encoding",
		Message: "the body cannot be unpacked: it is cut short, goes on behind its end, needs a window of more than 8 MiB," +
			" or is something else than its Content-Encoding says"}
	FaultGrows = Fault{Status: 413, Kind: "invalid_request_error", Code: "body_unpacks_too_large",
		Message: "the body is packed more than once, or has more than 1 MiB and more than 100 times what was sent of it" +
			" when it is unpacked; pack it once, or send it as it is"}
	FaultNoDecoder = Fault{Status: 429, Kind: "rate_limit_error", Code: "unpacking_full", Retry: 1,
		Message: "other packed bodies of this client take all of the memory that there is to unpack them; try again" +
			" shortly, pack with a smaller window, or send the body as it is"}
	FaultTokenize = Fault{Status: 413, Kind: "invalid_request_error", Code: "prompt_too_long",
		Message: "the text is over this router's limit for tokenizing (1 MiB)"}

	// 426 is the status after which Codex falls back to HTTP at once. After 403, 404 or a 5xx it tries seven times, and
	// after 400 it gives the session up.
	FaultWebSocket = Fault{Status: 426, Kind: "invalid_request_error", Code: "no_websockets",
		Message: "nothing takes WebSockets here; use the endpoint by plain HTTP (WebSockets are for /v1/realtime and" +
			" /v1/audio/speech/stream)"}
	FaultUnknownURL = Fault{Status: 404, Kind: "invalid_request_error", Code: "unknown_url",
		Message: "there is nothing at this URL; the API is under /v1"}
	FaultHeaders = Fault{Status: 431, Kind: "invalid_request_error", Code: "headers_too_large",
		Message: "the request's headers are over this router's limit (server.max_header_bytes)"}

	FaultResting = Fault{Status: 503, Kind: "service_unavailable", Code: "session_worker_resting", Retry: 1,
		Message: "the session's worker is not answering well now; try again shortly"}
	FaultOtherModel = Fault{Status: 400, Kind: "invalid_request_error", Code: "session_of_another_model",
		Message: "the session's worker does not serve this model"}

	FaultSilent = Fault{Status: 503, Kind: "service_unavailable", Code: "session_store_silent", Retry: 1,
		Message: "the store of sessions (cache.redis) does not answer, and this router does not hold the session;" +
			" try again shortly"}
	FaultOpening = Fault{Status: 502, Kind: "upstream_error", Code: "session_not_opened", Cause: WorkerFailed,
		Message: "the worker did not open the session"}
	FaultSessionsFull = Fault{Status: 429, Kind: "rate_limit_error", Code: "sessions_full", Retry: 5,
		Message: "the open sessions of this API key take all of its share of the router's memory (cache.max_bytes); close" +
			" some, or try again when some have ended"}
	FaultSessionBody = Fault{Status: 400, Kind: "invalid_request_error", Code: "session_malformed",
		Message: "the body must be small and JSON, as {\"model\": \"NAME\"}, or empty"}

	FaultTimeout = Fault{Status: 504, Kind: "upstream_error", Code: "worker_timeout", Cause: WorkerFailed,
		Message: "the worker did not begin its answer in time (header_timeout)"}

	FaultAdapterCall = Fault{Status: 502, Kind: "upstream_error", Code: "adapter_call_failed", Cause: WorkerFailed,
		Message: "not every worker did as it was told; workers has what each has answered"}
)

// BodyFault returns the answer to a body that could not be read, by the error of its Tail.
func BodyFault(err error) Fault {
	switch {
	case errors.Is(err, ErrTooLarge):
		return FaultTooLarge
	case errors.Is(err, ErrSlowBody):
		return FaultSlowBody
	case errors.Is(err, ErrPacked):
		return FaultPacked
	case errors.Is(err, ErrGrows):
		return FaultGrows
	case errors.Is(err, ErrNoDecoder):
		return FaultNoDecoder
	}
	return FaultFraming
}

// Rejection returns the answer to a request that the strategy rejects, with the strategy's text if it gave one.
func Rejection(status int, text string, wait time.Duration) Fault {
	f := FaultRejected
	f.Status = status
	switch {
	case status >= 500:
		f.Kind = "service_unavailable"
	case status == 401:
		f.Kind = "authentication_error"
	case status == 403:
		f.Kind = "permission_error"
	case status != 429:
		f.Kind = "invalid_request_error"
	}
	if text != "" {
		f.Message = text
	}
	if wait > 0 {
		f.Retry = int(wait / time.Second)
	} else if status != 429 && status != 503 {
		f.Retry = 0 // to come again does not help
	}
	return f
}

// FaultUnknownModel is for a model that no pool or worker has.
func FaultUnknownModel(model string) Fault {
	return Fault{Status: 404, Kind: "invalid_request_error", Code: "model_not_found",
		Message: "the model " + strconv.Quote(gate.Cut(model)) + " is served by no worker"}
}

// FaultForbiddenModel has the code that OpenAI's own 403 has.
func FaultForbiddenModel(model string) Fault {
	return Fault{Status: 403, Kind: "invalid_request_error", Code: "model_not_found",
		Message: "this API key may not use the model " + strconv.Quote(gate.Cut(model))}
}

// FaultUnknownResponse has the words of vLLM's own error.
func FaultUnknownResponse(id string) Fault {
	return Fault{Status: 404, Kind: "invalid_request_error", Code: "response_not_found",
		Message: "Response with id '" + gate.Cut(id) + "' not found."}
}

// FaultUnknownJob returns what a key gets that asks for a job or a file which is not its own.
func FaultUnknownJob(id string) Fault {
	return Fault{Status: 404, Kind: "invalid_request_error", Code: "job_not_found",
		Message: "no job or file with id '" + gate.Cut(id) + "' is known for this API key; ask with the key that made" +
			" it, or make it again"}
}

// FaultSession returns why an opened session cannot be used.
func FaultSession(s session.Status) Fault {
	if s == session.Silent {
		return FaultSilent
	}
	why := map[session.Status]string{
		session.Unknown: "there is no such session; open one", session.Expired: "the session has expired; open a new one",
		session.Closed: "the session has been closed; open a new one",
		session.Lost:   "the session ended with its worker; open a new one"}[s]
	return Fault{Status: 400, Kind: "invalid_request_error", Code: "session_" + s.String(), Message: why}
}

// inner is OpenAI's error object. A stream of the responses API has it flat, with a type and a number of its own.
type inner struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

// InJSON returns the error as JSON in the endpoint's Shape.
func (f Fault) InJSON(s Shape) []byte {
	switch s {
	case Anthropic:
		return f.anthropic()
	case AWS:
		return sagemaker.Refusal(f.Status, f.Message).Body()
	}
	b, _ := json.Marshal(map[string]inner{"error": {Message: f.Message, Type: f.Kind, Code: f.Code}})
	return b
}

// anthropicTypes are the names by status (docs.anthropic.com, "Errors").
var anthropicTypes = map[int]string{400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
	404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 503: "overloaded_error",
	504: "timeout_error", 529: "overloaded_error"}

// anthropic returns the error as JSON in Anthropic's shape.
func (f Fault) anthropic() []byte {
	kind := anthropicTypes[f.Status]
	switch {
	case kind != "":
	case f.Status < 500:
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
	}{"error", reason{kind, f.Message}})
	return b
}

// Event returns the error as the last event of a stream; number is its place in a stream of the responses API.
func (f Fault) Event(s Shape, number int) []byte {
	var b []byte
	switch s {
	case Anthropic:
		b = append([]byte("event: error\ndata: "), f.anthropic()...)
	case Responses:
		data, _ := json.Marshal(struct {
			inner
			Number int `json:"sequence_number"`
		}{inner{Message: f.Message, Type: "error", Code: f.Code}, number})
		b = append([]byte("event: error\ndata: "), data...)
	default:
		b = append([]byte("data: "), f.InJSON(OpenAI)...)
	}
	return append(b, "\n\n"...)
}

// Outbound returns the answer in the shape.
func (f Fault) Outbound(s Shape) *Outbound {
	o := &Outbound{Status: f.Status, Body: f.InJSON(s)}
	if s == AWS {
		bad := sagemaker.Refusal(f.Status, f.Message)
		o.Status = bad.Status
		for _, h := range bad.Headers("") {
			o.SetOnce(h[0], h[1])
		}
	} else {
		o.Set("Content-Type", "application/json")
	}
	if f.Retry > 0 {
		o.Set("Retry-After", strconv.Itoa(f.Retry))
	}
	if f.Dropped != "" {
		o.Set(HeaderDropped, f.Dropped)
	}
	if f.Status == FaultWebSocket.Status { // a 426 must name the protocol to be used (RFC 9110, section 15.5.22)
		o.Set("Upgrade", "HTTP/1.1")
		o.Set("Connection", "Upgrade")
	}
	return o
}
