package conf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestParseWorker: a worker that registers itself has what [[pools.workers]] has, and errors name the key alone.
func TestParseWorker(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("sesame-sesame"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Parse(fmt.Appendf(nil, "server.listen = \"127.0.0.1:8000\"\nserver.admin_token_file = %q\n[[pools]]\nmodels = [\"*\"]\nworkers = []\n", token), "x.toml")
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.ParseWorker(&c.Pools[0], map[string]any{"url": "http://A:80/", "labels": map[string]any{"a": "b"}, "kv_tokens": int64(9)})
	if err != nil || w.ID != DefaultID("http://A:80") || w.Weight != 1 || w.KVTokens != 9 || w.Labels["a"] != "b" || w.MetricsURL != "http://A:80/metrics" {
		t.Errorf("%+v, %v", w, err)
	}
	if other := WorkerAt("http://a"); w.Address() != other.Address() {
		t.Errorf("%s and %s are two addresses", w.Address(), other.Address())
	}
	f := func(want string, keys map[string]any) {
		t.Helper()
		if _, err := c.ParseWorker(&c.Pools[0], keys); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: %v; want %q", keys, err, want)
		}
	}
	f("url: ", map[string]any{})
	f(`url: "127.0.0.1:8000" is this router`, map[string]any{"url": "http://127.0.0.1:8000"})
	f("role: ", map[string]any{"url": "http://a:80", "role": "decode"})
	f("wieght: ", map[string]any{"url": "http://a:80", "wieght": int64(1)})
	f("labels", map[string]any{"url": "http://a:80", "labels": map[string]any{"a": int64(1)}})
	f("a value", map[string]any{"url": "http://a:80", "labels": func() {}})
}
