package upstream

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// pattern is random; its period in noise is odd to all sizes in use.
var pattern = func() []byte {
	p := make([]byte, 100_003+pieceSize)
	rand.NewChaCha8([32]byte{}).Read(p[:100_003])
	copy(p[100_003:], p)
	return p
}()

// noise is n bytes that a lost, doubled or swapped piece would change.
type noise struct{ at, n int64 }

func (r *noise) Read(p []byte) (int, error) {
	if r.at == r.n {
		return 0, io.EOF
	}
	m := int(min(int64(len(p)), r.n-r.at, 10_007))
	m = copy(p[:m], pattern[r.at%int64(len(pattern)-pieceSize):])
	r.at += int64(m)
	return m, nil
}

func sum(r io.Reader) string {
	h := sha256.New()
	n, _ := io.Copy(h, r)
	return fmt.Sprintf("%d %x", n, h.Sum(nil)[:8])
}

// summing is a worker that answers with the length and the hash of the body, and with its framing.
func summing(t *testing.T) string {
	return rawWorker(t, func(c *net.TCPConn, br *bufio.Reader, _ int) {
		for {
			r, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			s := fmt.Sprint(sum(r.Body), r.TransferEncoding, r.ContentLength)
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(s), s)
		}
	})
}

func TestLongBodies(t *testing.T) {
	u := client(t, Config{URL: summing(t)})
	f := func(body, tail int64, known bool) {
		t.Helper()
		b, _ := io.ReadAll(&noise{n: body})
		length, framing := tail, fmt.Sprint([]string(nil), body+tail)
		if !known {
			length, framing = -1, fmt.Sprint([]string{"chunked"}, -1)
		}
		r := &Request{Method: "POST", Path: "/", Body: b, Tail: &noise{n: tail}, TailLength: length}
		if tail < 0 {
			r.Tail, framing = nil, fmt.Sprint([]string(nil), body)
		}
		want := sum(io.MultiReader(bytes.NewReader(b), &noise{n: max(tail, 0)})) + framing
		if _, got, err := ask(u, r); got != want || err != nil {
			t.Errorf("body of %d and tail of %d: worker read %q, %v; want %q", body, tail, got, err, want)
		}
		if s := u.Stats(); s.Open != s.Idle || s.Idle == 0 {
			t.Errorf("body of %d and tail of %d: %+v; want the connection kept", body, tail, s)
		}
	}
	for _, body := range []int64{0, 1, 100, maxCopied + 1, maxSimple, maxSimple + 1, 1 << 20} {
		f(body, -1, true)
		for _, tail := range []int64{0, 1, 16, pieceSize - 1, pieceSize, pieceSize + 1, 300_000} {
			f(body, tail, true)
			f(body, tail, false)
		}
	}
}

// A body of any length costs the memory of one piece.
func TestTailIsNotKept(t *testing.T) {
	u := client(t, Config{URL: rawWorker(t, func(c *net.TCPConn, br *bufio.Reader, _ int) {
		if readRequest(br) == nil {
			io.WriteString(c, ok)
		}
	})})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, body, err := ask(u, &Request{Method: "POST", Path: "/", Tail: &noise{n: 64 << 20}, TailLength: 64 << 20})
	runtime.ReadMemStats(&after)
	if body != "ok" || err != nil {
		t.Fatalf("got %q, %v", body, err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
		t.Errorf("allocated %d KB for a body of 64 MB; want at most 4 MB", grown>>10)
	}
}

// slowTail gives a byte a millisecond, for ever.
type slowTail struct{ read atomic.Int64 }

func (s *slowTail) Read(p []byte) (int, error) {
	time.Sleep(time.Millisecond)
	s.read.Add(1)
	return 1, nil
}

// The client reads at once a refusal that comes before the end of its request, whether the worker goes on reading,
// reads no more, or closes.
func TestEarlyAnswer(t *testing.T) {
	const refusal = "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!"
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	f := func(name string, then func(c *net.TCPConn), r *Request) {
		t.Helper()
		url := rawWorker(t, func(c *net.TCPConn, br *bufio.Reader, _ int) {
			br.ReadString('\n')
			io.WriteString(c, refusal)
			then(c)
		})
		u := client(t, Config{URL: url})
		r.Method, r.Path = "POST", "/"
		if status, body, err := ask(u, r); status != 413 || body != "no!" || err != nil {
			t.Errorf("%s: got %d %q, %v; want the refusal", name, status, body, err)
		}
		if s := u.Stats(); s.Open != 0 {
			t.Errorf("%s: %+v; want the connection closed", name, s)
		}
	}
	stop := func(*net.TCPConn) { <-hold }
	f("reads on, known length", silent, &Request{Tail: new(slowTail), TailLength: 1 << 40})
	f("reads on, chunked", silent, &Request{Tail: new(slowTail), TailLength: -1})
	f("stops reading", stop, &Request{Tail: &noise{n: 1 << 40}, TailLength: -1})
	f("stops reading a body without tail", stop, &Request{Body: make([]byte, 32<<20)})
	f("closes", func(c *net.TCPConn) { c.CloseWrite(); silent(c) }, &Request{Tail: &noise{n: 1 << 40}, TailLength: 1 << 40})
}

func TestTailFaults(t *testing.T) {
	var seen atomic.Value
	url := rawWorker(t, func(c *net.TCPConn, br *bufio.Reader, _ int) { seen.Store(fmt.Sprint(readRequest(br))) })
	f := func(name string, tail io.Reader, length int64, want error) {
		t.Helper()
		seen.Store("")
		settles(t, func() {
			u := client(t, Config{URL: url})
			_, _, err := ask(u, &Request{Method: "POST", Path: "/", Body: []byte("abc"), Tail: tail, TailLength: length})
			if !errors.Is(err, want) || NotSent(err) || Unanswered(err) {
				t.Errorf("%s: got %v; want %v", name, err, want)
			}
			if s := u.Stats(); s.Open != 0 || s.Dials != 1 {
				t.Errorf("%s: %+v; want one connection, closed", name, s)
			}
			waittest.Until(t, name+": the worker sees the request break off", func() bool {
				return strings.Contains(seen.Load().(string), "unexpected EOF")
			})
		})
	}
	broken := errors.New("client left")
	f("fails", io.MultiReader(strings.NewReader("x"), failing{broken}), 10, broken)
	f("fails, chunked", failing{broken}, -1, ErrTail)
	f("too short", strings.NewReader("x"), 10, ErrTail)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// A worker that stops taking a long request stalls, and the wait has an end.
func TestWorkerTakesNothing(t *testing.T) {
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	u := client(t, Config{URL: rawWorker(t, func(*net.TCPConn, *bufio.Reader, int) { <-hold }), ChunkTimeout: 50 * time.Millisecond})
	for _, r := range []*Request{
		{Method: "POST", Path: "/", Body: make([]byte, 16<<20)},
		{Method: "POST", Path: "/", Tail: &noise{n: 1 << 40}, TailLength: -1},
	} {
		if _, _, err := ask(u, r); !errors.Is(err, ErrStalled) || Unanswered(err) || !isTimeout(err) {
			t.Errorf("got %v; want ErrStalled that is a timeout", err)
		}
	}
}

// A cancel ends an upload that waits for the worker.
func TestCancelUpload(t *testing.T) {
	url := saying(t, "", silent)
	settles(t, func() {
		u := client(t, Config{URL: url})
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(30*time.Millisecond, cancel)
		_, err := u.Do(ctx, &Request{Method: "POST", Path: "/", Tail: new(slowTail), TailLength: -1})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v; want context.Canceled", err)
		}
	})
}
