package gate

import (
	"slices"
	"strings"
)

// corsMethods are those that Starlette allows for "*". A browser asks before it sends any request except GET, HEAD or a
// plain POST.
var corsMethods = []string{"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"}

// Exposed are the fields of an answer that a page may read, in addition to the few that browsers always show: the
// request's id, when to try again, why the request went where it went, and the fields of the session protocols.
var Exposed = []string{"X-Request-Id", "Request-Id", "Retry-After", "Location",
	"X-Warmpath-Pool", "X-Warmpath-Strategy", "X-Warmpath-Reason", "X-Warmpath-Prompt", "X-Warmpath-Candidates",
	"X-Warmpath-Filters", "X-Warmpath-Model", "X-Warmpath-Fallback", "X-Warmpath-Prefiller",
	"X-Warmpath-Worker", "X-Warmpath-Matched-Blocks", "X-Warmpath-Matched-Tokens", "X-Warmpath-Retries",
	"X-Warmpath-Decision", "X-Warmpath-Weights",
	"X-Warmpath-Dropped", "X-Warmpath-Ignored", "X-Should-Retry",
	"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests",
	"X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens",
	"Anthropic-Ratelimit-Requests-Limit", "Anthropic-Ratelimit-Requests-Remaining",
	"Anthropic-Ratelimit-Requests-Reset", "Anthropic-Ratelimit-Tokens-Limit", "Anthropic-Ratelimit-Tokens-Remaining",
	"Anthropic-Ratelimit-Tokens-Reset",
	"X-Amzn-RequestId", "X-Amzn-SageMaker-New-Session-Id", "X-Amzn-SageMaker-Closed-Session-Id",
	"X-Amzn-SageMaker-Content-Type",
	"X-Amzn-SageMaker-Custom-Attributes", "X-Amzn-Invoked-Production-Variant"}

// These fields do not depend on the request.
var (
	expose = [2]string{"Access-Control-Expose-Headers", strings.Join(Exposed, ", ")}
	vary   = [2]string{"Vary", "Origin"}

	// anyOrigin stands in every cross-origin answer when any page may ask, noOrigin when some page may, but not this
	// one.
	anyOrigin = [][2]string{{"Access-Control-Allow-Origin", "*"}, expose}
	noOrigin  = [][2]string{vary}
)

// CORS sets the fields by which browsers let pages use the answers. It answers as vLLM's default does (Starlette's
// CORSMiddleware, every method and header, no credentials), with a list of origins instead of any where one is given.
// The zero value allows no page.
type CORS struct {
	any     bool
	origins []string
}

// NewCORS allows the pages of these origins (https://chat.example.com), or of any if one is "*".
func NewCORS(origins []string) CORS {
	return CORS{any: slices.Contains(origins, "*"), origins: origins}
}

// Preflight answers a browser's question before the request itself: OPTIONS with Origin and
// Access-Control-Request-Method. get returns the value of a request field, or "". All else is not handled: it goes the
// way of every request. A preflight carries no key by design of the browsers, so it is answered before keys are
// checked. headers are those that only a preflight has: it also gets those of Headers, as every answer does, for a
// browser refuses an answer that has one of them twice.
func (c CORS) Preflight(method string, get func(name string) string) (
	status int, headers [][2]string, body string, handled bool) {
	if method != "OPTIONS" {
		return 0, nil, "", false
	}
	origin, wanted := get("Origin"), get("Access-Control-Request-Method")
	if origin == "" || wanted == "" {
		return 0, nil, "", false
	}
	var refused []string
	if !c.any && !c.allows(origin) {
		refused = append(refused, "origin")
	}
	if !slices.Contains(corsMethods, wanted) {
		refused = append(refused, "method")
	}
	headers = append(headers,
		[2]string{"Access-Control-Allow-Methods", strings.Join(corsMethods, ", ")},
		[2]string{"Access-Control-Max-Age", "600"}, // Starlette's default, in seconds
		[2]string{"Content-Type", "text/plain; charset=utf-8"})
	if asked := get("Access-Control-Request-Headers"); asked != "" && printable(asked) {
		headers = append(headers, [2]string{"Access-Control-Allow-Headers", asked})
	}
	if len(refused) > 0 {
		return 400, headers, "Disallowed CORS " + strings.Join(refused, ", "), true
	}
	return 200, headers, "OK", true
}

// Headers returns what to add to the answer of a request with that Origin field; "" is a request without one. Where
// pages of some origins may ask, the answer depends on the field, and names it in Vary for caches, whatever it holds.
// The slice is shared: do not change it.
func (c CORS) Headers(origin string) [][2]string {
	switch {
	case c.any && origin != "":
		return anyOrigin
	case c.any, len(c.origins) == 0:
		return nil
	case c.allows(origin):
		return [][2]string{{"Access-Control-Allow-Origin", origin}, vary, expose}
	}
	return noOrigin
}

// allows compares as browsers do: an origin is sent in lower case, and equal byte by byte or not at all.
func (c CORS) allows(origin string) bool { return slices.Contains(c.origins, origin) }

// IsCORS reports whether a field of a worker's answer is CORS's, to be left out in favour of Headers.
func IsCORS(name string) bool {
	const prefix = "access-control-"
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
}
