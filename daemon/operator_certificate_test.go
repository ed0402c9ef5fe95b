package daemon

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/certtest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// TestAnExpiredCertificateIsNotTakenUp: clients are served with the good one, at the clients' port and at that of the
// KV cache, and the overview says why the new one is not used.
func TestAnExpiredCertificateIsNotTakenUp(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	dir := t.TempDir()
	front := certtest.Dated(t, dir, "front", "front-good", certtest.Dates{-day, 30 * day})
	store := certtest.Dated(t, dir, "store", "store-good", certtest.Dates{-day, 30 * day})
	toml := withServer(settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...),
		fmt.Sprintf("tls_cert_file = %q\ntls_key_file = %q", front.Cert, front.Key)) +
		fmt.Sprintf("\n[kv_cache]\nresp = \"127.0.0.1:0\"\nmax_bytes = 16777216\ntls_cert_file = %q\ntls_key_file = %q\n",
			store.Cert, store.Key)
	r, lines := startLogged(t, toml, 1)
	shown := func(addr string) string {
		c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	overview := func() string {
		resp, err := http.Get("http://" + r.AdminAddr() + "/api/v1/overview")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return string(b)
	}
	certtest.Dated(t, dir, "front", "front-expired", certtest.Dates{-2 * day, -day})
	certtest.Dated(t, dir, "store", "store-tomorrow", certtest.Dates{day, 30 * day})
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the overview says that both are refused", func() bool {
		o := overview()
		return strings.Contains(o, "expired on") && strings.Contains(o, "is not valid before") && strings.Contains(o, `"kept":["`)
	})
	if n := lines.Count("the one before stays"); n != 2 { // each once, by the reload or by a look just before it
		t.Errorf("two refusals are logged %d times: %s", n, lines)
	}
	if a, b := shown(r.Addr()), shown(r.kvCache.RESPAddr()); a != "front-good" || b != "store-good" {
		t.Errorf("clients are shown %q, LMCache %q", a, b)
	}
	certtest.Dated(t, dir, "front", "front-renewed", certtest.Dates{-day, 90 * day})
	certtest.Dated(t, dir, "store", "store-renewed", certtest.Dates{-day, 90 * day})
	eventually(t, "both renewed ones are used, without a reload", func() bool {
		return shown(r.Addr()) == "front-renewed" && shown(r.kvCache.RESPAddr()) == "store-renewed"
	})
}
