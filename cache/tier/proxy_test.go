package tier

import (
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// proxy leads from a listener to a socket, and delays what comes back. It returns the listener's address.
func proxy(t *testing.T, l net.Listener, socket string, delay *atomic.Int64) string {
	t.Helper()
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", socket)
			if err != nil {
				near.Close()
				continue
			}
			go func() { io.Copy(far, near); far.Close() }()
			go func() {
				defer near.Close()
				buf := make([]byte, 32<<10)
				for {
					n, err := far.Read(buf)
					if err != nil {
						return
					}
					time.Sleep(time.Duration(delay.Load()))
					if _, err := near.Write(buf[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestTLS(t *testing.T) {
	r := startRedis(t)
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	addr := proxy(t, tls.NewListener(listen(t), &tls.Config{Certificates: web.TLS.Certificates}), r.Socket(), new(atomic.Int64))
	s, _ := open(t, Config{Redis: "rediss://" + addr + "?skip_verify=true", Timeout: patient})
	s.Set("ns", "k", []byte("1"), time.Hour)
	other, _ := open(t, Config{Redis: r.URL(), Timeout: patient})
	want(t, other, "k", "1")
	strict, _ := open(t, Config{Redis: "rediss://" + addr, Timeout: patient})
	wantNone(t, strict, "k")
	if strict.Stats().L2.Failures == 0 {
		t.Error("a certificate of nobody's was trusted")
	}
}
