package zmtp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is a connection whose handshake is done. One goroutine may receive while others send.
type Conn struct {
	peer   Peer
	config Config
	conn   net.Conn
	in     *reader
	signs  atomic.Uint64 // messages and commands that have come

	mu  sync.Mutex // guards out
	out *bufio.Writer

	settled atomic.Bool
	due     time.Time // until Settle the peer has this long; zero = for ever
	place   *newcomer // among those that have yet to settle; nil = a Listener keeps none

	ctx   context.Context // ends with the Conn; its cause is why
	end   context.CancelCauseFunc
	under func() bool // stops watching the context of the caller

	other func(name string, body []byte) error // see OnCommand
}

// ErrSilent ends a Conn whose peer has not answered three PINGs.
var ErrSilent = errors.New("zmtp: the peer does not answer")

// Dial connects to addr, shakes hands and, as a SUB, subscribes, all within Config.Handshake. The Conn ends with ctx.
func Dial(ctx context.Context, addr string, c Config) (*Conn, error) {
	c = c.withDefaults()
	a, err := ParseAddress(addr)
	if err != nil {
		return nil, err
	}
	if a.Network == "tcp" && a.Addr[0] == ':' {
		return nil, fmt.Errorf("zmtp: %s names no host to dial", addr)
	}
	began := time.Now()
	d := net.Dialer{Timeout: c.Handshake, KeepAliveConfig: keepAlive}
	nc, err := d.DialContext(ctx, a.Network, a.Addr)
	if err != nil {
		return nil, fmt.Errorf("zmtp: %w", err)
	}
	return newConn(ctx, nc, a, c, began.Add(c.Handshake))
}

// keepAlive finds a peer whose machine is gone within some 25 s, also where it speaks no 3.1.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}

// newConn shakes hands on nc until the deadline. It closes nc if that fails.
func newConn(ctx context.Context, nc net.Conn, a Address, cfg Config, deadline time.Time) (*Conn, error) {
	c := &Conn{config: cfg, conn: nc, in: newReader(nc, cfg), out: bufio.NewWriterSize(nc, readAhead)}
	c.ctx, c.end = context.WithCancelCause(context.WithoutCancel(ctx))
	c.under = context.AfterFunc(ctx, func() {
		c.end(context.Cause(ctx))
		nc.Close()
	})
	_ = nc.SetDeadline(deadline)
	peer, err := shakeHands(nc, c.in, cfg)
	if err == nil {
		err = c.subscribe()
	}
	if err != nil {
		return nil, fmt.Errorf("zmtp: handshake with %s: %w", a, c.fail(err))
	}
	_ = nc.SetDeadline(time.Time{})
	if cfg.First > 0 {
		c.due = time.Now().Add(cfg.First)
	}
	_ = nc.SetReadDeadline(c.due)
	c.peer = peer
	c.peer.Address = a
	c.other = func(string, []byte) error { return nil }
	c.in.command = c.obey
	c.in.rush = c.rush
	if cfg.Heartbeat > 0 && peer.minor >= 1 {
		go c.beat()
	}
	return c, nil
}

// subscribe sends the subscriptions as messages, which every peer takes; the command of 3.1 is for 3.1 alone.
func (c *Conn) subscribe() error {
	for _, topic := range c.config.Subscribe {
		if err := c.Send(append([]byte{1}, topic...)); err != nil {
			return err
		}
	}
	return nil
}

// Peer returns who is at the other end.
func (c *Conn) Peer() Peer { return c.peer }

// Local returns the address of this end.
func (c *Conn) Local() Address { return addressOf(c.conn.LocalAddr()) }

// Settle marks the peer as genuine: it has sent a message that only a real peer sends. After that the peer may be
// silent for as long as it likes, and a Listener that is full does not close this connection to make room for another.
// The goroutine that receives calls it.
func (c *Conn) Settle() {
	if c.settled.Swap(true) {
		return
	}
	c.place.leave()
	c.due = time.Time{}
	_ = c.conn.SetReadDeadline(c.due)
}

// Done is closed when the Conn has ended.
func (c *Conn) Done() <-chan struct{} { return c.ctx.Done() }

// Recv returns the frames of the next message, one at least. They are valid until the next Recv. An error ends the
// Conn: io.EOF if the peer closed it between two messages.
func (c *Conn) Recv() ([][]byte, error) {
	frames, err := c.in.message()
	if err != nil {
		err = c.fail(err)
		c.in.forget()
		return nil, err
	}
	c.signs.Add(1)
	return frames, nil
}

// Send sends one message of one frame at least. An error ends the Conn.
func (c *Conn) Send(frames ...[]byte) error { return c.SendAll(frames) }

// SendAll sends messages in one piece. An error ends the Conn.
func (c *Conn) SendAll(messages ...[][]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.conn.SetWriteDeadline(time.Now().Add(c.config.Write))
	for _, frames := range messages {
		if err := c.put(frames); err != nil {
			return c.fail(err)
		}
	}
	if err := c.out.Flush(); err != nil {
		return c.fail(err)
	}
	return nil
}

// put writes the frames of a message into the buffer. The caller holds mu.
func (c *Conn) put(frames [][]byte) error {
	var head [9]byte
	for i, f := range frames {
		flags := byte(0)
		if i < len(frames)-1 {
			flags = flagMore
		}
		if _, err := c.out.Write(appendHeader(head[:0], flags, len(f))); err != nil {
			return err
		}
		if _, err := c.out.Write(f); err != nil {
			return err
		}
	}
	return nil
}

// SendCommand sends a command. If that fails the Conn goes on: a peer that has closed may have sent what is still to be
// read, and then the reading ends too.
func (c *Conn) SendCommand(name string, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.conn.SetWriteDeadline(time.Now().Add(c.config.Write))
	if _, err := c.out.Write(appendCommand(nil, name, body)); err == nil {
		_ = c.out.Flush()
	}
}

// OnCommand has f called with each command of the peer but PING and ERROR; f's error ends the Conn. The goroutine that
// receives calls it, before the first Recv.
func (c *Conn) OnCommand(f func(name string, body []byte) error) { c.other = f }

// obey runs a command of the peer: PING is answered, and ERROR ends the Conn.
func (c *Conn) obey(name string, body []byte) error {
	c.signs.Add(1)
	switch name {
	case "PING": // two bytes of time to live, then a context of 16 bytes at most that goes back
		const ttl, most = 2, 16
		if len(body) < ttl || len(body) > ttl+most {
			return fmt.Errorf("zmtp: a PING of %d bytes: %w", len(body), errFrame)
		}
		c.SendCommand("PONG", body[ttl:])
	case "ERROR":
		return fmt.Errorf("zmtp: the peer ends: %q", body)
	default:
		return c.other(name, body)
	}
	return nil
}

// beat pings the peer until the Conn ends.
func (c *Conn) beat() {
	tick := time.NewTicker(c.config.Heartbeat)
	defer tick.Stop()
	const most = 3
	before := c.signs.Load()
	for silent := 0; silent < most; {
		c.SendCommand("PING", []byte{0, 0})
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
		}
		now := c.signs.Load()
		silent++
		if now != before {
			silent = 0
		}
		before = now
	}
	c.fail(ErrSilent)
}

// rush sets the deadline of the rest of a message, and lifts it.
func (c *Conn) rush(on bool) {
	until := c.due
	if on {
		until = time.Now().Add(c.config.Message)
	}
	_ = c.conn.SetReadDeadline(until)
}

// fail ends the Conn for the reason of err, and returns the reason for which it ended first.
func (c *Conn) fail(err error) error {
	c.end(err)
	c.under()
	c.conn.Close()
	c.in.share.Drop()
	return context.Cause(c.ctx)
}

// Close ends the Conn. A Recv under way returns net.ErrClosed.
func (c *Conn) Close() error {
	c.fail(net.ErrClosed)
	return nil
}
