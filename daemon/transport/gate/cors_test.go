package gate

import (
	"slices"
	"strings"
	"testing"
)

const listed = "https://chat.example.com"

// fields makes the get of a request.
func fields(list ...string) func(string) string {
	m := make(map[string]string)
	for i := 0; i < len(list); i += 2 {
		m[list[i]] = list[i+1]
	}
	return func(name string) string { return m[name] }
}

// The answers are those of Starlette's CORSMiddleware with allow_methods and allow_headers at "*", as vLLM sets it
// up.
func TestPreflight(t *testing.T) {
	const methods = "Access-Control-Allow-Methods: DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"
	const age, text = "Access-Control-Max-Age: 600", "Content-Type: text/plain; charset=utf-8"
	f := func(c CORS, request []string, status int, body string, headers ...string) {
		t.Helper()
		gotStatus, gotHeaders, gotBody, handled := c.Preflight("OPTIONS", fields(request...))
		got := lines(gotHeaders)
		slices.Sort(got)
		slices.Sort(headers)
		if !handled || gotStatus != status || gotBody != body || !slices.Equal(got, headers) {
			t.Errorf("%q: got %d %q %q; want %d %q %q", request, gotStatus, gotBody, got, status, body, headers)
		}
	}
	ask := func(origin, method string, more ...string) []string {
		return append([]string{"Origin", origin, "Access-Control-Request-Method", method}, more...)
	}
	any, some, none := NewCORS([]string{"*"}), NewCORS([]string{"http://localhost:3000", listed}), NewCORS(nil)

	f(any, ask("https://x.example", "POST"), 200, "OK", methods, age, text)
	f(any, ask("null", "POST", "Access-Control-Request-Headers", "authorization,content-type"), 200, "OK",
		"Access-Control-Allow-Headers: authorization,content-type", methods, age, text)
	f(any, ask("https://x.example", "POST", "Access-Control-Request-Headers", "a\r\nSet-Cookie: x"), 200, "OK",
		methods, age, text)
	f(any, ask("https://x.example", "TRACE"), 400, "Disallowed CORS method", methods, age, text)

	f(some, ask(listed, "GET"), 200, "OK", methods, age, text)
	f(some, ask("https://x.example", "GET"), 400, "Disallowed CORS origin", methods, age, text)
	f(some, ask(listed+".evil.example", "GET"), 400, "Disallowed CORS origin", methods, age, text)
	f(some, ask("null", "TRACE"), 400, "Disallowed CORS origin, method", methods, age, text)
	f(none, ask(listed, "GET"), 400, "Disallowed CORS origin", methods, age, text)
	f(CORS{}, ask(listed, "GET"), 400, "Disallowed CORS origin", methods, age, text)
}

func TestWhatIsNoPreflight(t *testing.T) {
	f := func(method string, request ...string) {
		t.Helper()
		if status, headers, body, handled := NewCORS([]string{"*"}).Preflight(method, fields(request...)); handled || status != 0 || headers != nil || body != "" {
			t.Errorf("%s %q: got %d %q %q %v", method, request, status, headers, body, handled)
		}
	}
	f("POST", "Origin", listed, "Access-Control-Request-Method", "POST")
	f("OPTIONS", "Origin", listed)
	f("OPTIONS", "Access-Control-Request-Method", "POST")
	f("OPTIONS")
}

func TestHeaders(t *testing.T) {
	f := func(origins []string, origin string, want ...string) {
		t.Helper()
		if got := lines(NewCORS(origins).Headers(origin)); !slices.Equal(got, want) {
			t.Errorf("%q, Origin %q: got %q; want %q", origins, origin, got, want)
		}
	}
	exposed := "Access-Control-Expose-Headers: " + strings.Join(Exposed, ", ")
	f([]string{"*"}, listed, "Access-Control-Allow-Origin: *", exposed)
	f([]string{listed, "*"}, listed, "Access-Control-Allow-Origin: *", exposed)
	f([]string{"*"}, "")
	f([]string{listed}, listed, "Access-Control-Allow-Origin: "+listed, "Vary: Origin", exposed)
	f([]string{listed}, "https://CHAT.example.com", "Vary: Origin")
	f([]string{listed}, "", "Vary: Origin")
	f(nil, listed)
}

func lines(headers [][2]string) []string {
	var list []string
	for _, h := range headers {
		list = append(list, h[0]+": "+h[1])
	}
	return list
}

func TestIsCORS(t *testing.T) {
	f := func(name string, want bool) {
		t.Helper()
		if got := IsCORS(name); got != want {
			t.Errorf("IsCORS(%q) = %v", name, got)
		}
	}
	f("access-control-allow-origin", true)
	f("Access-Control-Expose-Headers", true)
	f("ACCESS-CONTROL-MAX-AGE", true)
	f("Access-Control", false)
	f("X-Access-Control-Allow-Origin", false)
	f("Vary", false)
	f("", false)
}
