package zmtp

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/parts/quota"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// settling settles with the first message, and answers each.
func settling(c *Conn) {
	for {
		m, err := c.Recv()
		if err != nil {
			return
		}
		c.Settle()
		if c.Send(m...) != nil {
			return
		}
	}
}

// TestStrangersGiveWay: silent peers hold no place that another wants; one that has spoken keeps its own.
func TestStrangersGiveWay(t *testing.T) {
	l, at := listen(t, "tcp://127.0.0.1:0", Config{Kind: ROUTER, Peers: 3, First: time.Hour}, settling)
	known := dial(t, at, Config{Kind: DEALER})
	speak := func(c *Conn) error {
		if err := c.Send([]byte("a")); err != nil {
			return err
		}
		_, err := c.Recv()
		return err
	}
	if err := speak(known); err != nil {
		t.Fatal(err)
	}
	var silent []*Conn
	for range 5 {
		silent = append(silent, dial(t, at, Config{Kind: DEALER}))
	}
	if err := speak(known); err != nil {
		t.Error("the peer that has spoken lost its place:", err)
	}
	if err := speak(silent[4]); err != nil {
		t.Error("the newest stranger has no place:", err)
	}
	waittest.Until(t, "three have a place", func() bool { n, refused := l.Peers(); return n == 3 && refused == 3 })
	if err := speak(silent[0]); err == nil {
		t.Error("the oldest stranger still has one")
	}
}

// TestTurnedAwayOnce: a peer that gives way while it shakes hands is counted and told of once.
func TestTurnedAwayOnce(t *testing.T) {
	var told atomic.Int64
	l, at := listen(t, "tcp://127.0.0.1:0", Config{Kind: ROUTER, Peers: 1, First: time.Hour,
		Refused: func(Address, error) { told.Add(1) }}, settling)
	const come = 4
	for range come {
		c, err := net.Dial("tcp", strings.TrimPrefix(at, "tcp://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	waittest.Until(t, "one has a place", func() bool {
		n, refused := l.Peers()
		return n == 1 && refused >= come-1
	})
	if _, refused := l.Peers(); refused != come-1 || told.Load() != come-1 {
		t.Errorf("%d were turned away and %d told of, of %d", refused, told.Load(), come-1)
	}
}

// TestFirstMessage: a peer that does not say what its like says is closed, and one that has may be silent.
func TestFirstMessage(t *testing.T) {
	l, at := listen(t, "tcp://127.0.0.1:0", Config{Kind: ROUTER, First: 300 * time.Millisecond}, settling)
	known, silent := dial(t, at, Config{Kind: DEALER}), dial(t, at, Config{Kind: DEALER})
	_ = known.Send([]byte("a"))
	if _, err := known.Recv(); err != nil {
		t.Fatal(err)
	}
	if _, err := silent.Recv(); err == nil {
		t.Error("a silent peer is answered")
	}
	time.Sleep(400 * time.Millisecond)
	_ = known.Send([]byte("b"))
	if _, err := known.Recv(); err != nil {
		t.Error("a known peer that was silent is closed:", err)
	}
	if n, _ := l.Peers(); n != 1 {
		t.Errorf("%d peers are left", n)
	}
}

// TestHeld: messages that have come in part are bounded over all peers, and the bound is given back with them.
func TestHeld(t *testing.T) {
	held := quota.New(1 << 20)
	_, at := listen(t, "tcp://127.0.0.1:0", Config{Kind: PULL, Held: held, Message: time.Minute}, func(c *Conn) {
		for {
			if _, err := c.Recv(); err != nil {
				return
			}
		}
	})
	half := append([]byte{flagLong, 0, 0, 0, 0, 0, 0x10, 0, 0}, bytes.Repeat([]byte("x"), 600<<10)...) // of 1 MiB
	var open []net.Conn
	for range 3 {
		c, err := net.Dial("tcp", strings.TrimPrefix(at, "tcp://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(soon))
		_, _ = c.Write(append(greeting(), ready(Config{Kind: PUSH})...))
		_, _ = c.Write(half)
		open = append(open, c)
	}
	small := dial(t, at, Config{Kind: PUSH})
	for range 20 {
		if err := small.Send([]byte("a message")); err != nil {
			t.Fatal(err)
		}
	}
	if held.Held() > 1<<20 {
		t.Errorf("%d bytes are held", held.Held())
	}
	for _, c := range open {
		c.Close()
	}
	waittest.Until(t, "all is given back", func() bool { return held.Held() == 0 })
	r := newReader(bytes.NewReader(half), Config{Held: quota.New(100 << 10)}.withDefaults())
	if _, err := r.message(); !errors.Is(err, quota.ErrFull) {
		t.Errorf("a message beyond all that may be held: %v", err)
	}
	r.forget()
	if cap(r.buf) > keepBuffer || r.limits.Held.Held() != 0 {
		t.Errorf("%d bytes and %d of the bound are kept", cap(r.buf), r.limits.Held.Held())
	}
}

// TestNothingIsKept: a peer that is silent after a message holds nothing of it.
func TestNothingIsKept(t *testing.T) {
	r := newReader(strings.NewReader("\x01\x01a\x00\x01b"), Config{}.withDefaults())
	if _, err := r.message(); err != nil {
		t.Fatal(err)
	}
	r.forget()
	for _, f := range r.frames[:cap(r.frames)] {
		if f != nil {
			t.Errorf("frame %q is kept", f)
		}
	}
}
