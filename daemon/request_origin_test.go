package daemon

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// TestBrowsersFindOneOrigin asks as browsers do, through the socket: a browser refuses an answer in which a field of
// CORS stands twice, a preflight's too.
func TestBrowsersFindOneOrigin(t *testing.T) {
	t.Parallel()
	const page, stranger = "https://chat.example.com", "https://evil.example.com"
	w := fakeWorker(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Access-Control-Allow-Origin", "https://worker")
		rw.Header().Set("Vary", "Accept-Encoding")
		rw.Write([]byte(completion))
	})
	f := func(conf, origin, want, vary string) {
		t.Helper()
		r := start(t, withServer(settings("roundrobin", w.URL), conf+"\nmax_body_bytes = 2000\nbuffer_body_bytes = 2000"), 1)
		seen := map[string]seen{
			"preflight": r.do("OPTIONS", "/v1/chat/completions", "", "Origin", origin, "Access-Control-Request-Method", "POST",
				"Access-Control-Request-Headers", "authorization,content-type"),
			"preflight of ready": r.do("OPTIONS", "/ready", "", "Origin", origin, "Access-Control-Request-Method", "GET"),
			"answer":             r.do("POST", "/v1/chat/completions", `{"model":"sim"}`, "Origin", origin),
			"404":                r.do("POST", "/v1/chat/completions", `{"model":"nobody's"}`, "Origin", origin),
			"no such path":       r.do("GET", "/nowhere", "", "Origin", origin),
			"413":                r.do("POST", "/v1/completions", strings.Repeat(" ", 3000), "Origin", origin),
			"models":             r.do("GET", "/v1/models", "", "Origin", origin),
			"health":             r.do("GET", "/health", "", "Origin", origin),
			"ready":              r.do("GET", "/ready", "", "origin", origin),
		}
		for name, s := range seen {
			got := s.header.Values("Access-Control-Allow-Origin")
			if want == "" && len(got) != 0 || want != "" && (len(got) != 1 || got[0] != want) {
				t.Errorf("%s, %s, %s: %d allows %q; want %q once", conf, origin, name, s.status, got, want)
			}
			if got := s.header.Values("Vary"); len(got) > 1 || strings.Contains(strings.Join(got, ""), "Origin") != (vary != "") {
				t.Errorf("%s, %s, %s: Vary %q; want one, %q in it", conf, origin, name, got, vary)
			}
			exposed := s.header.Values("Access-Control-Expose-Headers")
			if want != "" && (len(exposed) != 1 || !strings.Contains(exposed[0], "X-Request-Id")) {
				t.Errorf("%s, %s, %s: exposes %q", conf, origin, name, exposed)
			}
		}
		if s := seen["answer"]; s.status != 200 || !strings.Contains(s.header.Get("Vary"), "Accept-Encoding") {
			t.Errorf("the answer: %d, Vary %q; want the worker's Vary kept", s.status, s.header.Get("Vary"))
		}
	}
	f(`cors_origins = ["*"]`, page, "*", "")
	f(``, page, "*", "") // the default
	f(`cors_origins = ["`+page+`"]`, page, page, "Origin")
	f(`cors_origins = ["`+page+`"]`, stranger, "", "Origin")
	f(`cors_origins = []`, page, "", "")
}

// TestPagesMayReadEveryFieldOfOurs: a field that the daemon sets and gate.Exposed lacks cannot be read by a page.
func TestPagesMayReadEveryFieldOfOurs(t *testing.T) {
	ofRequests := []string{"X-Warmpath-Explain", "X-Warmpath-Session-Id", "X-Warmpath-Parent-Session-Id", "X-Warmpath-Priority",
		"X-Warmpath-Weights-Min", "X-Warmpath-Group"}
	field := regexp.MustCompile(`"(X-Warmpath-[A-Za-z-]+)"`)
	found := 0
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		for _, m := range field.FindAllStringSubmatch(string(text), -1) {
			found++
			if name := m[1]; !slices.Contains(ofRequests, name) && !slices.Contains(gate.Exposed, name) {
				t.Errorf("%s: %s stands not in gate.Exposed", file, name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 8 {
		t.Errorf("found %d fields in the sources; want those of explain.go at least", found)
	}
}
