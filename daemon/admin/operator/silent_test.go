package operator

import (
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/metrics"
)

// TestSilentOperators: a client that sends nothing is closed soon, and one that has sent a request may wait with its
// next one.
func TestSilentOperators(t *testing.T) {
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{listener: lingering{raw}}
	s.app = s.newApp(Config{Metrics: metrics.NewMetrics("test"), Process: serving{}, ReadTimeout: time.Minute, IdleTimeout: time.Minute})
	s.decided.over = make(chan struct{})
	go s.Run()
	defer s.Close()
	known := &http.Client{}
	ask := func() error {
		resp, err := known.Get("http://" + s.Addr() + "/health")
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	silent, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	start := time.Now()
	_ = silent.SetReadDeadline(start.Add(3 * firstByte))
	_, err = io.Copy(io.Discard, silent)
	if took := time.Since(start); os.IsTimeout(err) || took > 2*firstByte || took < firstByte/2 {
		t.Errorf("a silent client is closed after %s (%v); want %s", took, err, firstByte)
	}
	if err := ask(); err != nil {
		t.Error("a client between two requests:", err)
	}
}
