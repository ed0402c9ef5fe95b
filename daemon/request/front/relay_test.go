package front

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
)

// uncounted is a Meter of nothing.
type uncounted struct{}

func (uncounted) Answered(*message.Seen)               {}
func (uncounted) Shed(string, string)                  {}
func (uncounted) Crowded(*message.Seen, []*epoch.Pool) {}

// TestAPanicBehindAStream: what panics on a connection whose stream has ended leaves other requests alone, among them
// the one that has got the request's memory.
func TestAPanicBehindAStream(t *testing.T) {
	client, conn := connected(t, listening(t))
	var log strings.Builder
	r := &handler{log: slog.New(slog.NewTextHandler(&log, nil)), meter: uncounted{}, backend: backend{}}
	begin := func() *request {
		q := requests.Get().(*request)
		q.handler = r
		q.epoch = &Epoch{}
		q.life = r.traffic.begin()
		return q
	}
	r.serveConn = func(net.Conn) error {
		begin()
		panic("on the next request")
	}
	q := begin()
	q.extra = extras.Get().(*extra)
	out := &message.Outbound{Status: 200, Length: -1, Stream: io.NopCloser(strings.NewReader("x"))}
	(&relay{q: q, handler: r, out: out, conn: conn, http11: true, keep: true, next: []byte("P")}).run()
	if n := r.traffic.inFlight.Load(); n != 1 || !strings.Contains(log.String(), "on the next request") {
		t.Errorf("%d requests are in flight; want the other one\n%s", n, &log)
	}
	if _, err := io.ReadAll(client); err == nil {
		t.Error("the connection ends as if nothing had happened")
	}
}
