package resp

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/cache/parts/quota"
	"github.com/warmpath/warmpath/daemon/transport/socket"
)

// conn is one client. Its own goroutine runs everything except finish.
type conn struct {
	server *Server
	net    net.Conn
	raw    net.Conn // net without TLS
	id     int64
	owner  netip.Addr // the address that EXISTS promises values to
	in     *bufio.Reader
	reader reader
	out    writer

	view kvstore.View // the values that its commands reach
	peer bool         // a daemon of the same pool: its keys are the store's own, and its commands are not passed on

	opened     time.Time
	introduced atomic.Bool // it has sent a command, and the password if there is one
	authorized bool
	named      bool // its first commands were those of a Redis library; LMCache's native client sends none of them
	settled    bool // named has been decided
	db         int
	name       string
	quit       bool

	filling *kvstore.Filling // of the SET that is being read
	refused error            // why filling is nil

	within bool      // a command has begun: the rest of it is due
	until  time.Time // the read deadline in force; zero = none
	due    time.Time // when the command must be complete; zero = not known yet

	mu     sync.Mutex // guards idle and ending, for finish
	idle   bool
	ending bool
}

// readPiece bounds the bytes of a value that one system call reads, so that the client sends the next ones meanwhile.
// With longer calls SET of 1 MiB went from 1.14 times the speed of redis-server down to 1.03, of 4 MiB from 1.1 to
// 1.04.
const readPiece = 128 << 10

// pieceTime is how long a client may take for the next piece of a command. The whole command has pieceTime and a second
// for each leastRate bytes, because the value's memory cannot be used for anything else meanwhile.
const pieceTime = 30 * time.Second

// timeFor returns how long n bytes may take to arrive.
func timeFor(n int64) time.Duration { return pieceTime + time.Duration(n/leastRate)*time.Second }

func newConn(s *Server, n net.Conn, id int64) *conn {
	c := &conn{server: s, net: n, raw: n, id: id, opened: time.Now(), authorized: s.config.Password == "",
		view: kvstore.NewView(s.config.Store, kvstore.Everywhere)}
	if a, err := netip.ParseAddrPort(n.RemoteAddr().String()); err == nil {
		c.owner = a.Addr().Unmap()
	}
	tcp, plain := n.(*net.TCPConn)
	if plain {
		sizeBuffers(tcp)
	}
	if t := s.config.TLS; t != nil {
		c.net = tls.Server(n, t)
	} else if plain {
		if bare, err := socket.New(tcp); err == nil {
			c.net = bare
		}
	}
	c.in = bufio.NewReaderSize(c, readBuffer)
	c.reader = reader{in: c.in, sink: c, share: quota.NewShare(s.held, keptArgBuf)}
	c.out = writer{conn: c.net, sent: &s.counts.written}
	return c
}

// serve executes commands until the client leaves or breaks the protocol.
func (c *conn) serve() {
	if kvstore.Touch(c.converse) != nil { // a value in place is gone: no reply to this command would be right
		c.server.config.Log.Debug("a client of the KV cache is closed", "client", c.owner, "error", kvstore.ErrTorn)
	}
}

func (c *conn) converse() {
	defer c.abort()
	defer c.reader.forget()
	if !c.shakeHands() {
		return
	}
	for !c.quit && c.await() {
		err := c.reader.next()
		if err == nil {
			err = c.execute()
		}
		c.within = false
		c.reader.forget()
		if err == nil && c.authorized {
			c.introduced.Store(true)
		}
		if c.fail(err) {
			break
		}
	}
	_ = c.out.flushIf(1)
}

// introduction is how long a client may take for TLS's handshake, and to give the password where one is set. A client
// that has done so may be silent for ever, as LMCache's native client never reconnects. Where there is no password, a
// client that has sent no command gives its place to another once all are taken; see Server.makeRoom.
const introduction = 10 * time.Second

// shakeHands does TLS's handshake.
func (c *conn) shakeHands() bool {
	t, ok := c.net.(*tls.Conn)
	if !ok {
		return true
	}
	ctx, cancel := context.WithDeadline(context.Background(), c.opened.Add(introduction))
	defer cancel()
	return t.HandshakeContext(ctx) == nil
}

// fail reports whether an error ends the connection. It sends the client an error that the client can mend.
func (c *conn) fail(err error) bool {
	if err == nil {
		return false
	}
	if p, ok := errors.AsType[protocolError](err); ok {
		c.server.counts.failed.Add(1)
		c.out.fail(p.Error())
		c.server.config.Log.Debug("a client of the KV cache does not speak Redis's protocol", "client", c.owner, "error", p)
		return true
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.server.counts.stalled.Add(1)
		if c.server.stalls.Due(time.Now(), time.Minute) {
			c.server.config.Log.Warn("a client of the KV cache stopped in the middle of a command or a reply, and is closed",
				"client", c.owner)
		}
	}
	c.out.out = nil
	return true
}

// await waits for the first byte of a command, without a limit, and reports whether it came.
func (c *conn) await() bool {
	if c.in.Buffered() == 0 {
		c.mu.Lock()
		c.idle = !c.ending
		ending := c.ending
		c.mu.Unlock()
		if ending {
			return false
		}
		_, err := c.in.Peek(1)
		c.mu.Lock()
		c.idle = false
		c.mu.Unlock()
		if err != nil {
			return false
		}
	}
	c.within = true
	c.due = time.Time{}
	return true
}

// finish ends the connection after its present command.
func (c *conn) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	if c.idle {
		_ = c.net.SetReadDeadline(time.Now())
	}
}

// Read reads from the client, for c.in. It sends the replies before it waits. Within a command it sets a deadline, once
// a second.
func (c *conn) Read(p []byte) (int, error) {
	if err := c.out.flushIf(1); err != nil {
		return 0, err
	}
	if err := c.setDeadline(); err != nil {
		return 0, err
	}
	n, err := c.net.Read(p)
	c.server.counts.read.Add(uint64(n))
	return n, err
}

func (c *conn) setDeadline() error {
	if !c.authorized && !c.introduced.Load() {
		if end := c.opened.Add(introduction); c.until != end {
			c.until = end
			return c.deadline()
		}
		return nil
	}
	if !c.within {
		if c.until.IsZero() {
			return nil
		}
		c.until = time.Time{}
	} else {
		now := time.Now()
		if c.due.IsZero() {
			c.due = now.Add(timeFor(maxArgBuf))
		}
		next := now.Add(pieceTime)
		if c.due.Before(next) {
			next = c.due
		}
		if !c.until.After(next) && next.Sub(c.until) < time.Second {
			return nil
		}
		c.until = next
	}
	return c.deadline()
}

func (c *conn) deadline() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending && !c.within {
		return os.ErrDeadlineExceeded
	}
	return c.net.SetReadDeadline(c.until)
}

// wantsValue reports whether the third argument is the value of a SET.
func (c *conn) wantsValue(args [][]byte) bool { return c.authorized && equalFold(args[0], "SET") }

func (c *conn) stranger() bool { return !c.authorized }

// firstPiece bytes of a value must have come before memory is reserved for it. c.in mostly has them already, with the
// command's header, so no read waits for them.
const firstPiece = 8 << 10

// take reads the value of a SET into its place in the store.
func (c *conn) take(key []byte, n int64, in *bufio.Reader) error {
	c.abort()
	c.due = time.Now().Add(timeFor(n))
	if _, err := in.Peek(int(min(n, firstPiece))); err != nil {
		return err
	}
	c.filling, c.refused = c.view.Reserve(c.key(key), n)
	if c.refused != nil {
		_, err := io.CopyN(io.Discard, in, n)
		return err
	}
	for _, piece := range c.filling.Pieces() {
		for part := range slices.Chunk(piece, readPiece) {
			if _, err := io.ReadFull(in, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// abort frees the memory of a SET that failed.
func (c *conn) abort() {
	if c.filling != nil {
		c.filling.Abort()
		c.filling = nil
	}
	c.refused = nil
}

const maxName = 1 << 10

// call sets the name that a client gives itself. The name of the pool marks a daemon of the same pool, which may use
// all keys. call returns false if a client has no right to that name. Then it has sent an error, so that a member's
// keys are not stored among a client's.
func (c *conn) call(name string) bool {
	if len(name) > maxName {
		c.failed("ERR a client's name is longer than " + strconv.Itoa(maxName) + " bytes")
		return false
	}
	peer := c.server.config.Peer != "" && name == c.server.config.Peer
	if peer && !c.mayBePeer() {
		c.server.warnOfStranger(c.owner)
		c.failed("NOPERM this is the name of a daemon of the pool: set kv_cache.password_file, or connect from the " +
			"address of a member")
		return false
	}
	reach := kvstore.Everywhere
	if peer {
		reach = kvstore.Here
	}
	c.name, c.peer, c.view = name, peer, kvstore.NewView(c.server.config.Store, reach)
	return true
}

// mayBePeer reports whether the client has given the password, or, if none is set, has the address of a member.
func (c *conn) mayBePeer() bool {
	s := &c.server.config
	return c.authorized && (s.Password != "" || s.Pool != nil && s.Pool.Member(c.owner))
}

// key returns the store's name of a client's key: databases are namespaces. "r" marks this door.
func (c *conn) key(key []byte) string {
	if c.peer {
		return string(key)
	}
	b := make([]byte, 0, len(key)+2)
	b = append(b, 'r', byte(c.db))
	return string(append(b, key...))
}

// get leases the value of a key.
func (c *conn) get(key []byte) *kvstore.Lease {
	if len(key) > kvstore.MaxKey {
		return nil
	}
	return c.view.Get(context.Background(), c.key(key), c.owner)
}
