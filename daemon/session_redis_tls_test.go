package daemon

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// TestRedisOverTLS: routers share sessions and history through a Redis whose certificate a private authority signs and
// which asks for a certificate, as redis-server does by default. A history without a URL uses the files of [cache].
func TestRedisOverTLS(t *testing.T) {
	t.Parallel()
	url, pair := redistest.TLS(t)
	w := sims(t, 1, vllmsim.Config{})
	files := fmt.Sprintf("redis = %q\ntls_ca_file = %q\ntls_cert_file = %q\ntls_key_file = %q\n", url, pair.Cert, pair.Cert,
		pair.Key)
	r := start(t, settings("prefixaware", w.URLs()...)+bindAlways+"[cache]\n"+files, 1)
	other := start(t, settings("prefixaware", w.URLs()...)+"[history]\n"+files, 1)
	for _, r := range []*running{r, other} {
		eventually(t, "a router hears the other", func() bool { return r.hears() == 1 })
	}
	eventually(t, "Redis answers for a session", func() bool {
		if a := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x"}`, "X-Session-Id", "s"); a.status != http.StatusOK {
			t.Fatalf("%+v", a)
		}
		s := r.tier.Stats().L2
		return !s.Open && s.Calls > s.Failures
	})
}
