package remote

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/certtest"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// startTLS starts a Redis that speaks TLS alone, and a daemon over it with many open connections.
func startTLS(t *testing.T) (r *redisServer, d *daemon, log *record) {
	t.Helper()
	pair := certtest.New(t, t.TempDir(), "redis", "redis")
	port := strconv.Itoa(porttest.Row(t, 1))
	r = startRedisAt(t, "127.0.0.1:"+port, "--tls-cert-file", pair.Cert, "--tls-key-file", pair.Key,
		"--tls-ca-cert-file", pair.Cert, "--tls-auth-clients", "no", "--tls-port", port, "--port", "0")
	log = &record{}
	d = startDaemon(t, Config{Log: slog.New(slog.NewTextHandler(log, nil)), Timeout: 5 * time.Second,
		Redis: &Redis{URL: "rediss://" + r.Addr, TLS: &tls.Config{RootCAs: pair.Authority}}})
	waittest.Until(t, "the server answers", func() bool { return d.remote.servers.up("k") })
	for i := range 64 {
		d.put(fmt.Sprint("k", i), 1<<20)
	}
	d.written()
	var reading sync.WaitGroup
	for i := range 64 {
		reading.Go(func() { d.get(fmt.Sprint("k", i), 1<<20) })
	}
	reading.Wait()
	return r, d, log
}

// TestTLSRestart: when a Redis with TLS was started anew, the connections of before cost it no second of its own time:
// the library takes them for good until each has failed.
func TestTLSRestart(t *testing.T) {
	t.Parallel()
	r, d, log := startTLS(t)
	r.Kill()
	r.start()
	waittest.Until(t, "the server is back", func() bool { return log.has("is back") })
	_, after, _ := strings.Cut(log.String(), "down_for=")
	text, _, _ := strings.Cut(after, "\n")
	if lasted, err := time.ParseDuration(text); err != nil || lasted > time.Second {
		t.Errorf("it was down for %q after its restart", text)
	}
	d.put("k", 1000)
	d.written()
	if n := d.remote.Stats(); n.PutErrors+n.Skipped != 0 {
		t.Errorf("a put after the restart failed: %+v", n)
	}
}

// TestTLSFaults: the log says what is wrong between a daemon and a Redis with TLS, and the values stay in memory.
func TestTLSFaults(t *testing.T) {
	pair, other := certtest.New(t, t.TempDir(), "redis", "redis"), certtest.New(t, t.TempDir(), "other", "other")
	port := strconv.Itoa(porttest.Row(t, 1))
	startRedisAt(t, "127.0.0.1:"+port, "--tls-cert-file", pair.Cert, "--tls-key-file", pair.Key,
		"--tls-ca-cert-file", pair.Cert, "--tls-port", port, "--port", "0")
	f := func(c *tls.Config, want string) {
		t.Helper()
		log := &record{}
		d := startDaemon(t, Config{Log: slog.New(slog.NewTextHandler(log, nil)), Memory: true,
			Redis: &Redis{URL: "rediss://127.0.0.1:" + port, TLS: c}})
		waittest.Until(t, "the log explains it: "+want, func() bool { return log.has("cannot agree on TLS", want) })
		d.put("k", 1000)
		if !d.get("k", 1000) {
			t.Error("the value is lost")
		}
	}
	given := func(p certtest.Pair) *tls.Config {
		return &tls.Config{RootCAs: pair.Authority, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate,
			error) {
			return &p.TLS, nil
		}}
	}
	f(&tls.Config{RootCAs: other.Authority}, "unknown authority")
	f(nil, "unknown authority")
	f(&tls.Config{RootCAs: pair.Authority}, "certificate required")
	f(given(other), "unknown certificate authority")
}
