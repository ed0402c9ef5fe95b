package webpage

import (
	"net/http"
	"testing"
)

func TestSends(t *testing.T) {
	f := func(want bool, fields ...string) {
		t.Helper()
		h := http.Header{}
		for i := 0; i < len(fields); i += 2 {
			h.Set(fields[i], fields[i+1])
		}
		if Sends(h) != want {
			t.Errorf("%q: %v; want %v", fields, !want, want)
		}
	}
	f(false)
	f(false, "User-Agent", "python-httpx/0.28.1", "Accept", "*/*")
	f(false, "User-Agent", "Python/3.12 aiohttp/3.11.16")
	f(true, "Origin", "https://evil.example")
	f(true, "Origin", "null")
	f(true, "Sec-Fetch-Site", "cross-site")
	f(true, "Sec-Fetch-Site", "none")
	f(true, "User-Agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", "Host", "evil.example:9400")
}
