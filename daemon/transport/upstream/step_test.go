package upstream

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// doubling is a worker that sends one answer too many now and then: to each request whose body begins with "twice".
type doubling struct {
	answer func(mark string) string // to the request of that body
	again  func(mark string) string // sent after it
	pause  time.Duration            // between the two; 0 = both are one write
	sent   chan struct{}            // gets a value after the second write
}

func (d *doubling) serve(c net.Conn) {
	defer c.Close()
	br := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		b, _ := io.ReadAll(r.Body)
		mark := r.URL.Query().Get("mark")
		text := d.answer(mark)
		if !strings.HasPrefix(string(b), "twice") {
			_, _ = io.WriteString(c, text)
			continue
		}
		if d.pause == 0 {
			_, _ = io.WriteString(c, text+d.again(mark))
			continue
		}
		_, _ = io.WriteString(c, text)
		time.Sleep(d.pause)
		_, _ = io.WriteString(c, d.again(mark))
		d.sent <- struct{}{}
	}
}

// listen starts the worker. It returns the configuration of its client.
func (d *doubling) listen(t *testing.T, secure bool) Config {
	t.Helper()
	if !secure {
		return Config{URL: "http://" + porttest.Serve(t, func(c *net.TCPConn) { d.serve(c) })}
	}
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	server := &tls.Config{Certificates: s.TLS.Certificates}
	return Config{TLS: &tls.Config{RootCAs: roots},
		URL: "https://" + porttest.Serve(t, func(c *net.TCPConn) { d.serve(tls.Server(c, server)) })}
}

func sized(text string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
}

func inChunks(text string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(text), text)
}

func sizedLarge(mark string) string { return sized(strings.Repeat(mark, 3000)) }

// TestAnswersTooMany: bytes that come with an answer or after it, before the next request is sent, are nobody's answer.
// The connection on which they came is never used again.
func TestAnswersTooMany(t *testing.T) {
	later := 5 * time.Millisecond
	flood := strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 100)
	empty := func(string) string { return "HTTP/1.1 204 No Content\r\n\r\n" }
	bare := func(mark string) string { return mark }
	large := strings.Repeat("x", 2*maxSimple)
	f := func(what string, d doubling, method, more string) {
		t.Helper()
		d.sent = make(chan struct{}, 20)
		for _, secure := range []bool{false, true} {
			u := client(t, d.listen(t, secure))
			for i := range 20 {
				mark, body := fmt.Sprintf("mark%02d", i), "once"+more
				if i%2 == 0 {
					body = "twice" + more
				}
				status, text, err := ask(u, &Request{Method: method, Path: "/?mark=" + mark, Body: []byte(body)})
				whole := d.answer(mark)
				_, want, _ := strings.Cut(whole, "\r\n\r\n")
				switch {
				case strings.Contains(whole, "chunked"):
					want = mark
				case strings.HasPrefix(whole, flood):
					want = mark
				}
				if err != nil || status/100 != 2 || text != want {
					t.Fatalf("%s, TLS %v, request %d: %d %.40q %v; want %.40q", what, secure, i, status, text, err, want)
				}
				if d.pause > 0 && i%2 == 0 {
					<-d.sent
					time.Sleep(time.Millisecond)
				}
			}
			if s := u.Stats(); s.Reused != 9 {
				t.Errorf("%s, TLS %v: %+v; want each connection that is in step used again", what, secure, s)
			}
		}
	}
	f("with it", doubling{answer: sized, again: sized}, "POST", "")
	f("with it, chunked", doubling{answer: inChunks, again: inChunks}, "POST", "")
	f("with it, large", doubling{answer: sizedLarge, again: sizedLarge}, "POST", "")
	f("with it, before a long request", doubling{answer: sized, again: sized}, "POST", large)
	f("later", doubling{answer: sized, again: sized, pause: later}, "POST", "")
	f("later, chunked", doubling{answer: inChunks, again: inChunks, pause: later}, "POST", "")
	f("later, large", doubling{answer: sizedLarge, again: sizedLarge, pause: later}, "POST", "")
	f("later, before a long request", doubling{answer: sized, again: sized, pause: later}, "POST", large)
	f("longer than its length", doubling{answer: sized, again: bare}, "POST", "")
	f("longer than its length, later", doubling{answer: sized, again: bare, pause: later}, "POST", "")
	head := func(string) string { return "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n" }
	f("a body of HEAD", doubling{answer: head, again: bare}, "HEAD", "")
	f("a body of HEAD, later", doubling{answer: head, again: bare, pause: later}, "HEAD", "")
	f("a body of 204", doubling{answer: empty, again: bare}, "POST", "")
	f("a body of 204, later", doubling{answer: empty, again: bare, pause: later}, "POST", "")
	flooded := func(mark string) string { return flood + sized(mark) }
	f("after interim answers", doubling{answer: flooded, again: sized}, "POST", "")
	f("after interim answers, later", doubling{answer: flooded, again: sized, pause: later}, "POST", "")
	f("interim answers alone, later", doubling{answer: sized, again: func(string) string { return flood }, pause: later}, "POST", "")
}

// TestRetire: connections that were open then serve no other request, whether they waited or were in use.
func TestRetire(t *testing.T) {
	u := client(t, Config{URL: saying(t, ok, nil)})
	together(t, u, 3)
	busy, err := u.Do(t.Context(), post)
	if err != nil {
		t.Fatal(err)
	}
	u.Retire()
	if s := u.Stats(); s.Idle != 0 || s.Open != 1 {
		t.Errorf("%+v; want the one in use open", s)
	}
	if b, err := io.ReadAll(busy); string(b) != "ok" || err != nil {
		t.Errorf("the request under way got %q, %v", b, err)
	}
	busy.Close()
	if s := u.Stats(); s.Open != 0 {
		t.Errorf("%+v; want none open", s)
	}
	together(t, u, 1)
	if s := u.Stats(); s.Idle != 1 {
		t.Errorf("%+v; want a new connection kept", s)
	}
}

// TestEqualMarks: requests of one mark do not follow one another on a connection, others do.
func TestEqualMarks(t *testing.T) {
	f := func(reused uint64, marks ...uint64) {
		t.Helper()
		u := client(t, Config{URL: saying(t, ok, nil)})
		for i, m := range marks {
			r := *post
			r.Mark = m
			before := u.Stats().Dials
			resp, err := u.Do(t.Context(), &r)
			if err != nil {
				t.Fatal(err)
			}
			if first := u.Stats().Dials > before; resp.FirstUse() != first {
				t.Errorf("%v, request %d: FirstUse %v; a connection was made: %v", marks, i, resp.FirstUse(), first)
			}
			_, _ = io.ReadAll(resp)
			resp.Close()
		}
		if s := u.Stats(); s.Reused != reused || s.Idle != 1 {
			t.Errorf("%v: %+v; want %d reused, one idle", marks, s, reused)
		}
	}
	f(3, 0, 0, 0, 0)
	f(3, 1, 2, 1, 2)
	f(0, 1, 1, 1)
	f(1, 1, 1, 2)
	f(2, 1, 0, 1)
}

// TestFreshRequests: one that asks for it begins on a fresh connection, though one waits.
func TestFreshRequests(t *testing.T) {
	u := client(t, Config{URL: saying(t, ok, nil)})
	r := *post
	for _, fresh := range []bool{false, true, false} {
		r.Fresh = fresh
		if status, _, err := ask(u, &r); status != 200 || err != nil {
			t.Fatal(status, err)
		}
	}
	if s := u.Stats(); s.Dials != 2 || s.Reused != 1 || s.Idle != 2 {
		t.Errorf("%+v; want 2 dials, one of them used again", s)
	}
}
