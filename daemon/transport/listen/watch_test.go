package listen

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// watchers are the ways to watch that this system can run.
var watchers = map[string]func() (watcher, error){"native": newWatcher, "peek": newPeek}

func textLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

func eachWatcher(t *testing.T, f func(t *testing.T, l *Listener)) {
	for name, watch := range watchers {
		t.Run(name, func(t *testing.T) { f(t, open(t, Config{}, watch)) })
	}
}

func reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}

func TestGone(t *testing.T) {
	for name, leave := range map[string]func(*net.TCPConn){
		"close":      func(c *net.TCPConn) { c.Close() },
		"half-close": func(c *net.TCPConn) { c.CloseWrite() },
		"reset":      reset,
	} {
		t.Run(name, func(t *testing.T) {
			eachWatcher(t, func(t *testing.T, l *Listener) {
				var waiting, late counter
				client, server := pair(t, l)
				gen := server.Watch(&waiting)
				leave(client)
				waittest.Until(t, "Gone is called", waiting.called)
				if !server.Unwatch(gen) {
					t.Error("Unwatch does not tell that Gone was called")
				}
				gen = server.Watch(&late)
				waittest.Until(t, "Gone is called of a client that had left before", late.called)
				server.Unwatch(gen)
				if server.Unwatch(gen - 1) {
					t.Error("Unwatch of an older generation is not false")
				}
				time.Sleep(2 * peekEvery) // for a second call, which would be wrong
				if a, b := waiting.n.Load(), late.n.Load(); a != 1 || b != 1 {
					t.Errorf("Gone was called %d and %d times, want once each", a, b)
				}
				if got := l.Stats().Gone; got != 2 {
					t.Errorf("stats count %d, want 2", got)
				}
			})
		})
	}
}

func TestNotGone(t *testing.T) {
	eachWatcher(t, func(t *testing.T, l *Listener) {
		client, server := pair(t, l)
		var first, second counter
		gen := server.Watch(&first)
		io.WriteString(client, "POST / HTTP/1.1\r\n") // data is no reason
		time.Sleep(2 * peekEvery)
		if server.Unwatch(gen) {
			t.Error("Gone was called for a client that only sent")
		}
		io.ReadFull(server, make([]byte, len("POST / HTTP/1.1\r\n")))
		gen = server.Watch(&second)
		if server.Unwatch(gen - 1) {
			t.Error("an older Unwatch ended or told a newer Watch")
		}
		client.Close()
		waittest.Until(t, "the second request's Gone", second.called)
		if first.called() {
			t.Error("the event reached the request before")
		}
	})
}

// TestGoneLatency prints how soon a leaving client is noticed; it asserts only that it is.
func TestGoneLatency(t *testing.T) {
	for name, busy := range map[string]int{"idle": 0, "32 connections flat out": 32} {
		t.Run(name, func(t *testing.T) {
			l := open(t, Config{}, nil)
			for range busy {
				echo(t, l)
			}
			var took []time.Duration
			for range 200 {
				client, server := pair(t, l)
				at := make(chan time.Time, 1)
				server.Watch(goneFunc(func() { at <- time.Now() }))
				began := time.Now()
				client.Close()
				took = append(took, (<-at).Sub(began))
				server.Close()
			}
			slices.Sort(took)
			t.Logf("gone after p50 %v, p99 %v, max %v", took[100], took[197], took[199])
		})
	}
}

// echo keeps a connection busy until the test ends: both ends send a byte as soon as they get one.
func echo(t *testing.T, l *Listener) {
	client, server := pair(t, l)
	for _, end := range []net.Conn{client, server} {
		go func() {
			for b := make([]byte, 1); ; {
				if _, err := end.Write(b); err != nil {
					return
				}
				if _, err := io.ReadFull(end, b); err != nil {
					return
				}
			}
		}()
	}
}

type goneFunc func()

func (f goneFunc) Gone() { f() }

// TestHammer races clients that leave against requests that end, connections that close and descriptor numbers that are
// used again. Each request may get the Gone of its own client only.
func TestHammer(t *testing.T) {
	const clients, rounds = 16, 150
	eachWatcher(t, func(t *testing.T, l *Listener) {
		var wrong, told, clean atomic.Int32
		serve := func(c *Conn) {
			defer c.Close()
			for b := make([]byte, 1); ; {
				if _, err := io.ReadFull(c, b); err != nil {
					return
				}
				stays := b[0] == 's' // the client waits for the answer
				var over atomic.Bool
				gen := c.Watch(goneFunc(func() {
					if stays || over.Load() {
						wrong.Add(1)
					}
				}))
				if rand.IntN(4) == 0 {
					time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
				}
				gone := c.Unwatch(gen)
				over.Store(true)
				if gone {
					told.Add(1)
					return
				}
				clean.Add(1)
				if rand.IntN(8) == 0 && !stays {
					c.Abort()
				}
				if _, err := c.Write(b); err != nil {
					return
				}
			}
		}
		var accepting, serving sync.WaitGroup
		accepting.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				serving.Go(func() { serve(From(c)) })
			}
		})
		var asking sync.WaitGroup
		for range clients {
			asking.Go(func() {
				for range rounds {
					if err := visit(l.Addr().(*net.TCPAddr)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		asking.Wait()
		l.Close()
		accepting.Wait() // no request begins after this
		serving.Wait()
		if wrong.Load() != 0 {
			t.Errorf("%d requests were told of another's client, or too late", wrong.Load())
		}
		t.Logf("%d requests told, %d ended by themselves", told.Load(), clean.Load())
	})
}

// visit asks a few times on one connection and waits for the answer; then, half of the time, asks once more and leaves.
func visit(addr *net.TCPAddr) error {
	c, err := net.DialTCP("tcp", nil, addr)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	b := []byte("s")
	for range rand.IntN(4) {
		if _, err := c.Write(b); err != nil {
			return fmt.Errorf("asking: %w", err)
		}
		if _, err := io.ReadFull(c, b); err != nil {
			return fmt.Errorf("waiting: %w", err)
		}
	}
	switch rand.IntN(4) {
	case 0:
		io.WriteString(c, "l")
	case 1:
		io.WriteString(c, "l")
		reset(c)
	}
	return nil
}
