package upstream

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/transport/socket"
)

// Config sets how to reach a worker. The zero value of a field means its default. HeaderTimeout and ChunkTimeout may
// take an eighth longer.
type Config struct {
	URL            string        // scheme://host:port of the worker, without a path; http or https
	ConnectTimeout time.Duration // the TLS handshake included; default 2 s
	HeaderTimeout  time.Duration // from sending the request to the head of the answer, with the prefill; default 600 s
	ChunkTimeout   time.Duration // between two reads of a body, and for each write of a long request; default 600 s
	IdleTimeout    time.Duration // how long an unused connection is kept; default 3.5 s, as uvicorn closes at 5.0 s
	MaxIdle        int           // unused connections kept; default 256
	TLS            *tls.Config   // for https; nil = the system's roots. ServerName and ALPN are set where empty

	// Dial makes the connections in place of the network's dialer; nil = TCP to the host of URL. A program in virtual
	// time has no sockets. Such a connection gets no TLS.
	Dial func(ctx context.Context) (net.Conn, error)
}

// complete fills in the defaults.
func (c *Config) complete() {
	c.ConnectTimeout = positive(c.ConnectTimeout, 2*time.Second)
	c.HeaderTimeout = positive(c.HeaderTimeout, 600*time.Second)
	c.ChunkTimeout = positive(c.ChunkTimeout, 600*time.Second)
	c.IdleTimeout = positive(c.IdleTimeout, 3500*time.Millisecond)
	if c.MaxIdle <= 0 {
		c.MaxIdle = 256
	}
}

// positive returns d, or the default if d is not above zero.
func positive(d, byDefault time.Duration) time.Duration {
	if d <= 0 {
		return byDefault
	}
	return d
}

// pool makes the connections to one worker and keeps the unused ones.
type pool struct {
	config   Config
	address  string // host:port to dial
	hostLine string // "Host: ...\r\n"
	prefix   string // of every path
	tls      *tls.Config
	dialer   net.Dialer
	idle     idle
	counts   counts
}

// init checks and completes the configuration.
func (p *pool) init(c Config) error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") || !plain(&inValue, u.Host) {
		return fmt.Errorf("upstream: worker url is not http://host:port or https://host:port")
	}
	c.complete()
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	p.config = c
	p.address = net.JoinHostPort(u.Hostname(), port)
	p.hostLine = "Host: " + u.Host + "\r\n"
	p.prefix = strings.TrimRight(u.EscapedPath(), "/")
	p.dialer = net.Dialer{Timeout: c.ConnectTimeout, KeepAliveConfig: keepAlive, Control: boundUnacknowledged}
	p.idle.limit = c.MaxIdle
	p.idle.timeout = c.IdleTimeout
	if u.Scheme == "https" {
		p.tls = tlsConfig(c.TLS, u.Hostname())
	}
	return nil
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

// dial makes a fresh connection. Its errors are NotSent.
func (p *pool) dial(ctx context.Context) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.config.ConnectTimeout)
	defer cancel()
	if p.config.Dial != nil {
		return p.dialElsewhere(ctx)
	}
	epoch := p.idle.current()
	dialed, err := p.dialer.DialContext(ctx, "tcp", p.address)
	if err != nil {
		return nil, &failure{what: "no connection", err: err, notSent: true}
	}
	tcp, err := socket.New(dialed.(*net.TCPConn))
	if err != nil {
		dialed.Close()
		return nil, &failure{what: "no connection", err: err, notSent: true}
	}
	var secure *tls.Conn
	if p.tls != nil {
		secure = tls.Client(tcp, p.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			tcp.Close()
			return nil, &failure{what: "TLS handshake", err: err, notSent: true}
		}
	}
	p.counts.dials.Add(1)
	p.counts.open.Add(1)
	cn := newConn(tcp, secure, p)
	cn.epoch = epoch
	return cn, nil
}

// dialElsewhere makes a connection by Config.Dial.
func (p *pool) dialElsewhere(ctx context.Context) (*conn, error) {
	dialed, err := p.config.Dial(ctx)
	if err != nil {
		return nil, &failure{what: "no connection", err: err, notSent: true}
	}
	p.counts.dials.Add(1)
	p.counts.open.Add(1)
	return &conn{net: dialed, hostLine: p.hostLine, prefix: p.prefix, counts: &p.counts}, nil
}

// take returns an unused connection for r that is alive, or that shows that it is not when r is sent on it. It returns
// nil if there is none, and for a request that cannot be sent twice or is to begin on a fresh one.
func (p *pool) take(r *Request, now time.Time) *conn {
	for r.Tail == nil && !r.Fresh && !r.Upgrade {
		cn := p.idle.take(now)
		if cn == nil {
			return nil
		}
		if r.Mark != 0 && cn.mark == r.Mark {
			cn.close()
			return nil
		}
		if cn.first.usable() && !r.long() {
			cn.first.suspect = true
			return cn
		}
		cn.arm(now, p.config.HeaderTimeout) // a deadline that has passed would make it look dead
		if cn.alive() {
			return cn
		}
		cn.close()
	}
	return nil
}

// put keeps a connection for another request, or closes it.
func (p *pool) put(cn *conn) {
	if !p.idle.put(cn, time.Now()) {
		cn.close()
	}
}
