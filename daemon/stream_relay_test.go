package daemon

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/certtest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

const streamed = `{"model":"sim","prompt":"x","max_tokens":6,"stream":true}`

func post(body string) string {
	return fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// TestConnectionServesOnAfterAStream: on one connection streams and plain requests follow each other, also sent ahead.
func TestConnectionServesOnAfterAStream(t *testing.T) {
	f := sims(t, 1, vllmsim.Config{})
	r := start(t, settings("prefixaware", f.URLs()...), 1)
	c, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	br := bufio.NewReader(c)
	next := func(what, end string) {
		t.Helper()
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 || !strings.HasSuffix(string(b), end) {
			t.Fatalf("%s: %d %v %s", what, resp.StatusCode, err, b)
		}
	}
	for range 3 {
		io.WriteString(c, post(streamed))
		next("a stream", "data: [DONE]\n\n")
		io.WriteString(c, "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
		next("a plain request after it", "}")
	}
	io.WriteString(c, post(streamed)+post(streamed)+"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
	next("a stream sent ahead", "data: [DONE]\n\n")
	next("another", "data: [DONE]\n\n")
	next("what came behind it", "ok\n")
	if n := r.front.Stats().Connections.Accepted; n != 1 {
		t.Errorf("%d connections; want one", n)
	}
}

// TestLargePiecesOfAStream: events beyond every buffer arrive whole.
func TestLargePiecesOfAStream(t *testing.T) {
	var sent strings.Builder
	for _, n := range []int{1, 900, 1014, 1015, 1024, 4000, 4096, 32 << 10, 200_000, 10} {
		fmt.Fprintf(&sent, "data: {\"choices\":[{\"index\":0,\"text\":%q}]}\n\n", strings.Repeat("y", n))
	}
	sent.WriteString("data: [DONE]\n\n")
	w := fakeWorker(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		for event := range strings.SplitAfterSeq(sent.String(), "\n\n") {
			io.WriteString(rw, event)
			rw.(http.Flusher).Flush()
		}
	})
	r := start(t, settings("prefixaware", w.URL), 1)
	for range 5 {
		if s := r.do("POST", "/v1/completions", streamed); s.err != nil || s.body != sent.String() {
			t.Fatalf("%v, %d bytes; want %d", s.err, len(s.body), sent.Len())
		}
	}
}

// TestOverTLS: clients over TLS, a certificate that is changed under way, and a worker behind TLS of an authority of
// its own.
func TestOverTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var proto string
	w := fakeTLSWorker(t, dir, func(rw http.ResponseWriter, r *http.Request) {
		proto = r.Header.Get("X-Forwarded-Proto")
		rw.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(rw, "data: {\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\ndata: [DONE]\n\n")
	})
	certtest.New(t, dir, "front", "first")
	toml := withServer(settings("prefixaware", w), fmt.Sprintf("tls_cert_file = %q\ntls_key_file = %q", dir+"/front.pem", dir+"/front.key"))
	r := start(t, withPool(toml, fmt.Sprintf("tls_ca_file = %q", dir+"/worker.pem")), 1)
	name := func() string {
		t.Helper()
		client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
		resp, err := client.Post("https://"+r.Addr()+"/v1/completions", "application/json", strings.NewReader(streamed))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if b, err := io.ReadAll(resp.Body); err != nil || !strings.HasSuffix(string(b), "data: [DONE]\n\n") || proto != "https" {
			t.Fatalf("%v, forwarded proto %q: %s", err, proto, b)
		}
		return resp.TLS.PeerCertificates[0].Subject.CommonName
	}
	if got := name(); got != "first" {
		t.Fatalf("the certificate is %q", got)
	}
	certtest.New(t, dir, "front", "second")
	eventually(t, "the new certificate", func() bool { return name() == "second" })
}

// fakeTLSWorker is fakeWorker with the certificate of dir/worker.pem; it returns its URL.
func fakeTLSWorker(t *testing.T, dir string, serve http.HandlerFunc) string {
	t.Helper()
	plain := fakeWorker(t, serve)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certtest.New(t, dir, "worker", "worker").TLS}})
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: plain.Config.Handler, ReadHeaderTimeout: 10 * time.Second}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return "https://" + l.Addr().String()
}
