package listen

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// counted counts the deadlines that are set.
type counted struct {
	net.Conn
	deadlines int
}

func (c *counted) SetReadDeadline(t time.Time) error {
	c.deadlines++
	return c.Conn.SetReadDeadline(t)
}

func TestReadDeadlinesAreSetWhenNeeded(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	raw := &counted{Conn: near}
	c := &Conn{raw: raw, socket: raw, census: &census{}}
	b := make([]byte, 8)
	f := func(what string, wait time.Duration, want int) {
		t.Helper()
		go far.Write([]byte("x"))
		if err := c.SetReadDeadline(time.Now().Add(wait)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(b); err != nil || raw.deadlines != want {
			t.Fatalf("%s: %v, %d deadlines set; want %d", what, err, raw.deadlines, want)
		}
	}
	f("the first", time.Hour, 1)
	_ = c.SetReadDeadline(time.Now().Add(time.Minute)) // nothing is read under it
	f("about the same", time.Hour, 1)
	f("a shorter one", 10*time.Minute, 2)
	f("a longer one", time.Hour, 3)
	_ = c.SetReadDeadline(time.Unix(1, 0))
	if _, err := c.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a deadline that has passed: %v", err)
	}
	f("after that", time.Hour, 5)
	_ = c.SetReadDeadline(time.Time{})
	go far.Write([]byte("x"))
	if _, err := c.Read(b); err != nil || !c.readBy.set.IsZero() {
		t.Fatalf("none: %v, set to %v", err, c.readBy.set)
	}
}

func TestReadDeadlineReachesAReadThatRuns(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	c := &Conn{raw: near, socket: near, census: &census{}}
	_ = c.SetReadDeadline(time.Now().Add(time.Hour))
	ended := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		ended <- err
	}()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		_ = c.SetReadDeadline(time.Unix(1, 0))
		select {
		case err := <-ended:
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
			return
		default:
		}
	}
	t.Fatal("the read waits on")
}
