package upstream

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"time"
)

// Config says how a worker is reached. The zero value of a field means its default. HeaderTimeout and ChunkTimeout may
// take an eighth longer.
type Config struct {
	URL            string        // scheme://host:port of the worker, without a path; http or https
	ConnectTimeout time.Duration // the TLS handshake included; default 2 s
	HeaderTimeout  time.Duration // from sending the request to the head of the answer, the prefill included; default 600 s
	ChunkTimeout   time.Duration // between two reads of a body, and for each write of a long request; default 120 s
	IdleTimeout    time.Duration // how long an unused connection is kept; default 3.5 s, as uvicorn closes at 5.0 s
	MaxIdle        int           // unused connections kept; default 256
	TLS            *tls.Config   // for https; nil = the system's roots. ServerName and ALPN are set where empty
}

// Client sends requests to one worker. It is safe for concurrent use.
type Client struct {
	config   Config
	address  string // host:port to dial
	hostLine string // "Host: ...\r\n"
	tls      *tls.Config
	dialer   net.Dialer
	idle     idle

	open, dials, reused, replaced, canceled atomic.Int64
}

// Stats counts what a client did since it was made. Open and Idle are of this moment.
type Stats struct {
	Open     int    // connections, those in use and the idle ones
	Idle     int    // connections waiting for a request
	Dials    uint64 // connections that came about
	Reused   uint64 // requests that began on a pooled connection
	Replaced uint64 // of these, how many found it dead and were sent again on a fresh one
	Canceled uint64 // requests that ended before their answer did, by the context or by Close
}

// New makes the client of a worker. It connects to nothing yet.
func New(c Config) (*Client, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") || !plain(&inValue, u.Host) {
		return nil, fmt.Errorf("upstream: worker url is not http://host:port or https://host:port")
	}
	c.ConnectTimeout = or(c.ConnectTimeout, 2*time.Second)
	c.HeaderTimeout = or(c.HeaderTimeout, 600*time.Second)
	c.ChunkTimeout = or(c.ChunkTimeout, 120*time.Second)
	c.IdleTimeout = or(c.IdleTimeout, 3500*time.Millisecond)
	if c.MaxIdle <= 0 {
		c.MaxIdle = 256
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	client := &Client{
		config:   c,
		address:  net.JoinHostPort(u.Hostname(), port),
		hostLine: "Host: " + u.Host + "\r\n",
		dialer:   net.Dialer{Timeout: c.ConnectTimeout, KeepAlive: 30 * time.Second},
		idle:     idle{limit: c.MaxIdle, timeout: c.IdleTimeout},
	}
	if u.Scheme == "https" {
		client.tls = tlsConfig(c.TLS, u.Hostname())
	}
	return client, nil
}

func tlsConfig(t *tls.Config, host string) *tls.Config {
	if t == nil {
		t = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t = t.Clone()
	if t.ServerName == "" {
		t.ServerName = host
	}
	t.NextProtos = []string{"http/1.1"}
	return t
}

func or(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// Life is a context that tells one listener of its end by a call. Do uses that in place of [context.AfterFunc], which costs
// allocations and locks at each request. All its methods may be called from anywhere.
type Life interface {
	context.Context

	// Hear has h.Ended called once the context ends, now if it has. The last one to ask is told, no other.
	Hear(h Hearer)

	// Forget takes back Hear. Ended neither runs nor will be called once it has returned.
	Forget(h Hearer)
}

// Hearer is told that a context has ended. Ended is short, and must not ask the context anything.
type Hearer interface{ Ended() }

// Do sends r and waits for the head of the answer. If ctx ends, at any time until the response has ended, the connection
// is closed, which tells the worker to stop. A pooled connection that dies without one byte of an answer is replaced once by
// a fresh one. For what an error means to a repeat see [NotSent] and [Unanswered]; one that came of a time limit is a
// net.Error with Timeout.
func (c *Client) Do(ctx context.Context, r *Request) (*Response, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, &failure{what: "the request was canceled", err: err, notSent: true}
	}
	x := &Response{client: c, ctx: ctx}
	if l, ok := ctx.(Life); ok {
		x.life = l
		l.Hear(x)
	} else if ctx.Done() != nil {
		x.stop = context.AfterFunc(ctx, x.Ended)
	}
	if err := x.run(r); err != nil {
		x.finish(false)
		return nil, err
	}
	if x.framed == byLength && x.left == 0 {
		x.err = io.EOF
		x.finish(true)
	}
	return x, nil
}

// Close drops the idle connections. Requests under way go on; their connections are closed when they end.
func (c *Client) Close() {
	for _, cn := range c.idle.close() {
		cn.close()
	}
}

// CloseIdle closes the connections that wait for a request. The client serves on.
func (c *Client) CloseIdle() {
	for _, cn := range c.idle.clear() {
		cn.close()
	}
}

// Stats tells what the client has done.
func (c *Client) Stats() Stats {
	return Stats{
		Open: int(c.open.Load()), Idle: c.idle.len(), Dials: uint64(c.dials.Load()), Reused: uint64(c.reused.Load()),
		Replaced: uint64(c.replaced.Load()), Canceled: uint64(c.canceled.Load()),
	}
}
