package daemon

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// releasing answers with that text, and a request with X-Hold only when it is released; a stream has begun by then.
func releasing(answer string, held chan<- bool, release <-chan bool) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		stream := strings.Contains(string(body), `"stream":true`)
		if stream {
			rw.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(rw, "data: {\"choices\":[{\"index\":0,\"text\":%q}]}\n\n", answer)
			rw.(http.Flusher).Flush()
		}
		if r.Header.Get("X-Hold") != "" {
			held <- true
			<-release
		}
		if stream {
			io.WriteString(rw, "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		} else {
			fmt.Fprintf(rw, `{"choices":[{"index":0,"text":%q,"finish_reason":"stop"}]}`, answer)
		}
	}
}

// TestDrainEndsConnections: a drain closes what waits for a next request, says so in the answers that begin in it, and
// takes nothing that was sent ahead behind those. Behind a stream that began before, and did not say so, it takes one.
func TestDrainEndsConnections(t *testing.T) {
	t.Parallel()
	held, release := make(chan bool, 8), make(chan bool)
	w := fakeWorker(t, releasing("a", held, release))
	r, lines := startLogged(t, settings("prefixaware", w.URL), 1)
	dial := func(requests string) (net.Conn, *bufio.Reader) {
		t.Helper()
		c, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(20 * time.Second))
		io.WriteString(c, requests)
		return c, bufio.NewReader(c)
	}
	head := func(what string, in *bufio.Reader) *http.Response {
		t.Helper()
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(what, err)
		}
		return resp
	}
	body := func(what string, resp *http.Response) {
		t.Helper()
		if b, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 || !strings.Contains(string(b), `"a"`) {
			t.Fatalf("%s: %d %v %s", what, resp.StatusCode, err, b)
		}
	}
	read := func(what string, in *bufio.Reader) *http.Response {
		t.Helper()
		resp := head(what, in)
		body(what, resp)
		return resp
	}
	holding := func(body string) string { return strings.Replace(post(body), "\r\n", "\r\nX-Hold: 1\r\n", 1) }
	_, idle := dial(post(aStream))
	read("a stream before the drain", idle)
	eventually(t, "the stream's request has ended here too", func() bool { return r.front.Stats().InFlight == 0 })
	_, plain := dial(holding(aCompletion) + post(aCompletion))
	_, stream := dial(holding(aStream) + post(aCompletion))
	<-held
	<-held
	begun := head("a stream in the drain", stream)
	stopped := make(chan error, 1)
	go func() { stopped <- r.stop() }()
	if b, err := idle.ReadByte(); err != io.EOF {
		t.Errorf("an idle connection in a drain: %q, %v; want its end", b, err)
	}
	close(release)
	if resp := read("a request in the drain", plain); !resp.Close {
		t.Errorf("its answer does not say that the connection closes: %v", resp.Header)
	}
	body("a stream in the drain", begun)
	if resp := read("what was sent behind it", stream); !resp.Close {
		t.Errorf("the answer behind a stream does not say that the connection closes: %v", resp.Header)
	}
	for what, in := range map[string]*bufio.Reader{"the request": plain, "the stream": stream} {
		if rest, err := io.ReadAll(in); len(rest) > 0 {
			t.Errorf("behind %s came %q, %v; want the end of the connection", what, rest, err)
		}
	}
	if err := <-stopped; err != nil {
		t.Error(fmt.Errorf("the drain: %w", err))
	}
	lines.drained(t, 3)
}

// TestDrainWithoutRequestsIsClean: connections on which nothing was asked yet are no reason for an error, however
// short the drain.
func TestDrainWithoutRequestsIsClean(t *testing.T) {
	t.Parallel()
	w := fakeWorker(t, func(http.ResponseWriter, *http.Request) {})
	r := start(t, withServer(settings("prefixaware", w.URL), `drain_timeout = "100ms"`), 1)
	for _, begun := range []string{"", "POST /v1/comp"} {
		c, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, begun)
	}
	eventually(t, "both accepted", func() bool { return r.front.Stats().Connections.Accepted >= 2 })
	if err := r.stop(); err != nil {
		t.Errorf("the drain: %v", err)
	}
}

// TestDrainAwaitsLastWords: the process does not end while a client of HTTP/1.0 that is behind still reads the end of
// its stream.
func TestDrainAwaitsLastWords(t *testing.T) {
	t.Parallel()
	held, release := make(chan bool, 1), make(chan bool)
	defer close(release)
	w := fakeWorker(t, releasing(strings.Repeat("x", 64<<10), held, release))
	r := start(t, withServer(settings("prefixaware", w.URL), `drain_timeout = "100ms"`), 1)
	c, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.(*net.TCPConn).SetReadBuffer(4 << 10)
	body := `{"model":"sim","stream":true,"prompt":"hello"}`
	fmt.Fprintf(c, "POST /v1/completions HTTP/1.0\r\nHost: x\r\nX-Hold: 1\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", len(body), body)
	<-held
	var last []byte
	read := make(chan bool)
	go func() {
		defer close(read)
		time.Sleep(700 * time.Millisecond) // the drain has cut the stream by then
		last, _ = io.ReadAll(c)
	}()
	if err := r.stop(); err == nil {
		t.Error("the drain was clean")
	}
	if open := r.front.Stats().Connections.Open; open > 0 {
		t.Errorf("%d connections are open after the drain", open)
	}
	<-read
	if !strings.Contains(string(last), "router_stopping") {
		t.Errorf("%d bytes without the last words", len(last))
	}
}

// drained checks the closing line of a drain in which so many requests ended.
func (l *logLines) drained(t *testing.T, requests float64) {
	t.Helper()
	if l := l.wait(t, "drained"); l["level"] != "INFO" || l["requests_ended"] != requests || l["after"] == nil {
		t.Errorf("the closing line is %v; want INFO, how long the drain took, and %v requests", l, requests)
	}
}

// TestConnectionsThatWaitForLong: a connection that waits is taken from fasthttp after two seconds. It serves another
// request then, and a drain ends it.
func TestConnectionsThatWaitForLong(t *testing.T) {
	t.Parallel()
	f := sims(t, 1, vllmsim.Config{})
	r := start(t, settings("prefixaware", f.URLs()...), 1)
	ask := func(c net.Conn, in *bufio.Reader) {
		t.Helper()
		body := `{"model":"sim","prompt":"hello","max_tokens":1}`
		fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			len(body), body)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if b, err := io.ReadAll(resp.Body); resp.StatusCode != 200 || err != nil {
			t.Fatalf("%d %s, %v", resp.StatusCode, b, err)
		}
	}
	var conns [2]net.Conn
	var in [2]*bufio.Reader
	for i := range conns {
		c, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(60 * time.Second))
		conns[i], in[i] = c, bufio.NewReader(c)
		ask(c, in[i])
	}
	time.Sleep(2500 * time.Millisecond)
	ask(conns[0], in[0])
	if n := r.front.Stats().Connections; n.Open != 2 || n.Accepted != 2 {
		t.Errorf("%+v; want two connections", n)
	}
	if err := r.stop(); err != nil {
		t.Errorf("the drain: %v", err)
	}
	for i := range conns {
		if b, err := in[i].ReadByte(); err != io.EOF {
			t.Errorf("connection %d after the drain: %q, %v; want its end", i, b, err)
		}
	}
}
