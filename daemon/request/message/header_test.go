package message

import (
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

func TestPerHop(t *testing.T) {
	for _, name := range []string{"TE", "Host", "Date", "Expect", "Server", "Trailer", "Upgrade", "Connection", "Keep-Alive",
		"Content-Length", "Proxy-Connection", "Transfer-Encoding", "Proxy-Authenticate", "Proxy-Authorization"} {
		for _, spelled := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			if !perHop(spelled) {
				t.Errorf("%s goes on", spelled)
			}
		}
	}
	for _, name := range []string{"", "Accept", "Content-Type", "Authorization", "Cookie", "X-Api-Key", "OpenAI-Beta", "Traceparent",
		"Connections", "Hosts", "TEX", "X-Upgrade"} {
		if perHop(name) {
			t.Errorf("%s does not go on", name)
		}
	}
}

// strict is a door that strips a field by its value and adds one.
type strict struct{}

func (strict) Target(*epoch.Pool) string      { return "/invocations" }
func (strict) Strips(name, value string) bool { return name == "Accept" && value == "secret" }
func (strict) EndsStreams() bool              { return true }
func (strict) Header(out []upstream.Field, _ *epoch.Pool, _ session.Binding) []upstream.Field {
	return out
}

// TestWorkerHeader: a worker gets the client's fields, except those for one connection or for the router, and the
// router's own fields about the request.
func TestWorkerHeader(t *testing.T) {
	const ours = "Accept-Encoding: identity\nX-Request-Id: id-1\nX-Forwarded-For: 10.0.0.1\nX-Forwarded-Proto: http\n" +
		"X-Forwarded-Host: router\n"
	type conf struct {
		keyed  bool // the router asks for the client's key
		key    string
		cookie string
		door   Protocol
		tls    bool
	}
	f := func(c conf, want string, header ...string) {
		t.Helper()
		in := inbound("POST", "/v1/chat/completions", "", header...)
		in.ID, in.Remote, in.Host, in.TLS = "id-1", "10.0.0.1", "router", c.tls
		in.Epoch = &epoch.Epoch{Sessions: epoch.Naming{Cookie: c.cookie}}
		if c.keyed {
			in.Caller = callerOf(t, "*")
		}
		if got := lines(WorkerHeader(nil, in, in.ID, &epoch.Pool{Key: c.key}, c.door)); got != want {
			t.Errorf("%q, %+v:\n%s\nwant:\n%s", header, c, got, want)
		}
	}
	f(conf{}, ours)
	f(conf{}, "Content-Type: application/json\ntraceparent: 00-1\n"+ours, "Content-Type", "application/json", "traceparent", "00-1")
	f(conf{}, "anthropic-beta: a-1,b-2\nanthropic-version: 2023-06-01\nOpenAI-Beta: responses=v1\n"+ours,
		"anthropic-beta", "a-1,b-2", "anthropic-version", "2023-06-01", "OpenAI-Beta", "responses=v1")
	f(conf{}, ours, "Connection", "keep-alive, close", "Keep-Alive", "1", "Transfer-Encoding", "chunked", "Host", "evil",
		"Expect", "100-continue")
	f(conf{}, "B: 2\n"+ours, "Connection", "close, A ,, x-c", "a", "1", "B", "2", "X-C", "3") // named by Connection
	f(conf{}, ours, "Accept-Encoding", "gzip", "X-Request-Id", "theirs", "x-forwarded-proto", "gopher")
	f(conf{}, strings.Replace(ours, "Host: router", "Host: site", 1), "X-Forwarded-Host", "site")   // of a proxy before us, once
	for _, name := range []string{"Explain", "A", "Ab", "Pool", "Reason", "Worker", "Some-Other"} { // of every length
		f(conf{}, ours, "X-Warmpath-"+name, "1")
	}
	f(conf{}, "X-Warmpath: 1\n"+ours, "X-Warmpath", "1")
	f(conf{}, strings.Replace(ours, "For: 10.0.0.1", "For: 1.1.1.1, 10.0.0.1", 1), "X-Forwarded-For", "1.1.1.1")
	for _, name := range []string{"x-prefiller-host-port", "X-Prefiller-Url", "x-prefill-instance-id", "x-prefill-dp-rank",
		"x-encoder-hosts-ports", "x-kv-cache-source-host-port", "x-data-parallel-host-port", "X-data-parallel-rank",
		"x-llm-d-prefiller-host-port", "X-LLM-D-Encoder-Hosts-Ports", "x-llm-d-kv-cache-source-host-port", "x-dp-rank",
		"x-worker-instance-id", "x-decoder-host-port", "x-dynamo-worker-instance-id", "x-gateway-destination-endpoint",
		"X-SMG-Target-Worker", "x-routing-proxy-x"} {
		f(conf{}, ours, name, "evil.example:80")
	}
	f(conf{}, "X-Llm-D-Slo-Ttft-Ms: 9\nX-Stainless-Arch: a\nx-: b\nX-Kv: c\n"+ours,
		"X-Llm-D-Slo-Ttft-Ms", "9", "X-Stainless-Arch", "a", "x-", "b", "X-Kv", "c")
	f(conf{tls: true}, strings.Replace(ours, "Proto: http", "Proto: https", 1))

	// Whose key is whose.
	keys := []string{"Authorization", "Bearer a", "X-Api-Key", "b"}
	f(conf{}, "Authorization: Bearer a\nX-Api-Key: b\n"+ours, keys...)
	f(conf{keyed: true}, ours, keys...)
	f(conf{key: "w"}, "X-Api-Key: b\n"+ours+"Authorization: Bearer w\n", keys...)
	f(conf{keyed: true, key: "w"}, ours+"Authorization: Bearer w\n", keys...)

	// Cookies.
	f(conf{}, "Cookie: a=1; wp=2\n"+ours, "Cookie", "a=1; wp=2")
	f(conf{cookie: "wp"}, ours+"Cookie: a=1; b=3\n", "Cookie", "a=1; wp=2;b=3")
	f(conf{cookie: "wp"}, ours, "Cookie", "wp=2")

	f(conf{door: strict{}}, "Accept: other\n"+ours, "Accept", "secret", "Accept", "other")
}

// TestClientHeader: a client gets the worker's fields, except those for one connection and those that the router sets.
func TestClientHeader(t *testing.T) {
	got := lines(ClientHeader(upstream.Header{
		{Name: "Content-Type", Value: "text/plain"}, {Name: "Content-Length", Value: "3"}, {Name: "Server", Value: "uvicorn"},
		{Name: "Connection", Value: "x-hop"}, {Name: "X-Hop", Value: "1"}, {Name: "X-Request-Id", Value: "its"},
		{Name: "request-id", Value: "its"},
		{Name: "X-Warmpath-Worker", Value: "lie"}, {Name: "Access-Control-Allow-Origin", Value: "*"},
		{Name: "Retry-After", Value: "3"}, {Name: "Set-Cookie", Value: "a=1"}, {Name: "content-type"},
	}))
	want := "Content-Type: text/plain\nRetry-After: 3\nSet-Cookie: a=1\n"
	if got != want {
		t.Errorf("%s\nwant:\n%s", got, want)
	}
}

// TestStayHere: a redirect to the worker's own address becomes one to the same path here, and others stay.
func TestStayHere(t *testing.T) {
	f := func(location, want string) {
		t.Helper()
		header := []upstream.Field{{Name: "a", Value: location}, {Name: "location", Value: location}}
		StayHere(header, "http://10.0.0.1:8000")
		if header[1].Value != want || header[0].Value != location {
			t.Errorf("%q: %v; want %q", location, header, want)
		}
	}
	f("http://10.0.0.1:8000/v1/chat/completions", "/v1/chat/completions")
	f("https://10.0.0.1:8000/v1/a%2Fb?c=d#e", "/v1/a%2Fb?c=d#e") // uvicorn takes the scheme of X-Forwarded-Proto
	f("http://10.0.0.1:8000", "/")
	for _, other := range []string{"", "/v1/models", "../x", "http://10.0.0.1/v1", "http://10.0.0.1:80001/", "https://elsewhere/", "http://a b/%zz"} {
		f(other, other)
	}
}

// TestStayHereBelowAPath: the path of a worker's URL stands neither in a redirect nor in a cookie.
func TestStayHereBelowAPath(t *testing.T) {
	f := func(name, value, want string) {
		t.Helper()
		header := []upstream.Field{{Name: name, Value: value}}
		StayHere(header, "http://10.0.0.1/models/one")
		if header[0].Value != want {
			t.Errorf("%s: %s: %q; want %q", name, value, header[0].Value, want)
		}
	}
	f("Location", "http://10.0.0.1/models/one/v1/a%2Fb?c=d", "/v1/a%2Fb?c=d")
	f("Location", "/models/one/v1/models", "/v1/models")
	f("Location", "http://10.0.0.1/models/one", "/")
	f("Location", "/models/oneself", "/models/oneself")
	f("Location", "http://10.0.0.1/login", "http://10.0.0.1/login")
	f("Location", "https://elsewhere/models/one/v1", "https://elsewhere/models/one/v1")
	f("Set-Cookie", "a=/models/one; Path=/models/one; HttpOnly", "a=/models/one; Path=/; HttpOnly")
	f("Set-Cookie", "a=1; path=/models/one/v1", "a=1; Path=/v1")
	f("Set-Cookie", "a=1; Path=/", "a=1; Path=/")
	f("Set-Cookie", "a=1; Path=/models/oneself", "a=1; Path=/models/oneself")
}

// TestCookieOf: an ill-formed cookie of another application hides no session.
func TestCookieOf(t *testing.T) {
	f := func(want string, cookies ...string) {
		t.Helper()
		var header []upstream.Field
		for _, c := range cookies {
			header = append(header, upstream.Field{Name: "cookie", Value: c})
		}
		if got := CookieOf(header, "wp"); got != want {
			t.Errorf("%q: %q; want %q", cookies, got, want)
		}
	}
	f("")
	f("", "")
	f("", "wp")
	f("", "wpx=1; xwp=2; a=wp=3")
	f("1", "wp=1")
	f("1", `a=1;wp="1"; b`)
	f("1", "wp=1; wp=2") // the first counts, as with net/http
	f("a=b", "wp=a=b")
	f("1", `prefs={"a": "b, c"}; wp=1`)
	f("1", "no cookie at all", "=; ;wp=1")
	f("1", "a=1", "wp=1") // HTTP/2 sends several lines
}
