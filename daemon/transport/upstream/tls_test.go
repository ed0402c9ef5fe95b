package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Proto", r.Proto)
		io.WriteString(w, strings.ToUpper(string(b)))
	}))
	s.EnableHTTP2 = true // which we must not be given
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())

	u := client(t, Config{URL: s.URL, TLS: &tls.Config{RootCAs: roots}})
	for _, r := range []*Request{post, {Method: "POST", Path: "/", Body: []byte("a"), Tail: strings.NewReader("bc"), TailLength: -1}, post} {
		resp, err := u.Do(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp)
		if want := map[bool]string{true: "ABC", false: "{}"}[r.Tail != nil]; string(b) != want || err != nil || resp.Header.Get("proto") != "HTTP/1.1" {
			t.Errorf("got %q %v, %v; want %q by HTTP/1.1", b, resp.Header, err, want)
		}
		resp.Close()
	}
	if st := u.Stats(); st.Reused != 1 {
		t.Errorf("%+v; want one reused connection", st)
	}
	if _, _, err := ask(client(t, Config{URL: s.URL}), post); !NotSent(err) {
		t.Errorf("unknown root: got %v; want NotSent", err)
	}
}

func TestHandshakeHasADeadline(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	u := client(t, Config{URL: "https://" + l.Addr().String(), ConnectTimeout: 50 * time.Millisecond})
	if _, _, err := ask(u, post); !NotSent(err) || !isTimeout(err) {
		t.Errorf("got %v; want NotSent by a timeout", err)
	}
}
