package listen

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
)

func TestStalledReaderIsReset(t *testing.T) {
	l := open(t, Config{WriteTimeout: 200 * time.Millisecond}, nil)
	client, server := pair(t, l)
	failed := make(chan error, 1)
	go func() {
		for b := make([]byte, 1<<20); ; {
			if _, err := server.Write(b); err != nil {
				failed <- err
				return
			}
		}
	}()
	select {
	case err := <-failed:
		if !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, syscall.ETIMEDOUT) {
			t.Errorf("Write = %v, want a timeout", err)
		}
	case <-time.After(patience):
		t.Fatal("a write to a client that does not read was not given up")
	}
	client.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, client); err == nil {
		t.Error("the client saw a clean end")
	}
	if got := l.Stats(); got.SlowClosed != 1 || got.Open != 0 {
		t.Errorf("stats = %+v, want one slow and none open", got)
	}
}

// TestSteadyReaderSurvives sends more in one write than the reader takes in many timeouts.
func TestSteadyReaderSurvives(t *testing.T) {
	const size, piece = 8 << 20, 512 << 10
	l := open(t, Config{WriteTimeout: 1500 * time.Millisecond}, nil)
	client, server := pair(t, l)
	client.SetReadBuffer(64 << 10)
	failed := make(chan error, 1)
	go func() {
		n, err := server.Write(make([]byte, size))
		if err == nil && n != size {
			err = io.ErrShortWrite
		}
		failed <- err
	}()
	client.SetReadDeadline(time.Now().Add(patience))
	for range size / piece {
		if _, err := io.ReadFull(client, make([]byte, piece)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(250 * time.Millisecond) // 4 s in all
	}
	if err := <-failed; err != nil {
		t.Errorf("a slow but steady reader was cut: %v", err)
	}
	if got := l.Stats().SlowClosed; got != 0 {
		t.Errorf("%d connections count as slow", got)
	}
}

// TestOutsideDeadline: SetWriteDeadline does nothing, SetReadDeadline works.
func TestOutsideDeadline(t *testing.T) {
	l := open(t, Config{}, nil)
	_, server := pair(t, l)
	past := time.Now().Add(-time.Second)
	for name, set := range map[string]func(time.Time) error{
		"SetWriteDeadline": server.SetWriteDeadline,
		"SetDeadline":      server.SetDeadline,
	} {
		if err := set(past); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := server.Write([]byte("x")); err != nil {
			t.Errorf("Write after %s = %v", name, err)
		}
	}
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read after SetDeadline = %v", err)
	}
}

// TestLinger: a client that sends on after it was refused reads the answer all the same.
func TestLinger(t *testing.T) {
	l := open(t, Config{}, nil)
	client, server := pair(t, l)
	io.WriteString(client, "more than is read")
	io.ReadFull(server, make([]byte, 4))
	server.Linger()
	io.WriteString(server, "429")
	closed := make(chan error, 1)
	go func() { closed <- server.Close() }()
	client.SetDeadline(time.Now().Add(patience))
	answer, err := io.ReadAll(client)
	if string(answer) != "429" || err != nil {
		t.Errorf("the client read %q, %v; want the answer and a clean end", answer, err)
	}
	if _, err := client.Write(make([]byte, 100)); err != nil {
		t.Errorf("the client's sending was broken: %v", err)
	}
	client.Close()
	if err := <-closed; err != nil {
		t.Errorf("Close = %v", err)
	}
}

func TestLingerIsBounded(t *testing.T) {
	l := open(t, Config{}, nil)
	client, server := pair(t, l)
	server.Linger()
	var sent int
	ended := make(chan struct{})
	go func() { // never reads, never stops
		defer close(ended)
		for b := make([]byte, 64<<10); ; {
			n, err := client.Write(b)
			if sent += n; err != nil {
				return
			}
		}
	}()
	server.Close()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("Close reads without an end")
	}
	if sent < lingerBytes {
		t.Errorf("%d bytes were taken, want %d", sent, lingerBytes)
	}
}

func BenchmarkWrite(b *testing.B) {
	for name, size := range map[string]int{"200B": 200, "32KB": 32 << 10} {
		b.Run(name, func(b *testing.B) {
			l := open(b, Config{}, nil)
			client, server := pair(b, l)
			go io.Copy(io.Discard, client)
			block := make([]byte, size)
			bench := func(name string, w func([]byte) (int, error)) {
				b.Run(name, func(b *testing.B) {
					for b.Loop() {
						if _, err := w(block); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
			bench("conn", server.Write)
			bench("bare", server.raw.Write)
			bench("deadline a write", func(p []byte) (int, error) {
				server.raw.SetWriteDeadline(time.Now().Add(30 * time.Second))
				return server.raw.Write(p)
			})
		})
	}
}

func BenchmarkWatch(b *testing.B) {
	l := open(b, Config{}, nil)
	_, server := pair(b, l)
	var g counter
	b.ReportAllocs()
	for b.Loop() {
		server.Unwatch(server.Watch(&g))
	}
}

// BenchmarkAccept is a connection accepted and closed, beside one without us.
func BenchmarkAccept(b *testing.B) {
	run := func(b *testing.B, l net.Listener) {
		b.ReportAllocs()
		for b.Loop() {
			client, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			c, err := l.Accept()
			if err != nil {
				b.Fatal(err)
			}
			client.(*net.TCPConn).SetLinger(0)
			client.Close()
			c.Close()
		}
	}
	b.Run("listen", func(b *testing.B) { run(b, open(b, Config{}, nil)) })
	b.Run("bare", func(b *testing.B) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		run(b, l)
	})
}

// BenchmarkIdle prints what an open connection holds of the heap, beyond its descriptor and the kernel's buffers; net's own
// part is in it.
func BenchmarkIdle(b *testing.B) {
	const n = 200
	l := open(b, Config{}, nil)
	for range n {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		defer client.Close()
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range n {
		c, err := l.Accept()
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
	}
	after := heap()
	for b.Loop() { // nothing to repeat
	}
	b.ReportMetric(float64(after-before)/n, "B/conn")
}
