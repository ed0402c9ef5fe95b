package operator

import (
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/admin/metrics"
	"github.com/warmpath/warmpath/daemon/admin/readiness"
)

// serving is a process that does not drain, and cannot be looked at.
type serving struct{ Process }

func (serving) Draining() bool { return false }

func (serving) Pools() []*readiness.Pool { panic("a fault") }

// TestAPanicAtAPage: a page that makes the daemon panic is answered 500, and the process goes on.
func TestAPanicAtAPage(t *testing.T) {
	var log strings.Builder
	s := &Server{c: Config{Metrics: metrics.NewMetrics("test"), Log: slog.New(slog.NewTextHandler(&log, nil)),
		Process: serving{}}}
	r := httptest.NewRequest("GET", "/api/v1/pools", nil)
	r.Host = "127.0.0.1"
	resp, err := s.newApp(s.c).Test(r)
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != 500 || !strings.Contains(string(text), "its log has the reason") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if !strings.Contains(log.String(), `panic="a fault" path=/api/v1/pools`) {
		t.Errorf("the log: %s", log.String())
	}
}
