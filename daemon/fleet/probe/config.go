package probe

import (
	"cmp"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/warmpath/warmpath/daemon/transport/direct"
)

// Config is a Prober's. A zero field means its default.
type Config struct {
	HealthInterval time.Duration // between health checks of a worker; default 2 s, give or take a tenth
	HealthTimeout  time.Duration // deadline of one check or model listing; default 2 s
	ScrapeInterval time.Duration // between reads of /metrics, and their deadline; default 5 s: a page costs 8-60 ms

	Key    string       // sent as a bearer token with every question; "" = none
	TLS    *tls.Config  // for https workers; nil = the system's authorities
	Client *http.Client // default: an own one that uses no proxy and follows no redirect
}

func (c Config) withDefaults() Config {
	c.HealthInterval = cmp.Or(c.HealthInterval, 2*time.Second)
	c.HealthTimeout = cmp.Or(c.HealthTimeout, 2*time.Second)
	c.ScrapeInterval = cmp.Or(c.ScrapeInterval, 5*time.Second)
	if c.Client == nil {
		c.Client = newClient(c.TLS)
	}
	return c
}

// keptFor is how long a connection waits for the next question.
const keptFor = 4 * time.Second

// newClient makes the client that keeps connections. vLLM closes idle ones after 5 s, so this client closes them
// before: a question on a connection that is just being closed looks like a dead worker.
//
// It asks for no compression: vLLM would compress a page of 56 KB in 1 ms of the loop that its requests wait for. A
// larger buffer reads such a page in three system calls in place of fifteen. Each answer has its deadline, so TCP's own
// probes, whose settings take four calls for each connection, would find nothing.
func newClient(authorities *tls.Config) *http.Client {
	return direct.Client(&http.Transport{
		DialContext:         (&net.Dialer{Timeout: 2 * time.Second, KeepAlive: -1}).DialContext,
		MaxIdleConns:        0,
		MaxIdleConnsPerHost: 2,
		IdleConnTimeout:     keptFor,
		TLSClientConfig:     authorities,
		DisableCompression:  true,
		ReadBufferSize:      32 << 10,
	}, 0)
}

// withoutKeepAlive copies c for health checks: each request of the copy has a connection of its own (see doc.go). TLS
// session tickets spare the certificates, two thirds of a handshake.
func withoutKeepAlive(c *http.Client) *http.Client {
	t, ok := c.Transport.(*http.Transport)
	if !ok {
		return c
	}
	t = t.Clone()
	t.DisableKeepAlives = true
	if t.TLSClientConfig == nil {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t.TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(512)
	own := *c
	own.Transport = t
	return &own
}
