package listen

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// parkingFront answers each request with its body, and looks for servers that wait every so often. What is parked goes
// to parked; who takes it from there has it served on by back.
func parkingFront(t *testing.T, every time.Duration) (l *Listener, parked chan *Conn, back func(*Conn)) {
	t.Helper()
	parked = make(chan *Conn, 100)
	l = open(t, Config{Parked: func(c *Conn) { parked <- c }, parkEvery: every}, nil)
	s := &fasthttp.Server{ReadBufferSize: 16 << 10, ReadTimeout: patience, IdleTimeout: patience, StreamRequestBody: true,
		HeaderReceived: func(*fasthttp.RequestHeader) fasthttp.RequestConfig {
			return fasthttp.RequestConfig{MaxRequestBodySize: 1}
		},
		Handler: func(ctx *fasthttp.RequestCtx) {
			b, err := io.ReadAll(ctx.RequestBodyStream())
			if err != nil || len(b) != ctx.Request.Header.ContentLength() {
				t.Errorf("a body of %d bytes ends after %d, %v", ctx.Request.Header.ContentLength(), len(b), err)
			}
			ctx.SetBody(b)
			From(ctx.Conn()).NextRequest()
		}}
	go s.Serve(l)
	t.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	back = func(c *Conn) { // as the front does
		c.Await(time.Now().Add(patience), func(came bool) {
			if !came {
				c.Close()
				return
			}
			_ = s.ServeConn(c.Lease())
		})
	}
	return l, parked, back
}

// talk is a client's connection.
type talk struct {
	net.Conn
	r *bufio.Reader
}

func dialed(t *testing.T, l *Listener) talk {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return talk{c, bufio.NewReader(c)}
}

func posted(body string) string {
	return fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// send sends the pieces with a pause of many looks after each.
func (c talk) send(t *testing.T, pieces ...string) {
	for i, p := range pieces {
		if _, err := io.WriteString(c, p); err != nil {
			t.Error(err)
		}
		if i < len(pieces)-1 {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func (c talk) want(t *testing.T, body string) {
	t.Helper()
	r, err := http.ReadResponse(c.r, nil)
	if err != nil {
		t.Errorf("no answer %q: %v", body, err)
		return
	}
	defer r.Body.Close()
	if b, err := io.ReadAll(r.Body); string(b) != body || err != nil {
		t.Errorf("answered %q, %v; want %q", b, err, body)
	}
}

// TestParked: a connection that waits is taken from its server, and served on when another request comes: also one that
// came just as it was taken. It counts as one connection.
func TestParked(t *testing.T) {
	l, parked, back := parkingFront(t, 2*time.Millisecond)
	c := dialed(t, l)
	for i := range 5 {
		body := fmt.Sprint("body ", i)
		c.send(t, posted(body))
		c.want(t, body)
		conn := <-parked
		if i%2 == 1 {
			c.send(t, posted("early"))
			go back(conn)
			c.want(t, "early")
			conn = <-parked
		}
		go back(conn)
	}
	if s := l.Stats(); s.Open != 1 || s.Accepted != 1 {
		t.Errorf("%+v; want one connection", s)
	}
	c.Close()
	waittest.Until(t, "it is closed after its client has left", func() bool { return l.Stats().Open == 0 })
}

// TestNotParked: nothing is taken of which its server holds a byte, or whose first request is still to come.
func TestNotParked(t *testing.T) {
	l, parked, back := parkingFront(t, time.Millisecond)
	long := strings.Repeat("x", 40<<10)
	one, two := posted("one"), posted(long)
	for what, pieces := range map[string][]string{
		"nothing yet":                      {"", one + two},
		"half a first head":                {one[:10], one[10:] + two},
		"half a head behind a request":     {one + two[:10], two[10:]},
		"blank lines behind a request":     {one + "\r\n", two},
		"a head without its body":          {one + two[:strings.Index(two, "xxx")], two[strings.Index(two, "xxx"):]},
		"a part of a body":                 {one + two[:len(two)/2], two[len(two)/2 : len(two)-1], two[len(two)-1:]},
		"a head behind one, piece by byte": {one + two[:20], two[20:21], two[21:]},
	} {
		c := dialed(t, l)
		c.send(t, pieces...)
		c.want(t, "one")
		c.want(t, long)
		select {
		case conn := <-parked: // now it waits
			go back(conn)
		case <-time.After(patience):
			t.Fatalf("%s: it is never parked afterwards", what)
		}
		if n := len(parked); n > 0 {
			t.Errorf("%s: parked %d times more", what, n)
		}
		c.Close()
	}
}

// TestParkHammer: clients that pause for as long as it takes to be parked, more or less, lose no request and no byte.
func TestParkHammer(t *testing.T) {
	const every = time.Millisecond
	l, parked, back := parkingFront(t, every)
	done := make(chan struct{})
	taken := 0
	go func() {
		defer close(done)
		for c := range parked {
			if c == nil {
				return
			}
			taken++
			go back(c)
		}
	}()
	var all sync.WaitGroup
	for i := range 16 {
		c := dialed(t, l)
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for n := range 100 {
				bodies := []string{fmt.Sprint(i, " ", n), strings.Repeat("y", rng.IntN(3000))}[:1+rng.IntN(2)]
				text := ""
				for _, b := range bodies {
					text += posted(b)
				}
				cut := rng.IntN(len(text))
				io.WriteString(c, text[:cut])
				if rng.IntN(4) == 0 {
					time.Sleep(time.Duration(rng.Int64N(int64(3 * every))))
				}
				io.WriteString(c, text[cut:])
				for _, b := range bodies {
					c.want(t, b)
				}
				time.Sleep(time.Duration(rng.Int64N(int64(3 * every))))
			}
			c.Close()
		})
	}
	all.Wait()
	waittest.Until(t, "all are closed", func() bool { return l.Stats().Open == 0 })
	parked <- nil
	<-done
	if taken == 0 {
		t.Error("none was parked: too few to hold anything by")
	}
}

// TestAnswering: a drain finds an answer whose client reads it slowly, until it has been written.
func TestAnswering(t *testing.T) {
	l := open(t, Config{Parked: func(c *Conn) { c.Close() }}, nil)
	const size = 32 << 20
	s := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		ctx.Response.SetBodyRaw(make([]byte, size))
		From(ctx.Conn()).NextRequest()
	}, ReadTimeout: patience, IdleTimeout: patience}
	go s.Serve(l)
	c := dialed(t, l)
	if l.Answering() {
		t.Error("an answer before a request")
	}
	c.send(t, posted("x"))
	waittest.Until(t, "the answer is written", l.Answering)
	time.Sleep(50 * time.Millisecond)
	if !l.Answering() {
		t.Error("nobody writes, though the client has read nothing")
	}
	if r, err := http.ReadResponse(c.r, nil); err != nil {
		t.Error(err)
	} else if n, err := io.Copy(io.Discard, r.Body); n != size || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	waittest.Until(t, "the answer has been written", func() bool { return !l.Answering() })
	if err := s.Shutdown(); err != nil {
		t.Error(err)
	}
}
