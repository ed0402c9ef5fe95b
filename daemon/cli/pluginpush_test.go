package cli

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPushAsksForThePoolFirst: a module that is to serve a pool which is not there is not delivered either.
func TestPushAsksForThePoolFirst(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mine.wasm")
	if err := os.WriteFile(file, []byte("wasm"), 0o600); err != nil {
		t.Fatal(err)
	}
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/api/v1/pools" {
			t.Errorf("it asks for %s %s", r.Method, r.URL.Path)
		}
		io.WriteString(w, `[{"name":"main"},{"name":"small"}]`)
	}))
	defer admin.Close()
	p := push{pool: "mian"}
	p.at = strings.TrimPrefix(admin.URL, "http://")
	err := p.run(context.Background(), io.Discard, file)
	if err == nil || !strings.Contains(err.Error(), `nothing is delivered: the daemon has no pool "mian"`) ||
		!strings.Contains(err.Error(), "main, small") {
		t.Errorf("%v", err)
	}
}
