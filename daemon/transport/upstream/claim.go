package upstream

import (
	"context"
	"sync/atomic"
	"time"
)

// Life is a context that calls one listener at its end. Do uses that in place of [context.AfterFunc], which costs
// allocations and locks at each request. All its methods may be called from anywhere.
type Life interface {
	context.Context

	// Hear makes the context call h.Ended once it ends, or now if it has. It keeps only the last listener.
	Hear(h Hearer)

	// Forget takes back Hear. Ended neither runs nor will be called once it has returned.
	Forget(h Hearer)
}

// Hearer takes the end of a context. Ended is short, and must call no method of the context.
type Hearer interface{ Ended() }

// claim decides who may close the connection of an exchange: the one that swaps it for nil, Ended or the exchange's own
// end. So a cancel that comes late finds nil, never a connection that serves another request.
type claim struct {
	ctx  context.Context
	life Life        // ctx, if it is one and still calls Ended
	stop func() bool // else of the context's callback; nil = the context never ends

	held     atomic.Pointer[conn]
	canceled atomic.Bool
	lingers  bool // see Request.Lingers
}

// begin makes the context call Ended when it ends, until forget.
func (c *claim) begin(ctx context.Context) {
	c.ctx = ctx
	if l, ok := ctx.(Life); ok {
		c.life = l
		l.Hear(c)
	} else if ctx.Done() != nil {
		c.stop = context.AfterFunc(ctx, c.Ended)
	}
}

// hold enters a connection. If the exchange was canceled before it could see the connection, hold closes it.
func (c *claim) hold(cn *conn) {
	c.held.Store(cn)
	if c.canceled.Load() {
		c.Ended()
	}
}

// release returns the connection, which is the caller's from then on. It returns nil if Ended has taken it.
func (c *claim) release() *conn { return c.held.Swap(nil) }

const linger = 2 * time.Second

// Ended closes the connection at any time, from any goroutine, or only its way to the worker until the linger is over.
// Whoever reads it may go on, and nobody else gets it any more. It implements [Hearer].
func (c *claim) Ended() {
	c.canceled.Store(true)
	cn := c.release()
	if cn == nil {
		return
	}
	cn.counts.canceled.Add(1)
	if c.lingers && cn.tcp != nil && cn.tcp.CloseWrite() == nil {
		time.AfterFunc(linger, cn.close)
		return
	}
	cn.close()
}

// forget ends what begin began.
func (c *claim) forget() {
	if c.life != nil {
		c.life.Forget(c)
		c.life = nil
	} else if c.stop != nil {
		c.stop()
	}
}

// cause returns why the context or its holder ended the exchange.
func (c *claim) cause() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	return errGivenUp
}
