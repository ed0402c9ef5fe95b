package daemon

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/logtest"
)

const wsKey = "dGhlIHNhbXBsZSBub25jZQ=="

// wsAccept is what a server answers to that key (RFC 6455, section 1.3).
func wsAccept(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// wsConn is one end of a WebSocket.
type wsConn struct {
	net.Conn
	r      *bufio.Reader
	client bool // it masks
}

// send writes a frame.
func (c *wsConn) send(op byte, payload string) error {
	b := []byte{0x80 | op}
	mask := byte(0)
	if c.client {
		mask = 0x80
	}
	switch n := len(payload); {
	case n < 126:
		b = append(b, mask|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, mask|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, mask|127), uint64(n))
	}
	data := []byte(payload)
	if c.client {
		key := [4]byte{1, 2, 3, 4}
		b = append(b, key[:]...)
		for i := range data {
			data[i] ^= key[i%4]
		}
	}
	_, err := c.Write(append(b, data...))
	return err
}

// read reads a frame.
func (c *wsConn) read() (op byte, payload string, err error) {
	var h [2]byte
	if _, err = io.ReadFull(c.r, h[:]); err != nil {
		return 0, "", err
	}
	n := uint64(h[1] & 0x7f)
	switch n {
	case 126:
		var b [2]byte
		_, err = io.ReadFull(c.r, b[:])
		n = uint64(binary.BigEndian.Uint16(b[:]))
	case 127:
		var b [8]byte
		_, err = io.ReadFull(c.r, b[:])
		n = binary.BigEndian.Uint64(b[:])
	}
	var key [4]byte
	if h[1]&0x80 != 0 && err == nil {
		_, err = io.ReadFull(c.r, key[:])
	}
	data := make([]byte, n)
	if err == nil {
		_, err = io.ReadFull(c.r, data)
	}
	for i := range data {
		data[i] ^= key[i%4]
	}
	return h[0] & 0xf, string(data), err
}

// closes reads up to the close frame, and returns its code; 0 = the connection ended without one.
func (c *wsConn) closes(t testing.TB) int {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	for {
		op, payload, err := c.read()
		if err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				t.Error("no close within 20 s")
			}
			return 0
		}
		if op == 8 {
			return int(binary.BigEndian.Uint16([]byte(payload)))
		}
	}
}

// wsWorker serves vLLM's paths by what is given, and WebSockets by play.
type wsWorker struct {
	*httptest.Server
	mu    sync.Mutex
	heads []*http.Request
	conns []net.Conn
}

// last returns the head of the last handshake.
func (w *wsWorker) last() *http.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heads[len(w.heads)-1]
}

// newWSWorker starts a worker. play returns false to refuse a handshake itself.
func newWSWorker(t *testing.T, accepts func(http.ResponseWriter, *http.Request) bool, play func(*wsConn)) *wsWorker {
	w := newTLSWSWorker(t, accepts, play)
	w.Start()
	return w
}

// newTLSWSWorker is newWSWorker before the start, so that it may be one with TLS.
func newTLSWSWorker(t *testing.T, accepts func(http.ResponseWriter, *http.Request) bool, play func(*wsConn)) *wsWorker {
	w := &wsWorker{}
	w.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/models":
			fmt.Fprint(rw, `{"object":"list","data":[{"id":"sim","object":"model"}]}`)
			return
		case r.URL.Path == "/metrics":
			fmt.Fprint(rw, "vllm:num_requests_running 0\n")
			return
		case r.Header.Get("Upgrade") != "websocket":
			return
		}
		w.mu.Lock()
		w.heads = append(w.heads, r)
		w.mu.Unlock()
		if accepts != nil && !accepts(rw, r) {
			return
		}
		raw, buf, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		w.mu.Lock()
		w.conns = append(w.conns, raw)
		w.mu.Unlock()
		fmt.Fprintf(raw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: realtime\r\n\r\n", wsAccept(r.Header.Get("Sec-WebSocket-Key")))
		play(&wsConn{Conn: raw, r: buf.Reader})
	}))
	t.Cleanup(func() {
		for _, c := range w.conns {
			c.Close()
		}
		w.Close()
	})
	return w
}

// echoFrames answers each frame with itself, and a close frame by one and the end of the connection.
func echoFrames(c *wsConn) {
	defer c.Close()
	for {
		op, payload, err := c.read()
		if err != nil || c.send(op, payload) != nil || op == 8 {
			return
		}
	}
}

// openWS shakes hands with the router.
func openWS(t testing.TB, addr, path string, header ...string) (*wsConn, *http.Response) {
	t.Helper()
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	fmt.Fprintf(raw, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n", path, wsKey)
	for i := 0; i+1 < len(header); i += 2 {
		fmt.Fprintf(raw, "%s: %s\r\n", header[i], header[i+1])
	}
	io.WriteString(raw, "\r\n")
	c := &wsConn{Conn: raw, r: bufio.NewReader(raw), client: true}
	_ = raw.SetReadDeadline(time.Now().Add(20 * time.Second))
	resp, err := http.ReadResponse(c.r, &http.Request{Method: "GET"})
	if err != nil {
		t.Fatal(err)
	}
	return c, resp
}

// opened is openWS of one that must be accepted.
func opened(t testing.TB, addr, path string, header ...string) *wsConn {
	t.Helper()
	c, resp := openWS(t, addr, path, header...)
	if resp.StatusCode != 101 || resp.Header.Get("Sec-Websocket-Accept") != wsAccept(wsKey) || resp.Header.Get("X-Request-Id") == "" ||
		!strings.EqualFold(resp.Header.Get("Upgrade"), "websocket") || resp.TransferEncoding != nil {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s: %d %v %s", path, resp.StatusCode, resp.Header, text)
	}
	return c
}

// TestWebSocket: frames of all lengths go both ways, whatever their kind, and the worker's own close frame too.
func TestWebSocket(t *testing.T) {
	t.Parallel()
	w := newWSWorker(t, nil, echoFrames)
	var log logtest.Log
	r := launch(t, withServer(settings("prefixaware", w.URL), `access_log = "stdout"`), slog.New(slog.NewJSONHandler(&log, nil)))
	r.waitUp(1)
	for _, path := range []string{"/v1/realtime?model=sim", "/v1/audio/speech/stream?model=sim", "/v1/responses"} {
		c := opened(t, r.Addr(), path, "Sec-WebSocket-Extensions", "permessage-deflate", "X-Api-Key", "theirs")
		for _, n := range []int{0, 1, 125, 126, 40_000, 65_536, 1_000_000} {
			for op := byte(1); op <= 2; op++ {
				text := strings.Repeat("x", n)
				go c.send(op, text)
				if got, back, err := c.read(); err != nil || got != op || back != text {
					t.Fatalf("%s: %d bytes: %d, %d bytes, %v", path, n, got, len(back), err)
				}
			}
		}
		c.send(9, "ping")
		if op, back, err := c.read(); op != 9 || back != "ping" || err != nil {
			t.Errorf("a ping: %d %q %v", op, back, err)
		}
		c.send(8, "\x0f\xa0bye")
		if code := c.closes(t); code != 4000 {
			t.Errorf("the worker's close: %d; want 4000", code)
		}
		if _, err := c.r.ReadByte(); err != io.EOF {
			t.Errorf("after the close: %v", err)
		}
		head := w.last()
		if head.ContentLength > 0 || head.Header.Get("Sec-Websocket-Extensions") != "permessage-deflate" ||
			head.Header.Get("X-Forwarded-For") == "" || head.Header.Get("Content-Length") != "" {
			t.Errorf("the worker gets %v", head.Header)
		}
	}
}

// TestWebSocketKeys: a key among the subprotocols counts, and reaches no worker. A key for some models opens none.
func TestWebSocketKeys(t *testing.T) {
	t.Parallel()
	w := newWSWorker(t, nil, echoFrames)
	toml := settings("prefixaware", w.URL) + limited(t, "team", "max_in_flight = 1", "some", `models = ["sim"]`)
	r := start(t, toml, 1)
	const path = "/v1/realtime?model=sim"
	f := func(status int, header ...string) *wsConn {
		t.Helper()
		c, resp := openWS(t, r.Addr(), path, header...)
		if resp.StatusCode != status {
			text, _ := io.ReadAll(resp.Body)
			t.Errorf("%v: %d %s; want %d", header, resp.StatusCode, text, status)
		}
		return c
	}
	f(401)
	f(401, "Sec-WebSocket-Protocol", "realtime, openai-insecure-api-key.sk-other")
	f(403, "Authorization", "Bearer some-secret")
	c := f(101, "Sec-WebSocket-Protocol", "realtime, openai-insecure-api-key.team-secret, openai-beta.realtime-v1")
	if h := w.last().Header; h.Get("Sec-Websocket-Protocol") != "realtime, openai-beta.realtime-v1" || h.Get("Authorization") != "" {
		t.Errorf("the worker gets %v", h)
	}
	f(429, "Authorization", "Bearer team-secret") // its place is the tunnel's
	c.Close()
	eventually(t, "the place is free again", func() bool {
		c, resp := openWS(t, r.Addr(), path, "Authorization", "Bearer team-secret")
		defer c.Close()
		return resp.StatusCode == 101
	})
}

// TestWebSocketRefused: what a worker answers reaches the client, but where plain HTTP serves too: that is 426.
func TestWebSocketRefused(t *testing.T) {
	t.Parallel()
	status := http.StatusForbidden
	w := newWSWorker(t, func(rw http.ResponseWriter, _ *http.Request) bool { rw.WriteHeader(status); return false }, nil)
	r := start(t, settings("prefixaware", w.URL), 1)
	f := func(want int, path string, header ...string) {
		t.Helper()
		c, resp := openWS(t, r.Addr(), path, header...)
		text, err := io.ReadAll(resp.Body)
		if resp.StatusCode != want || err != nil {
			t.Errorf("%s: %d %s %v; want %d", path, resp.StatusCode, text, err, want)
		}
		if _, err := c.r.ReadByte(); err != io.EOF {
			t.Errorf("%s: the connection goes on: %v", path, err)
		}
	}
	f(403, "/v1/realtime?model=sim")
	f(426, "/v1/responses")
	f(426, "/v1/messages") // of no worker
	f(404, "/v1/realtime?model=none")
	status = http.StatusBadRequest
	f(400, "/v1/realtime?model=sim")
}

// TestWebSocketEnds: the router's own close frames, and their times.
func TestWebSocketEnds(t *testing.T) {
	t.Parallel()
	w := newWSWorker(t, nil, func(c *wsConn) {
		_, text, _ := c.read()
		switch text {
		case "die":
			c.Close()
		case "reset":
			_ = c.Conn.(*net.TCPConn).SetLinger(0)
			c.Close()
		case "half":
			c.Write([]byte("\x82\x7e\xff\xff never ends"))
			time.Sleep(100 * time.Millisecond)
			c.Close()
		default:
			io.Copy(io.Discard, c.r)
		}
	})
	r := start(t, withServer(settings("prefixaware", w.URL), "websocket_idle = \"1s\""), 1)
	f := func(say string, want int, least, most time.Duration) {
		t.Helper()
		c := opened(t, r.Addr(), "/v1/realtime?model=sim")
		began := time.Now()
		if say != "" {
			c.send(1, say)
		}
		if code := c.closes(t); code != want || time.Since(began) < least || time.Since(began) > most {
			t.Errorf("%q: code %d after %v; want %d within %v to %v", say, code, time.Since(began), want, least, most)
		}
	}
	for _, how := range []string{"die", "reset"} { // the machine may be busy for a moment, but not each time
		least := time.Hour
		for range 5 {
			began := time.Now()
			f(how, 1011, 0, 5*time.Second)
			least = min(least, time.Since(began))
		}
		if t.Logf("%s: 1011 after %v", how, least); least > 100*time.Millisecond {
			t.Errorf("%s: the close comes after %v; want 100 ms", how, least)
		}
	}
	f("half", 0, 0, 5*time.Second) // in the midst of a frame there is no place for another
	f("", 1001, 900*time.Millisecond, 5*time.Second)
	f("hold", 1001, 900*time.Millisecond, 5*time.Second)
	c := opened(t, r.Addr(), "/v1/realtime?model=sim")
	for range 8 { // who sends is not idle
		time.Sleep(400 * time.Millisecond)
		if err := c.send(9, ""); err != nil {
			t.Fatal(err)
		}
	}
	go r.stop()
	if code := c.closes(t); code != 1001 {
		t.Errorf("at the end of a drain: %d; want 1001", code)
	}
}

// TestWebSocketLife: a tunnel of a key with websocket_life ends after that, however much goes on in it, and its place is
// free. Another key's goes on.
func TestWebSocketLife(t *testing.T) {
	t.Parallel()
	w := newWSWorker(t, nil, echoFrames)
	log := filepath.Join(t.TempDir(), "access.log")
	r := start(t, withServer(settings("prefixaware", w.URL), fmt.Sprintf("access_log = %q", log))+
		limited(t, "timed", "websocket_life = \"1s\"\nmax_in_flight = 2", "free", ""), 1)
	const path = "/v1/realtime?model=sim"
	free := opened(t, r.Addr(), path, "Authorization", "Bearer free-secret")
	silent := opened(t, r.Addr(), path, "Authorization", "Bearer timed-secret")
	began := time.Now()
	busy := opened(t, r.Addr(), path, "Authorization", "Bearer timed-secret")
	go func() {
		for busy.send(1, "more") == nil {
			time.Sleep(time.Millisecond)
		}
	}()
	for name, c := range map[string]*wsConn{"silent": silent, "busy": busy} {
		if code := c.closes(t); code != 1008 || time.Since(began) < 900*time.Millisecond || time.Since(began) > 10*time.Second {
			t.Errorf("%s: code %d after %v; want 1008 after 1s", name, code, time.Since(began))
		}
	}
	eventually(t, "the places are free and the log says why", func() bool {
		lines, _ := os.ReadFile(log)
		return r.describe()[0].Workers[0].InFlight == 1 && bytes.Count(lines, []byte(`"end":"websocket_life"`)) == 2
	})
	free.send(1, "still here")
	if _, text, err := free.read(); text != "still here" || err != nil {
		t.Errorf("the other key's: %q, %v", text, err)
	}
}

// TestWebSocketPlaces: a tunnel is one of its worker's requests until it ends, and ends at the worker when its client
// leaves.
func TestWebSocketPlaces(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 10)
	w := newWSWorker(t, nil, func(c *wsConn) {
		_, err := io.Copy(io.Discard, c.r)
		ended <- err
	})
	r := start(t, settings("prefixaware", w.URL), 1)
	var all []*wsConn
	for range 3 {
		all = append(all, opened(t, r.Addr(), "/v1/realtime?model=sim"))
	}
	if n := r.describe()[0].Workers[0].InFlight; n != 3 || r.metric("warmpath_websockets_open") != 3 {
		t.Errorf("in flight: %d, open: %v; want 3", n, r.metric("warmpath_websockets_open"))
	}
	for _, c := range all {
		c.Close()
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			t.Fatal("the worker keeps the WebSocket of a client that has left")
		}
	}
	eventually(t, "no place is taken", func() bool {
		return r.describe()[0].Workers[0].InFlight == 0 && r.metric("warmpath_websockets_open") == 0
	})
}

// TestWebSocketTLSWorker: the worker may speak TLS. Its end shows as one without.
func TestWebSocketTLSWorker(t *testing.T) {
	t.Parallel()
	w := newTLSWSWorker(t, nil, func(c *wsConn) {
		defer c.Close()
		for {
			op, payload, err := c.read()
			if err != nil || payload == "die" || c.send(op, payload) != nil {
				return
			}
		}
	})
	w.StartTLS()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	write(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.Certificate().Raw})))
	r := start(t, withPool(settings("prefixaware", w.URL), fmt.Sprintf("tls_ca_file = %q", ca)), 1)
	c := opened(t, r.Addr(), "/v1/realtime?model=sim")
	for _, n := range []int{0, 1, 40_000, 1_000_000} {
		text := strings.Repeat("x", n)
		go c.send(2, text)
		if op, back, err := c.read(); op != 2 || back != text || err != nil {
			t.Fatalf("%d bytes: %d, %d bytes, %v", n, op, len(back), err)
		}
	}
	c.send(1, "die")
	if code := c.closes(t); code != 1011 {
		t.Errorf("the worker's end: %d; want 1011", code)
	}
}

// TestWebSocketSilentWorker: a worker that takes the connection and never answers the handshake costs the client
// header_timeout at most, and its place is free again. Who leaves before that ends the wait.
func TestWebSocketSilentWorker(t *testing.T) {
	t.Parallel()
	left := make(chan bool, 10)
	w := newWSWorker(t, func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		left <- true
		return false
	}, nil)
	r := start(t, withPool(settings("prefixaware", w.URL), `header_timeout = "1s"`), 1)
	c, resp := openWS(t, r.Addr(), "/v1/realtime?model=sim")
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != 504 {
		t.Errorf("%d %s; want 504", resp.StatusCode, text)
	}
	c.Close()
	raw, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(raw, "GET /v1/realtime?model=sim HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n", wsKey)
	time.Sleep(100 * time.Millisecond)
	raw.Close()
	for range 2 {
		select {
		case <-left:
		case <-time.After(10 * time.Second):
			t.Fatal("the worker still has the handshake")
		}
	}
	eventually(t, "no place is taken", func() bool { return r.describe()[0].Workers[0].InFlight == 0 })
}

// TestWebSocketEndlessFrames: a frame that never ends goes on in both directions as it comes, takes no memory, and a
// client that does not read it is left at write_timeout.
func TestWebSocketEndlessFrames(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 2)
	w := newWSWorker(t, nil, func(c *wsConn) {
		op, _, _ := c.read()
		piece := make([]byte, 64<<10)
		switch op {
		case 1: // it writes
			_, err := c.Write([]byte("\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"))
			for err == nil {
				_, err = c.Write(piece)
			}
			ended <- err
		case 2: // it reads
			n, err := io.Copy(io.Discard, io.LimitReader(c.r, 64<<20))
			if n < 64<<20 {
				ended <- err
				return
			}
			c.send(1, "enough")
			_, _ = io.Copy(io.Discard, c.r)
		}
	})
	r := start(t, withServer(settings("prefixaware", w.URL), "write_timeout = \"1s\"\ndrain_timeout = \"1s\""), 1)
	c := opened(t, r.Addr(), "/v1/realtime?model=sim")
	c.send(1, "write")
	if n, err := io.CopyN(io.Discard, c.r, 64<<20); err != nil {
		t.Fatalf("%d bytes of a frame, then %v", n, err)
	}
	select { // and reads no more
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the worker of a client that reads nothing goes on")
	}
	c = opened(t, r.Addr(), "/v1/realtime?model=sim")
	c.send(2, "read")
	go func() {
		_, err := c.Write([]byte("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x01\x02\x03\x04"))
		for piece := make([]byte, 64<<10); err == nil; {
			_, err = c.Write(piece)
		}
	}()
	if _, text, err := c.read(); text != "enough" || err != nil {
		t.Errorf("the worker says %q, %v", text, err)
	}
	go r.stop()
	if code := c.closes(t); code != 1001 { // between two frames to the client
		t.Errorf("at the end of a drain: %d; want 1001", code)
	}
}

// TestWebSocketRealtime: a conversation as vLLM's realtime client has it (examples/online_serving): the session, a
// commit that begins the transcription, pieces of audio, and the last commit. Each end gets each byte of the other.
func TestWebSocketRealtime(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	w := newWSWorker(t, nil, func(c *wsConn) {
		defer c.Close()
		c.send(1, `{"type":"session.created","id":"sess-1","created":1790000000}`)
		for {
			op, payload, err := c.read()
			if err != nil {
				return
			}
			mu.Lock()
			got = append(got, payload)
			n := len(got)
			mu.Unlock()
			switch {
			case op == 8:
				c.send(8, payload)
				return
			case strings.Contains(payload, `"final": true`):
				c.send(1, `{"type":"transcription.done","text":"The tide é 漢字","usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}}`)
			case strings.Contains(payload, "append"):
				c.send(1, fmt.Sprintf(`{"type":"transcription.delta","delta":" piece %d"}`, n))
			}
		}
	})
	r := start(t, settings("prefixaware", w.URL), 1)
	c := opened(t, r.Addr(), "/v1/realtime?model=sim")
	next := func(want string) {
		t.Helper()
		if op, text, err := c.read(); op != 1 || text != want || err != nil {
			t.Fatalf("%d %q %v; want %q", op, text, err, want)
		}
	}
	next(`{"type":"session.created","id":"sess-1","created":1790000000}`)
	said := []string{`{"type": "session.update", "model": "sim"}`, `{"type": "input_audio_buffer.commit"}`}
	for _, text := range said {
		c.send(1, text)
	}
	for i := range 5 {
		audio := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{byte(i), 0x7f}, 2048))
		said = append(said, fmt.Sprintf(`{"type": "input_audio_buffer.append", "audio": "%s"}`, audio))
		c.send(1, said[len(said)-1])
		next(fmt.Sprintf(`{"type":"transcription.delta","delta":" piece %d"}`, len(said)))
	}
	said = append(said, `{"type": "input_audio_buffer.commit", "final": true}`)
	c.send(1, said[len(said)-1])
	next(`{"type":"transcription.done","text":"The tide é 漢字","usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}}`)
	said = append(said, "\x03\xe8")
	c.send(8, "\x03\xe8")
	code := c.closes(t)
	mu.Lock()
	defer mu.Unlock()
	if code != 1000 || !slices.Equal(got, said) {
		t.Errorf("code %d; the worker got %q; want %q", code, got, said)
	}
}

// terseWorker serves an address as a worker that keeps nothing of a WebSocket but its connection.
func terseWorker(t *testing.T) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			head := make([]byte, 0, 4096)
			for !strings.Contains(string(head), "\r\n\r\n") {
				n, err := c.Read(head[len(head):cap(head)])
				if head = head[:len(head)+n]; err != nil {
					break
				}
			}
			if strings.Contains(string(head), "Upgrade: websocket") {
				io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
				continue
			}
			const list = `{"object":"list","data":[{"id":"sim","object":"model"}]}`
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(list), list)
			c.Close()
		}
	}()
	return l.Addr().String()
}

// TestWebSocketMemory: 1,000 tunnels on which nothing comes hold at most 12 KB each.
func TestWebSocketMemory(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	worker := terseWorker(t)
	r := start(t, withServer(settings("prefixaware", "http://"+worker), "decisions_bytes = 0"), 1)
	use := func() (now float64) { // once it changes little
		for before, tries := 0.0, 0; tries < 60 && math.Abs(now-before) > 64<<10 || tries < 3; tries++ {
			time.Sleep(200 * time.Millisecond)
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			before, now = now, float64(m.HeapAlloc+m.StackInuse)
		}
		return now
	}
	var all []*wsConn
	each := func(addr string) float64 {
		open := func(n int) {
			for range n {
				c, resp := openWS(t, addr, "/v1/realtime?model=sim")
				if resp.StatusCode != 101 {
					t.Fatal(resp.Status)
				}
				all = append(all, c)
			}
		}
		open(50)
		before := use()
		open(1000)
		time.Sleep(2 * time.Second)
		return (use() - before) / 1000 / 1024
	}
	ends := each(worker) // the client's end and the worker's are in this process too
	through := each(r.Addr())
	t.Logf("%.1f KB each, and %.1f KB for both ends of one", through-ends, ends)
	if through-ends > 12 {
		t.Errorf("%.1f KB each; want 12 at most", through-ends)
	}
	runtime.KeepAlive(all)
}
