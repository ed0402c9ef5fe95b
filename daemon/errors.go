package daemon

import (
	"encoding/json"
	"strconv"
)

// fault is an error that we answer ourselves, in OpenAI's shape. Code is a string: the C# client cannot read numbers.
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
	faultUpstream = fault{502, "upstream_error", "worker_failed", "every worker that was tried failed before it answered", 0}
	faultURL      = fault{400, "invalid_request_error", "invalid_url", "the path has control characters or dot segments", 0}
	faultRequest  = fault{400, "invalid_request_error", "invalid_request", "the request's method or headers cannot be passed on", 0}
	faultInternal = fault{500, "internal_error", "internal_error", "this router failed on the request; its log has the reason", 0}
	faultBroken   = fault{502, "upstream_error", "worker_broke_off", "the worker broke off in the middle of its answer", 0}
	faultTimeout  = fault{504, "upstream_error", "worker_timeout", "the worker did not begin its answer in time (header_timeout)", 0}
)

func faultUnknownModel(model string) fault {
	return fault{404, "invalid_request_error", "model_not_found", "the model " + strconv.Quote(model) + " is served by no worker", 0}
}

// body is the error's JSON.
func (f fault) body() []byte {
	type inner struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	}
	b, _ := json.Marshal(map[string]inner{"error": {Message: f.message, Type: f.kind, Code: f.code}})
	return b
}

// event is the error as the last event of a stream.
func (f fault) event() []byte {
	return append(append([]byte("data: "), f.body()...), "\n\n"...)
}

func (f fault) outbound() *Outbound {
	o := &Outbound{Status: f.status, Body: f.body()}
	o.set("Content-Type", "application/json")
	if f.retry > 0 {
		o.set("Retry-After", strconv.Itoa(f.retry))
	}
	return o
}
