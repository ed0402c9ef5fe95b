package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Config says how a worker is reached. The zero value of a time means its default.
type Config struct {
	URL            string        // scheme://host:port of the worker, without a path
	ConnectTimeout time.Duration // default 2 s
	HeaderTimeout  time.Duration // request sent to response head, the prefill included; default 600 s
	ChunkTimeout   time.Duration // between two reads of a body; default 120 s
	MaxIdle        int           // connections kept; default 256
}

// Field is one header field, as sent: no canonical spelling is forced on it.
type Field struct{ Name, Value string }

// Request is one request to a worker. Body must stay unchanged until the response is closed.
type Request struct {
	Method string
	Path   string // with the query
	Header []Field
	Body   []byte
}

// ErrRequest is returned for a request that HTTP cannot carry. No worker saw it.
var ErrRequest = errors.New("upstream: the request cannot be written")

// ErrStalled is returned when a body gave no byte for Config.ChunkTimeout.
var ErrStalled = errors.New("upstream: the worker sent nothing within the chunk timeout")

// Client sends requests to one worker. It is safe for concurrent use.
type Client struct {
	base      *url.URL
	chunk     time.Duration
	transport *http.Transport
}

// New makes the client of a worker.
func New(c Config) (*Client, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("upstream: worker url is not http://host:port or https://host:port")
	}
	dialer := &net.Dialer{Timeout: or(c.ConnectTimeout, 2*time.Second), KeepAlive: 30 * time.Second}
	return &Client{
		base:  u,
		chunk: or(c.ChunkTimeout, 120*time.Second),
		transport: &http.Transport{
			DialContext:           dialer.DialContext,
			TLSHandshakeTimeout:   5 * time.Second,
			ResponseHeaderTimeout: or(c.HeaderTimeout, 600*time.Second),
			IdleConnTimeout:       4 * time.Second,
			MaxIdleConnsPerHost:   max(c.MaxIdle, 256),
			DisableCompression:    true,
			// One write for head and body of most requests, one read for most chunks.
			WriteBufferSize: 64 << 10,
			ReadBufferSize:  32 << 10,
		},
	}, nil
}

func or(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// Do sends r and waits for the head of the answer. The error of a request that no worker process can have seen
// satisfies [NotSent].
func (c *Client) Do(ctx context.Context, r *Request) (*Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	hr, err := http.NewRequestWithContext(ctx, r.Method, c.base.Scheme+"://"+c.base.Host, bytes.NewReader(r.Body))
	if err != nil {
		cancel()
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	path, query, _ := strings.Cut(r.Path, "?")
	hr.URL = &url.URL{Scheme: c.base.Scheme, Host: c.base.Host, Opaque: path, RawQuery: query} // sent as it is, escapes and all
	for _, f := range r.Header {
		hr.Header[f.Name] = append(hr.Header[f.Name], f.Value)
	}
	// An empty entry is not sent, but tells net/http that a reused connection that gave no byte may be replaced.
	if _, ok := hr.Header["Idempotency-Key"]; !ok {
		hr.Header["Idempotency-Key"] = []string{}
	}
	resp, err := c.transport.RoundTrip(hr)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("upstream: %w", err)
	}
	b := &Response{Status: resp.StatusCode, Header: resp.Header, Length: resp.ContentLength, body: resp.Body, cancel: cancel, chunk: c.chunk}
	return b, nil
}

// Close drops the idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// NotSent tells whether err came before any byte of the request reached the worker, so that a repeat cannot run twice.
func NotSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// Response is the answer of a worker. Read and Close belong to one goroutine.
type Response struct {
	Status int
	Header http.Header
	Length int64 // of the body; -1 = not announced

	body   io.ReadCloser
	cancel context.CancelFunc
	chunk  time.Duration
	timer  *time.Timer
}

// Read reads the body. io.EOF comes only at its announced end.
func (r *Response) Read(p []byte) (int, error) {
	if r.timer == nil {
		r.timer = time.AfterFunc(r.chunk, r.cancel)
	} else {
		r.timer.Reset(r.chunk)
	}
	n, err := r.body.Read(p)
	if fired := !r.timer.Stop(); fired && err != nil && err != io.EOF {
		return n, ErrStalled
	}
	return n, err
}

// Close ends the exchange. If the body was not read to its end, the connection is closed, which tells the worker to stop.
func (r *Response) Close() error {
	if r.timer != nil {
		r.timer.Stop()
	}
	err := r.body.Close()
	r.cancel()
	return err
}

var _ io.ReadCloser = (*Response)(nil)
