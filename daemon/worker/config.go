package worker

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Config is a pool's. Only Workers needs a value; zero elsewhere means the default.
type Config struct {
	Workers []Spec // Update changes them

	HealthInterval time.Duration // between health checks of a worker; default 2 s, give or take a tenth
	HealthTimeout  time.Duration // deadline of one check or model listing; default 2 s
	ScrapeInterval time.Duration // between reads of /metrics, and their deadline; default 5 s (a page costs the worker 8-60 ms)
	SlowStart      time.Duration // in which a worker that came back grows from a tenth of its share to all of it; default 10 s

	// PrefillTokensPerSecond is the speed from which estimates start; the pool learns how far off it is. Default 15,000.
	PrefillTokensPerSecond float64

	DownGrace time.Duration // without a byte of an answer since its worker went down: then Dispatch.Holder is told; default 20 s

	MaxInFlight int     // requests at a time at one worker; 0 = no limit
	RetryBudget float64 // repeats that MayRetry lets through, as a share of requests, beside 10 a second; 0 = these alone
	Panic       bool    // no worker is up: Snapshot gives them all, with Panicked

	Key    string       // sent as a bearer token with health, models and metrics; "" = none
	TLS    *tls.Config  // for health, models and metrics of https workers; nil = the system's authorities
	Client *http.Client // for health, models and metrics; default: own, without a proxy and without following redirects

	Log *slog.Logger // default: none. It and the hooks are New's to set: Configure leaves them

	// The hooks are called without the pool's lock, with the worker's slot. Any may be nil.
	OnDown     func(slot uint32)             // down, removed, or its slot is free again: what its cache held is gone
	OnUp       func(slot uint32)             // up, for the first time or again
	OnRestart  func(slot uint32)             // its process is a new one, though it was never seen down
	OnChange   func()                        // something that is told in the log has changed
	OnCapacity func(slot uint32, tokens int) // its KV cache's size, when registered (0 = not known yet) and when it changes
}

// Spec is one configured worker.
type Spec struct {
	ID         string  // default: the URL's host and port; the first of two workers with one id counts
	URL        string  // base URL, as http://10.0.0.1:8000; user:password in it is sent and never logged
	MetricsURL string  // default: URL + /metrics
	KVTokens   int     // size of the KV cache; 0 = as the worker's metrics say
	Weight     float64 // default 1
}

func (c Config) withDefaults() Config {
	c.HealthInterval = cmp.Or(c.HealthInterval, 2*time.Second)
	c.HealthTimeout = cmp.Or(c.HealthTimeout, 2*time.Second)
	c.ScrapeInterval = cmp.Or(c.ScrapeInterval, 5*time.Second)
	c.SlowStart = cmp.Or(c.SlowStart, 10*time.Second)
	c.DownGrace = cmp.Or(c.DownGrace, 20*time.Second)
	c.PrefillTokensPerSecond = cmp.Or(c.PrefillTokensPerSecond, abi.PrefillTokensPerSecond)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Client == nil {
		c.Client = newClient(c.TLS)
	}
	return c
}

// newClient makes the client for probes. vLLM closes idle connections after 5 s, so we do before: a probe on a connection
// that is just being closed looks like a dead worker.
func newClient(secrets *tls.Config) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
			MaxIdleConns:        0,
			MaxIdleConnsPerHost: 2,
			IdleConnTimeout:     4 * time.Second,
			TLSClientConfig:     secrets,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// unshared is c without kept connections, for health checks: whoever accepted a connection once may go on answering on it after
// its port was closed, as proxies do. A connection costs 0.2 ms of both ends (BenchmarkHealth), 3 % of a core for 256 workers every
// 2 s. Tickets spare TLS the certificates, two thirds of its handshake.
func unshared(c *http.Client) *http.Client {
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
