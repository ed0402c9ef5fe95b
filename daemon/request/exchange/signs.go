package exchange

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/prompt"
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

// formless reports whether a success that begins with this text is no answer to the request, such as {} or nothing.
// whole: this is all of it. A container behind SageMaker's door may answer in any form, and so may what is no text.
func (b *body) formless(text []byte, whole bool) bool {
	if b.reply == nil || b.events || !b.r.Understood() || !b.reply.Formless(text, whole) {
		return false
	}
	h := b.a.resp.Header
	kind := h.Get("Content-Type")
	isText := kind == "" || strings.Contains(kind, "json") || strings.HasPrefix(kind, "text/") || whole &&
		len(text) == 0
	return isText && !message.Coded(h) && prompt.KindOf(http.MethodPost, b.r.Target()) != prompt.Invocations
}

// errFormless is the outcome's error of a success that is no answer.
const errFormless = "answers with something that is no answer of an API"

// classOf returns the class of a request by which its worker's refusals are kept apart: the kind of its body, and what
// has no kind by its method and the first two segments of its path. Each is apart for some models. What has a kind
// shares no class with another kind, nor with a path that a client makes up.
func classOf(k prompt.Kind, method, path, model string) uint8 {
	const models = 8
	const kinds = models * int(prompt.Kinds)
	const others = uint8(judge.Classes-kinds) / 2
	if k != prompt.Other {
		return uint8(models*int(k) + int(hashOf(model)%models))
	}
	end, slashes := 0, 0
	for ; end < len(path) && slashes < 3; end++ {
		if path[end] == '/' {
			slashes++
		}
	}
	class := uint8(kinds) + uint8(hashOf(method, path[:end], model)%uint32(others))
	if method != http.MethodPost { // a client that looks for what there is
		class += others
	}
	return class
}

// hashOf returns the hash FNV-1a of some texts.
func hashOf(parts ...string) uint32 {
	hash := uint32(2166136261)
	for _, part := range parts {
		for i := range len(part) {
			hash = (hash ^ uint32(part[i])) * 16777619
		}
	}
	return hash
}
