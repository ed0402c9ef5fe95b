package listen

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
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
	page, n, err := ours.Next(pool, Endless)
	if err != nil || string((*page)[:n]) != "abc" {
		t.Fatalf("%d, %v", n, err)
	}
	_ = ours.SetReadDeadline(time.Unix(1, 0))
	if page, _, err := ours.Next(pool, Endless); page != nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a deadline that is over: %v, %v", page, err)
	}
	_ = ours.SetReadDeadline(time.Time{})
	go func() {
		time.Sleep(5 * time.Millisecond) // most often the read waits by then
		client.Close()
	}()
	if page, _, err := ours.Next(pool, Endless); page != nil || err != io.EOF {
		t.Errorf("the end: %v, %v", page, err)
	}
	ours.Close()
	if page, _, err := ours.Next(pool, Endless); page != nil || !errors.Is(err, net.ErrClosed) {
		t.Errorf("our close: %v, %v", page, err)
	}
}

// TestNextAtTheLastMoment: a request that has come is read, though the time to wait for it is over.
func TestNextAtTheLastMoment(t *testing.T) {
	client, ours := pair(t, open(t, Config{}, nil))
	pool := pagesOf()
	for _, text := range []string{"first", "second"} {
		if _, err := io.WriteString(client, text); err != nil {
			t.Fatal(err)
		}
		_ = ours.SetReadDeadline(time.Unix(1, 0))
		eventually := time.Now().Add(10 * time.Second)
		for {
			page, n, err := ours.Next(pool, Endless)
			if page != nil {
				if string((*page)[:n]) != text {
					t.Errorf("%q; want %q", (*page)[:n], text)
				}
				break
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().After(eventually) {
				t.Fatalf("%s: %v", text, err)
			}
			time.Sleep(time.Millisecond) // it is on its way
		}
	}
}

// TestSilence: a wait ends after a while, a longer one after longer; it goes on, and gets what comes then.
func TestSilence(t *testing.T) {
	l := open(t, Config{Parked: func(*Conn) { t.Error("nobody has leased it") }, parkEvery: 10 * time.Millisecond}, nil)
	client, ours := pair(t, l)
	pool := pagesOf()
	_ = ours.SetReadDeadline(time.Now().Add(time.Minute))
	f := func(most Silence, least time.Duration) {
		t.Helper()
		began := time.Now()
		if _, _, err := ours.Next(pool, most); !errors.Is(err, ErrParked) {
			t.Fatalf("a wait: %v", err)
		}
		if took := time.Since(began); took < least {
			t.Errorf("it is over after %s; want %s", took, least)
		}
	}
	f(Short, 0)
	f(Long, 250*time.Millisecond) // 30 looks, of which one may come right after another that was late
	go func() {
		time.Sleep(10 * time.Millisecond)
		_, _ = io.WriteString(client, "abc")
	}()
	if page, n, err := ours.Next(pool, Endless); err != nil || string((*page)[:n]) != "abc" {
		t.Errorf("the wait that goes on: %d, %v", n, err)
	}
}

// TestAwait: who awaits something of a client is called once it comes, whether data, the client's end or ours, or when
// time is up, and once only.
func TestAwait(t *testing.T) {
	l := open(t, Config{Parked: func(*Conn) {}, parkEvery: 10 * time.Millisecond}, nil)
	f := func(what string, until time.Duration, before bool, come func(client net.Conn, ours *Conn), want error) {
		t.Helper()
		client, ours := pair(t, l)
		if before {
			come(client, ours)
			time.Sleep(10 * time.Millisecond)
		}
		_ = ours.SetReadDeadline(time.Now().Add(until))
		called := make(chan error, 10)
		ours.Await(time.Now().Add(until), func() {
			page, _, err := ours.Next(pagesOf(), Endless)
			if (page != nil) != (err == nil) {
				t.Errorf("%s: %v and %v", what, page, err)
			}
			called <- err
		})
		if !before {
			come(client, ours)
		}
		select {
		case err := <-called:
			if !errors.Is(err, want) {
				t.Errorf("%s: read %v; want %v", what, err, want)
			}
		case <-time.After(patience):
			t.Errorf("%s: nobody is called", what)
		}
		_, _ = io.WriteString(client, "y") // nobody awaits that
		ours.Close()
		time.Sleep(5 * time.Millisecond)
		if n := len(called); n > 0 {
			t.Errorf("%s: called %d times more", what, n)
		}
	}
	data := func(client net.Conn, _ *Conn) { _, _ = io.WriteString(client, "x") }
	leaves := func(client net.Conn, _ *Conn) { client.Close() }
	closes := func(_ net.Conn, ours *Conn) { ours.Close() }
	aborts := func(_ net.Conn, ours *Conn) { ours.Abort() }
	for _, before := range []bool{false, true} {
		f(fmt.Sprint("data, before ", before), patience, before, data, nil)
		f(fmt.Sprint("the client's end, before ", before), patience, before, leaves, io.EOF)
		f(fmt.Sprint("our close, before ", before), patience, before, closes, net.ErrClosed)
		f(fmt.Sprint("our reset, before ", before), patience, before, aborts, net.ErrClosed)
	}
	f("nothing", 20*time.Millisecond, false, func(net.Conn, *Conn) {}, os.ErrDeadlineExceeded)
}

// TestAwaitHoldsNoGoroutine: connections that wait are waited for by none.
func TestAwaitHoldsNoGoroutine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only there")
	}
	const conns = 200
	l := open(t, Config{Parked: func(*Conn) {}}, nil)
	before := runtime.NumGoroutine()
	woken := make(chan struct{}, conns)
	var clients []net.Conn
	for range conns {
		client, ours := pair(t, l)
		clients = append(clients, client)
		ours.Await(time.Now().Add(patience), func() { woken <- struct{}{} })
	}
	if n := runtime.NumGoroutine() - before; n >= conns/2 {
		t.Errorf("%d goroutines for %d connections that wait", n, conns)
	}
	for _, c := range clients {
		_, _ = io.WriteString(c, "x")
	}
	for range conns {
		<-woken
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
