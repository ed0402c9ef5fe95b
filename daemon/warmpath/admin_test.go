package main

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
	f := func(d adminDoor, want string) {
		t.Helper()
		d.at = admin.URL
		if _, err := d.call(t.Context(), "GET", "/api/v1/overview", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with the token of %q: %v; want %q", d.tokenFile, err, want)
		}
	}
	f(adminDoor{}, "wants its token: --token-file FILE")
	f(adminDoor{tokenFile: file}, "refuses the token of "+file)
}
