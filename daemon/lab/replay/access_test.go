package replay

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/certtest"
)

// A daemon with keys, and a certificate that no authority of the system signed, is replayed against with the files of
// both. Without one of them the error says which flag to give.
func TestReplayWithKeyAndAuthority(t *testing.T) {
	dir := t.TempDir()
	pair, err := certtest.Write(dir, "srv", "localhost")
	if err != nil {
		t.Fatal(err)
	}
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer a-good-key" {
			w.WriteHeader(401)
			return
		}
		stream(w, 1, 0)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair.TLS}}
	s.StartTLS()
	t.Cleanup(s.Close)
	f := func(key, authority, want string) {
		t.Helper()
		report, err := Run(t.Context(), Config{URL: s.URL, Models: []string{"A"}, File: traceFile, Speed: 1e6, Limit: 30,
			KeyFile: key, CAFile: authority})
		switch {
		case want == "" && (err != nil || report.Results[0].Answered != 30):
			t.Errorf("%q, %q: %v, %+v; want 30 answers", key, authority, err, report.Results)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q, %q: %v; want %q", key, authority, err, want)
		}
	}
	good, wrong := file("good", "a-good-key\n"), file("wrong", "another\n")
	f(good, pair.Cert, "")
	f("", pair.Cert, "--key-file")
	f(wrong, pair.Cert, "one of the daemon's keys")
	f(good, "", "--ca-file")
	f(file("empty", "\n"), "", "one API key on one line")
	f(filepath.Join(dir, "none"), "", "cannot be read")
	f(good, good, "no certificate in PEM")
}
