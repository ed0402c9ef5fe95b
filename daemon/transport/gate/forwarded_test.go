package gate

import (
	"strings"
	"testing"
)

func TestForwarded(t *testing.T) {
	f := func(request []string, remote, wantFor, wantProto, wantHost string) {
		t.Helper()
		xff, proto, host := Forwarded(fields(request...), remote, "http", "router:8080")
		if xff != wantFor || proto != wantProto || host != wantHost {
			t.Errorf("%q from %s: got %q, %q, %q; want %q, %q, %q", request, remote, xff, proto, host, wantFor, wantProto, wantHost)
		}
	}
	f(nil, "10.0.0.7:5555", "10.0.0.7", "http", "router:8080")
	f(nil, "10.0.0.7", "10.0.0.7", "http", "router:8080")
	f(nil, "[2001:db8::1]:5555", "2001:db8::1", "http", "router:8080")
	f(nil, "2001:db8::1", "2001:db8::1", "http", "router:8080")
	f(nil, "[fe80::1%eth0]:5555", "fe80::1", "http", "router:8080")

	// A proxy in front ended TLS; what it saw stays, and it is appended.
	f([]string{"X-Forwarded-For", "192.0.2.1", "X-Forwarded-Proto", "HTTPS", "X-Forwarded-Host", "api.example.com:443"},
		"10.0.0.7:1", "192.0.2.1, 10.0.0.7", "https", "api.example.com:443")
	f([]string{"X-Forwarded-For", "192.0.2.1, 192.0.2.2", "X-Forwarded-Host", "[2001:db8::1]:443"},
		"10.0.0.7:1", "192.0.2.1, 192.0.2.2, 10.0.0.7", "http", "[2001:db8::1]:443")

	// The last entry is ours whatever a client claims; what is malformed goes.
	f([]string{"X-Forwarded-For", "127.0.0.1"}, "10.0.0.7:1", "127.0.0.1, 10.0.0.7", "http", "router:8080")
	f([]string{"X-Forwarded-For", "1.2.3.4\r\nX-Evil: 1"}, "10.0.0.7:1", "10.0.0.7", "http", "router:8080")
	f([]string{"X-Forwarded-Proto", "https, http"}, "10.0.0.7:1", "10.0.0.7", "http", "router:8080")
	f([]string{"X-Forwarded-Proto", "javascript"}, "10.0.0.7:1", "10.0.0.7", "http", "router:8080")
	f([]string{"X-Forwarded-Host", "evil.example/path?<script>"}, "10.0.0.7:1", "10.0.0.7", "http", "router:8080")
	f([]string{"X-Forwarded-Host", strings.Repeat("a", 256)}, "10.0.0.7:1", "10.0.0.7", "http", "router:8080")
}

func TestRequestID(t *testing.T) {
	f := func(given string, kept bool) {
		t.Helper()
		got := RequestID(given)
		if kept && got != given {
			t.Errorf("%q became %q", given, got)
		}
		if !kept && (got == given || len(got) != 32 || !only(got, "0123456789abcdef")) {
			t.Errorf("%q became %q; want 32 hex digits", given, got)
		}
	}
	f("a", true)
	f("6f1c2a34-1b2c-4d5e-8f90-123456789abc", true)
	f("trace:1.span_2-x", true)
	f(strings.Repeat("x", 128), true)
	f("", false)
	f(strings.Repeat("x", 129), false)
	f("a b", false)
	f("a\r\nSet-Cookie: x", false)
	f("a\"b", false)
	f("a/../b", false)
	f("\u00e9", false)
	f("a\x00", false)
	if first, second := RequestID(""), RequestID(""); first == second {
		t.Error("two made ids are equal")
	}
}
