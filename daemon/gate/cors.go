package gate

import (
	"slices"
	"strings"
)

// corsMethods are those that Starlette allows for "*"; a browser asks before it sends any other than GET, HEAD or a plain POST.
var corsMethods = []string{"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"}

// anyOrigin is what every cross-origin answer carries when any page may ask.
var anyOrigin = [][2]string{{"Access-Control-Allow-Origin", "*"}}

// CORS tells browsers whose pages may use the answers. It answers as vLLM's default does (Starlette's CORSMiddleware, every
// method and header, no credentials), with a list of origins instead of any where one is given. The zero value allows no page.
type CORS struct {
	any     bool
	origins []string
}

// NewCORS allows the pages of these origins (https://chat.example.com), or of any if one is "*".
func NewCORS(origins []string) CORS {
	return CORS{any: slices.Contains(origins, "*"), origins: origins}
}

// Preflight answers a browser's question before the request itself: OPTIONS with Origin and Access-Control-Request-Method. get
// returns the value of a request field, or "". All else is not handled: it goes the way of every request. A preflight carries
// no key by design of the browsers, so it is answered before keys are checked.
func (c CORS) Preflight(method string, get func(name string) string) (status int, headers [][2]string, body string, handled bool) {
	if method != "OPTIONS" {
		return 0, nil, "", false
	}
	origin, wanted := get("Origin"), get("Access-Control-Request-Method")
	if origin == "" || wanted == "" {
		return 0, nil, "", false
	}
	var refused []string
	switch {
	case c.any:
		headers = append(headers, anyOrigin...)
	case c.allows(origin):
		headers = append(headers, [2]string{"Vary", "Origin"}, [2]string{"Access-Control-Allow-Origin", origin})
	default:
		headers = append(headers, [2]string{"Vary", "Origin"})
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

// Headers returns what to add to the answer of a request with that Origin field; "" is a request without one, which gets
// nothing. The slice is shared: do not change it.
func (c CORS) Headers(origin string) [][2]string {
	switch {
	case origin == "":
		return nil
	case c.any:
		return anyOrigin
	case c.allows(origin):
		return [][2]string{{"Access-Control-Allow-Origin", origin}, {"Vary", "Origin"}}
	}
	return nil
}

// allows compares as browsers do: an origin is sent in lower case, and equal byte by byte or not at all.
func (c CORS) allows(origin string) bool { return slices.Contains(c.origins, origin) }

// IsCORS tells whether a field of a worker's answer is CORS's, to be left out in favour of Headers.
func IsCORS(name string) bool {
	const prefix = "access-control-"
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
}
