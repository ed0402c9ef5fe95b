package cli

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// TestAWrongToken: who gives a token is not asked to give one, but told that it is another.
func TestAWrongToken(t *testing.T) {
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer admin.Close()
	file := filepath.Join(t.TempDir(), "new.token")
	write(t, file, "a token that was rotated")
	f := func(d adminFlags, want string) {
		t.Helper()
		d.at = admin.URL
		if _, err := d.call(t.Context(), "GET", "/api/v1/overview", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with the token of %q: %v; want %q", d.tokenFile, err, want)
		}
	}
	f(adminFlags{}, "wants its token: --token-file FILE")
	f(adminFlags{tokenFile: file}, "refuses the token of "+file+": it wants what server.admin_token_file of the daemon holds")
}

// TestAnotherPort: who names the clients' port, or another server, is told which port to name. A 404 of the admin
// listener has its reason.
func TestAnotherPort(t *testing.T) {
	f := func(answer, want string) {
		t.Helper()
		admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(answer))
		}))
		defer admin.Close()
		d := adminFlags{at: admin.URL}
		if _, err := d.call(t.Context(), "GET", "/api/v1/overview", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("to %s: %v; want %q", answer, err, want)
		}
	}
	f(`{"error":{"message":"there is nothing at this URL","code":"unknown_url"}}`, "give the daemon's server.admin as --admin")
	f("<html>404 Not Found</html>", "give the daemon's server.admin as --admin")
	secured := httptest.NewTLSServer(http.NotFoundHandler())
	defer secured.Close()
	for at, want := range map[string]string{secured.URL: "the admin listener speaks no TLS",
		strings.TrimPrefix(secured.URL, "https://"): "a port for clients, with TLS"} {
		d := adminFlags{at: at}
		if _, err := d.call(t.Context(), "GET", "/api/v1/overview", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("to %s: %v; want %q", at, err, want)
		}
	}
	f(`{"error":"no such worker"}`, "not there: no such worker")
}
