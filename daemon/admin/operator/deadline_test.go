package operator

import (
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/metrics"
)

// timed is a connection that counts the writes before which no deadline was set.
type timed struct {
	net.Conn
	set  atomic.Bool
	late *atomic.Int32
}

func (c *timed) SetWriteDeadline(t time.Time) error {
	in := time.Until(t)
	c.set.Store(in > 0 && in <= answerTime)
	return c.Conn.SetWriteDeadline(t)
}

func (c *timed) Write(b []byte) (int, error) {
	if !c.set.Load() {
		c.late.Add(1)
	}
	return c.Conn.Write(b)
}

type timedListener struct {
	net.Listener
	late atomic.Int32
}

func (l *timedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &timed{Conn: c, late: &l.late}, nil
}

// TestAnswersHaveADeadline: whoever reads nothing does not keep a connection of the operator's for ever.
func TestAnswersHaveADeadline(t *testing.T) {
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &timedListener{Listener: raw}
	s := &Server{listener: l}
	s.app = s.newApp(Config{Metrics: metrics.NewMetrics("test"), Process: serving{}})
	s.decided.over = make(chan struct{})
	go s.Run()
	defer s.Close()
	for _, path := range []string{"/health", "/", "/metrics"} {
		resp, err := http.Get("http://" + s.Addr() + path)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if l.late.Load() > 0 {
			t.Errorf("%s is written without a deadline", path)
		}
	}
}
