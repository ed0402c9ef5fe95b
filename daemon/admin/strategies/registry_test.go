package strategies

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/admin/registry"
	"github.com/warmpath/warmpath/host"
)

// TestAModuleOfARegistry: a pool has its strategy from a registry by the digest. It loads again while the registry is
// down, and the next version is refused until that is up.
func TestAModuleOfARegistry(t *testing.T) {
	dir, layout := t.TempDir(), t.TempDir()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := os.ReadFile(filepath.Join(layout, "blobs", "sha256", r.URL.Path[strings.LastIndex(r.URL.Path, ":")+1:]))
		if err != nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if strings.Contains(r.URL.Path, "/manifests/") {
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		}
		w.Write(b)
	}))
	defer server.Close()
	h, err := host.New(t.Context(), host.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(t.Context())
	pack := func(data string) (digest, sum string) {
		t.Helper()
		wasm := []byte(module(t, data))
		digest, err := registry.Pack(t.Context(), layout, "m.wasm", wasm)
		if err != nil {
			t.Fatal(err)
		}
		return digest, Sum(wasm)
	}
	load := func(digest, more string) (*conf.Config, string, error) {
		t.Helper()
		c, err := conf.Parse(fmt.Appendf(nil, "[server]\nmodule_cache = %q\n[strategies.far]\npath = \"oci://%s/n@%s\"\n%s\n[[pools]]\n"+
			"strategy = \"far\"\nworkers = [{ url = \"http://127.0.0.1:1\" }]\n", dir, strings.TrimPrefix(server.URL, "http://"), digest, more),
			filepath.Join(dir, "warmpath.toml"))
		if err != nil {
			t.Fatal(err)
		}
		all, err := LoadAll(h, c, slog.New(slog.DiscardHandler))
		if err != nil {
			return c, "", err
		}
		defer CloseAll(all)
		return c, all[0].own.SHA256(), nil
	}
	first, sum := pack("first version")
	c, got, err := load(first, "")
	if err != nil || got != sum {
		t.Fatalf("%s, %v; want %s", got, err, sum)
	}
	if s := listed(c, "far").withModule(c); s.SHA256 != sum || s.Source != file {
		t.Errorf("listed: %+v", s)
	}
	if _, _, err := load(first, `sha256 = "`+strings.Repeat("0", 64)+`"`); err == nil || !strings.Contains(err.Error(), "its module has the SHA-256 "+sum) {
		t.Errorf("another sum: %v", err)
	}
	second, _ := pack("second version")
	server.Close()
	if _, got, err := load(first, ""); err != nil || got != sum {
		t.Errorf("while the registry is down: %s, %v", got, err)
	}
	c, _, err = load(second, "")
	if err == nil || !strings.Contains(err.Error(), `strategies.far`) || !strings.Contains(err.Error(), "see that it is up, can be reached") {
		t.Errorf("the next version, while the registry is down: %v", err)
	}
	if s := listed(c, "far").withModule(c); s.SHA256 != "" {
		t.Errorf("listed: %+v; want no sum of what is not there", s)
	}
}
