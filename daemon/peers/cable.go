package peers

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/daemon/transport/socket"
)

// keptReply bounds the memory for replies that a cable keeps between two of them.
const keptReply = 256 << 10

// cable is a connection to Redis on which nobody waits for an answer. One goroutine reads from it.
type cable struct {
	client *redis.Client // that made the connection, password included
	conn   net.Conn
	raw    syscall.RawConn
	out    []byte // the write under way
	in     []byte // the part of a reply that has come

	tryRead, tryWrite func(fd uintptr) bool // bound once
	n                 int
	errno             syscall.Errno
	wrote             int
	outErrno          syscall.Errno
}

var errUnasked = errors.New("peers: a reply that nobody asked for, or none of a Redis")

// cable connects to Redis. It returns nil if the connection cannot be read and written without waiting, as with TLS.
func (l *link) cable(ctx context.Context) (*cable, error) {
	c := &cable{}
	opt := l.opt
	opt.PoolSize = 1
	dial := opt.Dialer
	opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		c.conn = conn
		return conn, err
	}
	c.client = redis.NewClient(&opt)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := c.client.Ping(ctx).Err(); err != nil { // it may be dialled still: conn is not ours to read
		_ = c.client.Close()
		return nil, err
	}
	err := c.conn.SetDeadline(time.Time{})
	plain, ok := c.conn.(syscall.Conn)
	if err == nil && ok {
		c.raw, err = plain.SyscallConn()
	}
	if err != nil || !ok {
		_ = c.client.Close()
		return nil, err
	}
	c.tryRead, c.tryWrite = c.readSome, c.writeSome
	return c, nil
}

// writeCommands writes the commands that append frames and that read the entries after those ids. It waits for nothing.
func (c *cable) writeCommands(all []batch, streams, after []string) error {
	b := c.out[:0]
	for i := range all {
		most := strconv.FormatInt(all[i].most, 10)
		for _, f := range all[i].frames {
			b = command(b, 8, "XADD", all[i].stream, "MAXLEN", "~", most, "*", "f")
			b = append(bulk(b, len(f)), f...)
			b = append(b, "\r\n"...)
		}
	}
	b = command(b, 4+2*len(streams), "XREAD", "COUNT", strconv.Itoa(readCount), "STREAMS")
	c.out = command(command(b, 0, streams...), 0, after...)
	err := c.raw.Write(c.tryWrite)
	switch {
	case err != nil:
		return err
	case c.outErrno != 0 && c.outErrno != syscall.EAGAIN:
		return c.outErrno
	case c.wrote < len(c.out): // the socket is full; the reading goroutine notices if it stays so
		rest := c.out[c.wrote:]
		c.out = nil
		go func() { _, _ = c.conn.Write(rest) }()
	}
	return nil
}

// command appends the head of an array of n elements, unless n is 0, and the first of these elements.
func command(b []byte, n int, all ...string) []byte {
	if n > 0 {
		b = append(strconv.AppendInt(append(b, '*'), int64(n), 10), "\r\n"...)
	}
	for _, s := range all {
		b = append(append(bulk(b, len(s)), s...), "\r\n"...)
	}
	return b
}

func bulk(b []byte, n int) []byte {
	return append(strconv.AppendInt(append(b, '$'), int64(n), 10), "\r\n"...)
}

func (c *cable) writeSome(fd uintptr) (done bool) {
	c.wrote, c.outErrno = socket.WriteNow(fd, c.out)
	return true
}

// readMore waits for the next bytes of a reply.
func (c *cable) readMore() error {
	if cap(c.in)-len(c.in) < 4<<10 {
		c.in = append(make([]byte, 0, 2*cap(c.in)+16<<10), c.in...)
	}
	if err := c.raw.Read(c.tryRead); err != nil {
		return err
	}
	switch {
	case c.errno != 0:
		return c.errno
	case c.n == 0:
		return io.EOF
	}
	c.in = c.in[:len(c.in)+c.n]
	if len(c.in) > maxReply {
		return errUnasked
	}
	return nil
}

func (c *cable) readSome(fd uintptr) (done bool) {
	c.n, c.errno = socket.ReadNow(fd, c.in[len(c.in):cap(c.in)])
	return c.errno != syscall.EAGAIN
}

// dropReply drops the reply that was read.
func (c *cable) dropReply() {
	c.in = c.in[:0]
	if cap(c.in) > keptReply {
		c.in = nil
	}
}

func (c *cable) close() {
	_ = c.conn.Close() // first, as the library reads from it before it closes it
	_ = c.client.Close()
}

// redisReply is the unread rest of a reply. It is short if more bytes must come, and bad if it does not fit the
// commands that were sent.
type redisReply struct {
	b          []byte
	short, bad bool
}

// parseReply reads the reply to the commands of writeCommands. It returns whole = false if a part has not come yet.
func parseReply(b []byte, all []batch) (x exchanged, whole bool, err error) {
	r := redisReply{b: b}
	x.taken, x.last, x.errs = make([]int, len(all)), make([]string, len(all)), make([]error, len(all))
	for i := range all {
		for k := range all[i].frames {
			id := r.bulk()
			if k == len(all[i].frames)-1 {
				x.last[i] = string(id)
			}
		}
		x.taken[i] = len(all[i].frames)
	}
	streams := r.number('*')
	if streams > 0 {
		x.got = map[string][]entry{}
	}
	for i := 0; i < streams && r.well(); i++ {
		r.array(2)
		name := r.bulk()
		var of []entry
		for k := r.number('*'); k > 0 && r.well(); k-- {
			of = append(of, r.entry())
		}
		x.got[string(name)] = of
	}
	switch {
	case r.bad, !r.short && len(r.b) > 0:
		return x, false, errUnasked
	case r.short:
		return x, false, nil
	}
	return x, true, nil
}

// entry reads one message of a stream; its frame is a part of the reply. A message without the field has no frame.
func (r *redisReply) entry() (e entry) {
	r.array(2)
	e.id = string(r.bulk())
	for n := r.number('*') / 2; n > 0 && r.well(); n-- {
		field, value := r.bulk(), r.bulk()
		if string(field) == "f" {
			e.frame = value
		}
	}
	return e
}

func (r *redisReply) well() bool { return !r.bad && !r.short }

func (r *redisReply) array(n int) {
	if r.number('*') != n && r.well() {
		r.bad = true
	}
}

// number reads a line of a kind. -1 stands for a value that does not exist.
func (r *redisReply) number(kind byte) (n int) {
	if !r.well() {
		return 0
	}
	for i, c := range r.b {
		switch {
		case i == 0:
			r.bad = c != kind
		case c == '\n':
			end := i - 1
			r.bad = end < 1 || r.b[end] != '\r'
			if r.bad {
				return 0
			}
			n, err := strconv.Atoi(string(r.b[1:end]))
			r.bad = err != nil || n < -1 || n > maxReply
			r.b = r.b[i+1:]
			return n
		case i > 12:
			r.bad = true
		}
		if r.bad {
			return 0
		}
	}
	r.short = true
	return 0
}

func (r *redisReply) bulk() (s []byte) {
	n := r.number('$')
	switch {
	case !r.well():
		return nil
	case n < 0:
		r.bad = true
		return nil
	case len(r.b) < n+2:
		r.short = true
		return nil
	case r.b[n] != '\r' || r.b[n+1] != '\n':
		r.bad = true
		return nil
	}
	s, r.b = r.b[:n:n], r.b[n+2:]
	return s
}
