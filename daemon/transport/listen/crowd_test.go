package listen

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// crowdedFront serves MaxConns places: what is posted to /wait is answered once wait is closed, all else at once. It
// marks heads and answers as the front does.
func crowdedFront(t *testing.T, c Config, wait chan struct{}) *Listener {
	t.Helper()
	s := &fasthttp.Server{ReadTimeout: patience, IdleTimeout: patience, StreamRequestBody: true,
		HeaderReceived: func(*fasthttp.RequestHeader) fasthttp.RequestConfig {
			return fasthttp.RequestConfig{MaxRequestBodySize: 1}
		},
		Handler: func(ctx *fasthttp.RequestCtx) {
			conn := From(ctx.Conn())
			conn.HeadCame()
			if string(ctx.Path()) == "/wait" {
				<-wait
			}
			b, err := io.ReadAll(ctx.RequestBodyStream())
			if err != nil {
				ctx.SetStatusCode(fasthttp.StatusRequestTimeout)
				ctx.SetConnectionClose()
			}
			ctx.SetBody(b)
			conn.NextRequest()
		}}
	c.parkEvery = cmp.Or(c.parkEvery, 10*time.Millisecond)
	c.Parked = func(conn *Conn) {
		conn.Await(time.Now().Add(patience), func(came bool) {
			if came {
				_ = s.ServeConn(conn.Lease())
			} else {
				conn.Close()
			}
		})
	}
	l := open(t, c, nil)
	go s.Serve(l)
	t.Cleanup(func() { _ = s.Shutdown() })
	return l
}

// ends notes in which order connections end, by their kind.
type ends struct {
	mu    sync.Mutex // guards kinds
	kinds []string
}

// follow notes the end of a connection.
func (e *ends) follow(kind string, c net.Conn) {
	_, _ = io.Copy(io.Discard, c)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kinds = append(e.kinds, kind)
}

func (e *ends) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.kinds)
}

// TestSilentClientsMakeRoom: nobody loses a place while there are some left. Then clients that have sent no request
// lose theirs first, then those that stop within a body, then those without another request, and no more than make
// room. Who waits for an answer keeps its place.
func TestSilentClientsMakeRoom(t *testing.T) {
	wait := make(chan struct{})
	l := crowdedFront(t, Config{MaxConns: 32}, wait)
	var ended ends
	enter := func(kind, text string) {
		c := dialed(t, l)
		io.WriteString(c, text)
		if kind == "idle" {
			c.want(t, "body")
		}
		go ended.follow(kind, c)
	}
	for range 8 {
		enter("idle", posted("body"))
		enter("stopped", strings.TrimSuffix(posted("body"), "y"))
		enter("stranger", "POST / HT")
	}
	waittest.Until(t, "24 are open", func() bool { return l.Stats().Open == 24 })
	time.Sleep(20 * 10 * time.Millisecond)
	if all := ended.all(); len(all) > 0 {
		t.Errorf("with 8 of 32 places left these have ended: %q", all)
	}
	var asking []talk
	for range 24 {
		waittest.Until(t, "there is a place", func() bool { return l.Stats().Open < 32 })
		c := dialed(t, l)
		io.WriteString(c, strings.Replace(posted("body"), "POST /", "POST /wait", 1))
		asking = append(asking, c)
		waittest.Until(t, "it is let in", func() bool { return l.Stats().Accepted == uint64(24+len(asking)) })
	}
	waittest.Until(t, "all silent ones but a few have gone", func() bool { return len(ended.all()) >= 20 })
	all, order := ended.all(), []string{"stranger", "stopped", "idle", "idle"}
	for i, kind := range all { // several at a time, whose ends are seen in any order
		if kind != order[max(0, i-4)/8] && kind != order[(i+4)/8] {
			t.Errorf("the client that ended as number %d is of the kind %s: %q", i, kind, all)
		}
	}
	close(wait)
	for _, c := range asking {
		c.want(t, "body")
	}
	if n := l.Stats().Refused; n > 0 {
		t.Errorf("%d were refused", n)
	}
}

// TestHalfHandshakesMakeRoom: under TLS a client may stop in its handshake, or after it.
func TestHalfHandshakesMakeRoom(t *testing.T) {
	c := withTLS(t)
	c.MaxConns = 16
	c.parkEvery = 50 * time.Millisecond
	l := crowdedFront(t, c, nil)
	var ended ends
	for i := range 16 {
		c := dialed(t, l)
		if i%2 == 0 {
			io.WriteString(c, "\x16\x03\x01\x02\x00\x01")
		} else if err := tls.Client(c, insecure).Handshake(); err != nil {
			t.Fatal(err)
		}
		go ended.follow("silent", c)
	}
	waittest.Until(t, "some have made room", func() bool { return len(ended.all()) >= 2 })
	time.Sleep(10 * c.parkEvery)
	if n := len(ended.all()); n != 2 {
		t.Errorf("%d have gone; want 2", n)
	}
	client := tls.Client(dialed(t, l), insecure)
	io.WriteString(client, posted("body"))
	answer := make([]byte, 12)
	if _, err := io.ReadFull(client, answer); err != nil || string(answer) != "HTTP/1.1 200" {
		t.Errorf("%q, %v", answer, err)
	}
}

// TestLackRoom: a client that has stopped within a body ends when a request is refused, one that goes on does not.
func TestLackRoom(t *testing.T) {
	l := crowdedFront(t, Config{}, nil)
	stopped, going := dialed(t, l), dialed(t, l)
	stopped.send(t, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nab")
	going.send(t, fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\nab", 1<<20))
	over := make(chan struct{})
	go func() {
		defer close(over)
		for n := 2; n < 1<<20; n += 1 << 10 {
			io.WriteString(going, strings.Repeat("x", min(1<<10, 1<<20-n)))
			time.Sleep(time.Millisecond / 2)
		}
	}()
	_, other := pairOf(t, l)
	ended := make(chan *http.Response, 1)
	go func() {
		r, _ := http.ReadResponse(stopped.r, nil)
		ended <- r
	}()
	select {
	case <-ended:
		t.Error("it has ended while there was room")
	case <-time.After(200 * time.Millisecond):
	}
	for end := time.Now().Add(patience); ; {
		other.LackRoom()
		select {
		case r := <-ended:
			if r == nil || r.StatusCode != http.StatusRequestTimeout {
				t.Errorf("%+v; want 408", r)
			}
			<-over
			if r, err := http.ReadResponse(going.r, nil); err != nil || r.StatusCode != http.StatusOK {
				t.Errorf("the one that goes on: %+v, %v", r, err)
			}
			return
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(end) {
			t.Fatal("it has not ended")
		}
	}
}

// TestWhoSpeaksStays: a client that has sent something since it was found silent keeps its place.
func TestWhoSpeaksStays(t *testing.T) {
	l := crowdedFront(t, Config{parkEvery: time.Hour}, nil)
	for _, kind := range []silence{stranger, stopped, idle} {
		client, conn := pairOf(t, l)
		was := silenceOf(conn)
		was.kind, was.since = kind, was.since-1
		l.census.letGo([]silent{was}, 1)
		time.Sleep(20 * time.Millisecond) // an idle one is closed by and by
		client.send(t, posted("y"))
		client.want(t, "y")
	}
}

// pairOf returns a connection that the server holds too.
func pairOf(t *testing.T, l *Listener) (client talk, conn *Conn) {
	t.Helper()
	client = dialed(t, l)
	client.send(t, posted("x"))
	client.want(t, "x")
	l.census.parking.each(func(c *Conn) {
		if c.RemoteAddr().String() == client.LocalAddr().String() {
			conn = c
		}
	})
	return client, conn
}
