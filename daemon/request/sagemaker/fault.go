package sagemaker

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is an answer that SDKs make a typed exception of (the service model's errors, 2026-11).
type Error struct {
	Status             int
	Type               string // the exception's name
	Message            string
	OriginalStatusCode int    // the model's; ModelError only, 0 if it gave no answer
	OriginalMessage    string // the same
}

// maxMessage is the service model's bound for messages, in characters.
const maxMessage = 2048

// ValidationError returns the answer to a mistake that the caller can correct.
func ValidationError(message string) *Error {
	return &Error{Status: http.StatusBadRequest, Type: "ValidationError", Message: clean(message)}
}

// ModelError returns the error for the model's answer; status 0 = the model did not answer. SDKs do not repeat it.
func ModelError(status int, message string) *Error {
	message = clean(message)
	who := "server"
	if status >= 400 && status < 500 {
		who = "client"
	}
	text := "Received " + who + " error (" + strconv.Itoa(status) + `) from model with message "` + message + `".`
	return &Error{
		Status:             http.StatusFailedDependency,
		Type:               "ModelError",
		Message:            clean(text),
		OriginalStatusCode: status,
		OriginalMessage:    message,
	}
}

// ModelNotReady returns a ModelNotReadyException: wait and try again. Some SDKs repeat it by themselves.
func ModelNotReady(message string) *Error {
	return &Error{Status: http.StatusTooManyRequests, Type: "ModelNotReadyException", Message: clean(message)}
}

// InternalFailure returns the answer to a fault of the router.
func InternalFailure(message string) *Error {
	return &Error{Status: http.StatusInternalServerError, Type: "InternalFailure", Message: clean(message)}
}

// ServiceUnavailable returns the answer after which all SDKs repeat the request at once: no worker has started on it.
func ServiceUnavailable(message string) *Error {
	return &Error{Status: http.StatusServiceUnavailable, Type: "ServiceUnavailable", Message: clean(message)}
}

// Translate returns a client's answer for a worker's that is not 2xx, whatever its status: ModelError. body may be
// cut.
func Translate(status int, body []byte) *Error { return ModelError(status, message(body)) }

// Refusal returns a client's answer for a fault of the router itself that has this HTTP status on other paths.
func Refusal(status int, message string) *Error {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden: // AWS has no 401
		return &Error{Status: http.StatusForbidden, Type: "AccessDeniedException", Message: clean(message)}
	case http.StatusRequestTimeout:
		return &Error{Status: status, Type: "RequestTimeoutException", Message: clean(message)}
	case http.StatusRequestEntityTooLarge, http.StatusRequestHeaderFieldsTooLarge:
		e := ValidationError(message)
		e.Status = status
		return e
	case http.StatusTooManyRequests:
		return ModelNotReady(message)
	case http.StatusServiceUnavailable:
		return ServiceUnavailable(message)
	case http.StatusBadGateway, http.StatusGatewayTimeout: // a model that was asked and gave no answer
		return ModelError(0, message)
	}
	if status < 500 {
		return ValidationError(message)
	}
	return InternalFailure(message)
}

// Error returns the text for logs.
func (e *Error) Error() string { return "sagemaker: " + e.Type + ": " + e.Message }

// Body returns the answer's JSON.
func (e *Error) Body() []byte {
	type plain struct {
		Message string `json:"Message"`
	}
	if e.Type != "ModelError" {
		b, _ := json.Marshal(plain{e.Message})
		return b
	}
	b, _ := json.Marshal(struct {
		plain
		OriginalStatusCode int    `json:"OriginalStatusCode"`
		OriginalMessage    string `json:"OriginalMessage"`
	}{plain{e.Message}, e.OriginalStatusCode, e.OriginalMessage})
	return b
}

// Headers returns the answer's fields. request is the request's id.
func (e *Error) Headers(request string) [][2]string {
	return [][2]string{{"Content-Type", "application/json"}, {"x-amzn-ErrorType", e.Type}, {"x-amzn-RequestId", request}}
}

// message returns the text of an error of vLLM's kinds, {"error":{"message"}}, {"message"} or {"detail"}; anything
// else is the text itself.
func message(body []byte) string {
	var m struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &m) == nil {
		var inner struct {
			Message string `json:"message"`
		}
		var text string
		switch {
		case json.Unmarshal(m.Error, &inner) == nil && inner.Message != "":
			return inner.Message
		case json.Unmarshal(m.Error, &text) == nil && text != "":
			return text
		case m.Message != "":
			return m.Message
		case json.Unmarshal(m.Detail, &text) == nil && text != "":
			return text
		}
	}
	return string(body[:min(len(body), 4*maxMessage)])
}

// clean bounds a message, and makes it valid UTF-8.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxMessage || utf8.RuneCountInString(s) <= maxMessage {
		return s
	}
	n := 0
	for i := range s {
		n++
		if n == maxMessage {
			return s[:i] + "…"
		}
	}
	return s
}
