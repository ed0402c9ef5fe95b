package vllmsim

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// apiError is vLLM's error body: code is a number, type names the class or, for body validation, "Bad Request".
type apiError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    int     `json:"code"`
}

func newError(code int, kind, param, message string) *apiError {
	e := &apiError{Message: message, Type: kind, Code: code}
	if param != "" {
		e.Param = &param
	}
	return e
}

// badRequest returns a refusal by the engine; vLLM ends its messages with the parameter.
func badRequest(param, message string) *apiError {
	if param != "" {
		message += " (parameter=" + param + ")"
	}
	return newError(http.StatusBadRequest, "BadRequestError", param, message)
}

// badValue is badRequest with the value that was refused.
func badValue(param, value, message string) *apiError {
	message += " (parameter=" + param + ", value=" + value + ")"
	return newError(http.StatusBadRequest, "BadRequestError", param, message)
}

// invalid returns a refusal by the body's validation.
func invalid(kind, loc, msg, input string) *apiError {
	text := "1 validation error:\n  {'type': '" + kind + "', 'loc': '" + loc + "', 'msg': '" + msg +
		"', 'input': " + input + "}"
	return newError(http.StatusBadRequest, "Bad Request", loc, text)
}

// missing returns the refusal of a body without a required field.
func missing(loc string) *apiError { return invalid("missing", loc, "Field required", "'<dict>'") }

func invalidJSON(at int64, err error) *apiError {
	loc := "body." + strconv.FormatInt(at, 10)
	text := "1 validation error:\n  {'type': 'json_invalid', 'loc': '" + loc +
		"', 'msg': 'JSON decode error', 'input': '<dict of 0 items>', 'ctx': {'error': '" + err.Error() + "'}}"
	return newError(http.StatusBadRequest, "Bad Request", loc, text)
}

func unknownModel(name, served string) *apiError {
	return newError(http.StatusNotFound, "NotFoundError", "model",
		"The model `"+name+"` does not exist. Valid aliases: "+served+".")
}

// engineDead returns what vLLM answers when its engine has crashed under a request.
func engineDead() *apiError {
	return newError(http.StatusInternalServerError, "InternalServerError", "",
		"EngineCore encountered an issue. See stack trace (above) for the root cause.")
}

// appendTo appends the error as a body.
func (e *apiError) appendTo(b []byte) []byte {
	raw, _ := json.Marshal(struct {
		Error *apiError `json:"error"`
	}{e}) // strings and a number
	return append(b, raw...)
}

// appendMessages appends the error as a body of /v1/messages.
func (e *apiError) appendMessages(b []byte) []byte {
	b = appendQuoted(append(b, `{"type":"error","error":{"type":`...), e.Type)
	return append(appendQuoted(append(b, `,"message":`...), e.Message), "}}"...)
}

// refuser writes an error in the shape of an endpoint.
type refuser func(http.ResponseWriter, *apiError)

func writeError(w http.ResponseWriter, e *apiError) { writeBody(w, e.Code, e.appendTo(nil)) }

func writeMessagesError(w http.ResponseWriter, e *apiError) {
	writeBody(w, e.Code, e.appendMessages(nil))
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: vllmsim: " + err.Error())
	}
	writeBody(w, status, b)
}

func writeBody(w http.ResponseWriter, status int, b []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	w.Write(b)
}

// writeDetail writes Starlette's own error, for unknown paths and methods.
func writeDetail(w http.ResponseWriter, status int) {
	writeBody(w, status, []byte(`{"detail":"`+http.StatusText(status)+`"}`))
}
