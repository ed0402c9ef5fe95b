package attempt

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// This file reads from an answer what it shows of its worker.

// dyingWords are what a vLLM on its way out answers with 500 to every prompt: its tokenizer is closed before its port
// (0.32), or its engine is dead.
var dyingWords = []struct{ text, err string }{
	{"cannot schedule new futures after", "is shutting down"},
	{"EngineCore encountered an issue", errEngineDead},
}

const errEngineDead = "its engine is dead"

// signOf returns what the head of an answer shows against its worker, and its text if it came whole: Answered if
// nothing.
func signOf(r *admission.Request, resp *upstream.Response, text []byte) judge.Outcome {
	switch status := resp.Status; status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusRequestTimeout,
		http.StatusTooEarly, 529:
		return judge.Outcome{Kind: judge.Busy, Err: "HTTP " + strconv.Itoa(status)}
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusUnprocessableEntity:
		return judge.Outcome{Kind: judge.Denied, Err: "HTTP " + strconv.Itoa(status)}
	case http.StatusInternalServerError:
		for _, w := range dyingWords {
			// Words that stand in the request may be the client's own.
			if bytes.Contains(text, []byte(w.text)) && !bytes.Contains(r.In.Body, []byte(w.text)) {
				return judge.Outcome{Kind: judge.Dying, Err: w.err}
			}
		}
		return judge.Outcome{Kind: judge.Failed, Err: errText500}
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return judge.Outcome{Kind: judge.Failed, Err: errText500}
	}
	switch {
	case !r.Understood() || resp.Status >= 400:
	case resp.Status >= 300:
		return judge.Outcome{Kind: judge.Denied, Err: "answers with a redirect"}
	case isPage(resp.Header.Get("Content-Type")):
		return judge.Outcome{Kind: judge.Denied, Err: "answers with a page of HTML"}
	}
	return judge.Outcome{Kind: judge.Answered, Rejected: resp.Status >= 400}
}

const errText500 = "HTTP status of 500 or more"

// isPage reports whether a Content-Type is that of a page for people, as a login or a proxy's error has it.
func isPage(kind string) bool {
	const page = "text/html"
	return len(kind) >= len(page) && strings.EqualFold(kind[:len(page)], page)
}
