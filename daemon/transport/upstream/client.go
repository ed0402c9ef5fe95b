package upstream

import (
	"context"
	"io"
)

// Client sends requests to one worker. It is safe for concurrent use.
type Client struct{ pool pool }

// New makes the client of a worker. It connects to nothing yet.
func New(c Config) (*Client, error) {
	client := &Client{}
	if err := client.pool.init(c); err != nil {
		return nil, err
	}
	return client, nil
}

// Has reports whether the client is as New(next) would make it, so that its connections can serve on.
func (c *Client) Has(next Config) bool {
	if c == nil {
		return false
	}
	next.complete()
	has := &c.pool.config
	return has.URL == next.URL && has.TLS == next.TLS && has.ConnectTimeout == next.ConnectTimeout &&
		has.HeaderTimeout == next.HeaderTimeout && has.ChunkTimeout == next.ChunkTimeout
}

// Do sends r and waits for the head of the answer. If ctx ends, at any time until the response has ended, the
// connection is closed, which makes the worker stop; see also [Request.Lingers]. Do replaces once, by a fresh
// connection, a pooled one that dies without one byte of an answer. For what an error means to a repeat see [NotSent]
// and [Unanswered]. The error of a time limit is a net.Error with Timeout.
func (c *Client) Do(ctx context.Context, r *Request) (*Response, error) {
	x := new(Response)
	if err := c.DoInto(ctx, r, x); err != nil {
		return nil, err
	}
	return x, nil
}

// DoInto is Do with the caller's memory for the response. x is zero, and is not used for a second request: a late
// cancel may still look at it.
func (c *Client) DoInto(ctx context.Context, r *Request, x *Response) error {
	if err := r.check(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return &failure{what: "the request was canceled", err: err, notSent: true}
	}
	x.pool = &c.pool
	x.claim.lingers = r.Lingers
	x.claim.begin(ctx)
	if err := x.run(r); err != nil {
		x.finish(false)
		return err
	}
	if x.body.framed == byLength && x.body.left == 0 {
		x.err = io.EOF
		x.finish(true)
	}
	return nil
}

// Close drops the idle connections. Requests under way go on. Their connections are closed when they end.
func (c *Client) Close() {
	for _, cn := range c.pool.idle.close() {
		cn.close()
	}
}

// Retire closes the connections that wait for a request, and each of the others when its answer has ended. They may be
// out of step: what comes next on them may answer another request.
func (c *Client) Retire() {
	for _, cn := range c.pool.idle.retire() {
		cn.close()
	}
}

// CloseIdle closes the connections that wait for a request. The client serves on.
func (c *Client) CloseIdle() {
	for _, cn := range c.pool.idle.clear() {
		cn.close()
	}
}
