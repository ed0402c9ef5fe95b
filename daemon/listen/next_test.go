package listen

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

func pagesOf() *sync.Pool {
	return &sync.Pool{New: func() any { b := make([]byte, 100); return &b }}
}

// TestNext: what comes is read into memory of the pool, and every end of a wait leaves none of it held.
func TestNext(t *testing.T) {
	client, ours := pair(t, open(t, Config{}, nil))
	pool := pagesOf()
	if _, err := io.WriteString(client, "abc"); err != nil {
		t.Fatal(err)
	}
	page, n, err := ours.Next(pool, false)
	if err != nil || string((*page)[:n]) != "abc" {
		t.Fatalf("%d, %v", n, err)
	}
	_ = ours.SetReadDeadline(time.Unix(1, 0))
	if page, _, err := ours.Next(pool, false); page != nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a deadline that is over: %v, %v", page, err)
	}
	_ = ours.SetReadDeadline(time.Time{})
	go func() {
		time.Sleep(5 * time.Millisecond) // most often the read waits by then
		client.Close()
	}()
	if page, _, err := ours.Next(pool, false); page != nil || err != io.EOF {
		t.Errorf("the end: %v, %v", page, err)
	}
	ours.Close()
	if page, _, err := ours.Next(pool, false); page != nil || !errors.Is(err, net.ErrClosed) {
		t.Errorf("our close: %v, %v", page, err)
	}
}

// TestNextIsParkedOnce: a wait ends after a while, goes on, and gets what comes then.
func TestNextIsParkedOnce(t *testing.T) {
	l := open(t, Config{Parked: func(*Conn) { t.Error("nobody has leased it") }, parkEvery: time.Millisecond}, nil)
	client, ours := pair(t, l)
	pool := pagesOf()
	_ = ours.SetReadDeadline(time.Now().Add(time.Minute))
	if _, _, err := ours.Next(pool, true); !errors.Is(err, ErrParked) {
		t.Fatalf("a wait: %v", err)
	}
	go func() {
		time.Sleep(10 * time.Millisecond)
		_, _ = io.WriteString(client, "abc")
	}()
	if page, n, err := ours.Next(pool, false); err != nil || string((*page)[:n]) != "abc" {
		t.Errorf("the wait that goes on: %d, %v", n, err)
	}
}

// TestFailNext: the next read fails, and the one after it reads.
func TestFailNext(t *testing.T) {
	client, ours := pair(t, open(t, Config{}, nil))
	failure := errors.New("too late")
	ours.FailNext(failure)
	_, _ = io.WriteString(client, "abc")
	b := make([]byte, 3)
	if n, err := ours.Read(b); n != 0 || err != failure {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := io.ReadFull(ours, b); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
