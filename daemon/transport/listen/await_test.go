package listen

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"
)

// TestAwaitData: nothing is read of what has come, and each end of a wait has its error.
func TestAwaitData(t *testing.T) {
	client, ours := pair(t, open(t, Config{}, nil))
	if err := ours.awaitData(time.Unix(1, 0)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a deadline that is over: %v", err)
	}
	if _, err := io.WriteString(client, "abc"); err != nil {
		t.Fatal(err)
	}
	if err := ours.awaitData(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if err := ours.awaitData(time.Unix(1, 0)); err != nil {
		t.Errorf("a request that has come by the deadline: %v", err)
	}
	b := make([]byte, 3)
	_ = ours.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(ours, b); err != nil || string(b) != "abc" {
		t.Errorf("it reads %q, %v", b, err)
	}
	go func() {
		time.Sleep(5 * time.Millisecond) // most often the wait has begun by then
		client.Close()
	}()
	if err := ours.awaitData(time.Now().Add(patience)); !errors.Is(err, errLeft) {
		t.Errorf("the client's end: %v", err)
	}
	ours.Close()
	if err := ours.awaitData(time.Now().Add(patience)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("our close: %v", err)
	}
}

// TestAwait: who awaits something of a client is called once it comes, whether data, the client's end or ours, or when
// time is up, and once only: while a goroutine waits, and when none does any more.
func TestAwait(t *testing.T) {
	for _, silence := range []time.Duration{time.Nanosecond, patience + time.Second} {
		l := open(t, Config{Parked: func(*Conn) {}, parkEvery: 10 * time.Millisecond, longSilence: silence}, nil)
		f := func(what string, until time.Duration, before bool, come func(client net.Conn, ours *Conn), want bool) {
			t.Helper()
			client, ours := pair(t, l)
			if before {
				come(client, ours)
				time.Sleep(10 * time.Millisecond)
			}
			called := make(chan bool, 10)
			go ours.Await(time.Now().Add(until), func(came bool) { called <- came })
			if !before {
				time.Sleep(5 * time.Millisecond)
				come(client, ours)
			}
			select {
			case came := <-called:
				if came != want {
					t.Errorf("%s: came %v; want %v", what, came, want)
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
			at := fmt.Sprintf(", before %v, silence %v", before, silence)
			f("data"+at, patience, before, data, true)
			f("the client's end"+at, patience, before, leaves, false)
			f("our close"+at, patience, before, closes, false)
			f("our reset"+at, patience, before, aborts, false)
		}
		f("nothing", 20*time.Millisecond, false, func(net.Conn, *Conn) {}, false)
	}
}

// TestAwaitTLS: a request on a connection that speaks TLS is awaited by its bytes, of which none is lost.
func TestAwaitTLS(t *testing.T) {
	l := open(t, withTLS(t), nil)
	client, ours := securePair(t, l)
	go func() { _, _ = io.WriteString(client, "abc") }()
	ours.Await(time.Now().Add(patience), func(came bool) {
		b := make([]byte, 3)
		if _, err := io.ReadFull(ours, b); !came || err != nil || string(b) != "abc" {
			t.Errorf("came %v, %q, %v", came, b, err)
		}
	})
}

// TestAwaitHoldsNoGoroutine: connections that wait are waited for by none.
func TestAwaitHoldsNoGoroutine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only there")
	}
	const conns = 200
	l := open(t, Config{Parked: func(*Conn) {}, longSilence: time.Nanosecond}, nil)
	before := runtime.NumGoroutine()
	woken := make(chan struct{}, conns)
	var clients []net.Conn
	for range conns {
		client, ours := pair(t, l)
		clients = append(clients, client)
		ours.Await(time.Now().Add(patience), func(bool) { woken <- struct{}{} })
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

// TestUnread: what was unread comes first, also if nothing more is unread after it.
func TestUnread(t *testing.T) {
	client, ours := pair(t, open(t, Config{}, nil))
	ours.Unread([]byte("b"))
	ours.Unread(nil)
	ours.Unread([]byte("a"))
	if _, err := io.WriteString(client, "c"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 3)
	_ = ours.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(ours, got); err != nil || string(got) != "abc" {
		t.Errorf("it reads %q, %v; want abc", got, err)
	}
}
