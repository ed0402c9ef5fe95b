package socket

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// pair returns both ends of a TCP connection.
func pair(t testing.TB) (ours *Conn, theirs *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialed, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ours, err = New(dialed.(*net.TCPConn))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close(); accepted.Close() })
	return ours, accepted.(*net.TCPConn)
}

// TestBothWays sends bodies of all sizes around those of a call, and reads them back meanwhile: the kernel takes part of
// a write, and a goroutine reads while another writes.
func TestBothWays(t *testing.T) {
	ours, theirs := pair(t)
	go func() {
		b := make([]byte, 50_000)
		for {
			n, err := theirs.Read(b)
			if err != nil {
				return
			}
			if _, err := theirs.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	const call = 128 << 10
	for _, sizes := range [][2]int{{1, 0}, {0, 1}, {1, 1}, {100, 2000}, {call, 0}, {call - 1, 1}, {call, 1},
		{1, call}, {call + 1, call + 1}, {300, 3 << 20}, {3 << 20, 300}} {
		text := make([]byte, sizes[0]+sizes[1])
		for i := range text {
			text[i] = byte(rand.Uint32())
		}
		var all sync.WaitGroup
		all.Go(func() {
			n, err := ours.WriteBoth(text[:sizes[0]], text[sizes[0]:])
			if n != len(text) || err != nil {
				t.Errorf("%v: wrote %d, %v", sizes, n, err)
			}
		})
		got := make([]byte, len(text))
		n, err := io.ReadFull(ours, got)
		all.Wait()
		if err != nil || !bytes.Equal(got, text) {
			t.Fatalf("%v: %d bytes came back, %v; or others than were sent", sizes, n, err)
		}
	}
	if n, err := ours.Read(nil); n != 0 || err != nil {
		t.Errorf("a read into nothing: %d, %v", n, err)
	}
}

// TestEnds holds every way in which a read ends without data to what package net returns.
func TestEnds(t *testing.T) {
	b := make([]byte, 10)
	f := func(name string, end func(ours *Conn, theirs *net.TCPConn), want func(error) bool) {
		t.Helper()
		ours, theirs := pair(t)
		go func() {
			time.Sleep(5 * time.Millisecond) // most often the read waits by then
			end(ours, theirs)
		}()
		n, err := ours.Read(b)
		if n != 0 || !want(err) {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
	is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	f("a close", func(_ *Conn, theirs *net.TCPConn) { theirs.Close() }, is(io.EOF))
	f("a reset", func(_ *Conn, theirs *net.TCPConn) { _ = theirs.SetLinger(0); theirs.Close() }, is(syscall.ECONNRESET))
	f("our close", func(ours *Conn, _ *net.TCPConn) { ours.Close() }, is(net.ErrClosed))
	f("a deadline", func(ours *Conn, _ *net.TCPConn) { _ = ours.SetReadDeadline(time.Unix(1, 0)) }, func(err error) bool {
		var timeout net.Error
		return errors.Is(err, os.ErrDeadlineExceeded) && errors.As(err, &timeout) && timeout.Timeout()
	})
}

// TestWriteEnds: a write that a deadline ends returns how much was written, and one to a client that reset fails.
func TestWriteEnds(t *testing.T) {
	ours, theirs := pair(t)
	text := make([]byte, 32<<20)
	_ = ours.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	n, err := ours.WriteBoth(text[:1<<20], text[1<<20:])
	if !errors.Is(err, os.ErrDeadlineExceeded) || n == 0 || n == len(text) {
		t.Fatalf("wrote %d, %v", n, err)
	}
	go func() {
		got, _ := io.Copy(io.Discard, theirs)
		if got != int64(n) {
			t.Errorf("%d bytes came, %d were written", got, n)
		}
		_ = theirs.SetLinger(0)
		theirs.Close()
	}()
	_ = ours.SetWriteDeadline(time.Time{})
	_ = ours.CloseWrite()
	if _, err := ours.Write(text[:1]); !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a write after the end: %v", err)
	}
	for { // until their end
		if _, err := ours.Read(text); err != nil {
			return
		}
	}
}

func TestReadNow(t *testing.T) {
	ours, theirs := pair(t)
	b := make([]byte, 10)
	now := func() (n int, errno syscall.Errno) {
		_ = ours.Raw().Read(func(fd uintptr) bool {
			n, errno = ReadNow(fd, b)
			return true
		})
		return n, errno
	}
	if _, errno := now(); errno != syscall.EAGAIN {
		t.Errorf("nothing has come: %v", errno)
	}
	if _, err := theirs.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	for {
		n, errno := now()
		if errno == syscall.EAGAIN {
			time.Sleep(time.Millisecond)
			continue
		}
		if n != 3 || errno != 0 {
			t.Errorf("three bytes have come: %d, %v", n, errno)
		}
		break
	}
	theirs.Close()
	for {
		n, errno := now()
		if errno == syscall.EAGAIN {
			time.Sleep(time.Millisecond)
			continue
		}
		if n != 0 || errno != 0 {
			t.Errorf("the end has come: %d, %v", n, errno)
		}
		return
	}
}

// TestNoAllocation: a connection reads and writes without allocating.
func TestNoAllocation(t *testing.T) {
	ours, theirs := pair(t)
	go func() { _, _ = io.Copy(theirs, theirs) }()
	b := make([]byte, 100)
	n := testing.AllocsPerRun(100, func() {
		if _, err := ours.WriteBoth(b[:50], b[50:]); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadFull(ours, b); err != nil {
			t.Error(err)
		}
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
}
