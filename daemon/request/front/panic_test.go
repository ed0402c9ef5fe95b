package front

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// torn is a stream that gives a piece, and panics at the next read.
type torn struct{ given bool }

func (s *torn) Read(b []byte) (int, error) {
	if s.given {
		panic("in the stream")
	}
	s.given = true
	return copy(b, "piece"), nil
}

func (s *torn) Close() error { return nil }

// backend panics at every request that is no stream, and without an epoch. It sends the statuses of requests that end
// to ends.
type backend struct {
	epoch *Epoch
	ends  chan int // nil = nowhere
}

func (b backend) Epoch() *Epoch {
	if b.epoch == nil {
		panic("no epoch")
	}
	return b.epoch
}

func (backend) Serve(_ context.Context, in *message.Inbound) *message.Outbound {
	if in.ID == "stream" {
		return &message.Outbound{Status: 200, Length: -1, Stream: &torn{}}
	}
	panic("before an answer")
}

func (backend) Ready(bool) (bool, any) { return true, nil }

func (b backend) Ended(in *message.Inbound, _ time.Duration, _ int64) {
	if b.ends != nil {
		b.ends <- int(in.Seen.Status)
	}
}

func (backend) Trace(*message.Inbound, time.Time) {}

// TestAPanicHasItsLine: a request that makes the daemon panic has its line in the access log, and its end, as others do.
func TestAPanicHasItsLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "access.json")
	ends := make(chan int, 2)
	served := &Epoch{MaxBody: 1 << 20, BufferBody: 1 << 20, MaxInFlight: 8, ReadTimeout: time.Minute, IdleTimeout: time.Minute}
	workers := worker.New(worker.Config{}, time.Now())
	served.Pools = []*epoch.Pool{{Pool: &route.Pool{Workers: workers}}}
	s, err := New(Config{Log: slog.New(slog.DiscardHandler), Meter: uncounted{}, Listen: "127.0.0.1:0", MaxConns: 8, Connections: 8,
		MaxHeaderBytes: 1 << 14, ReadTimeout: time.Minute, IdleTimeout: time.Minute, WriteTimeout: time.Minute,
		Backend: backend{epoch: served, ends: ends}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.OpenLog(file); err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Run() }()
	defer s.Close()
	f := func(id string, status int) {
		t.Helper()
		req, _ := http.NewRequest("POST", "http://"+s.Addr()+"/v1/completions", strings.NewReader("{}"))
		req.Header.Set("X-Request-Id", id)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		select {
		case got := <-ends:
			if got != status {
				t.Errorf("%s: it ends with status %d; want %d", id, got, status)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: the request has no end", id)
		}
	}
	f("whole", 500)
	f("stream", 200)
	for s.traffic.inFlight.Load() > 0 { // the end of a stream follows its line
		time.Sleep(time.Millisecond)
	}
	s.CloseLog()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(text)) {
		var l struct {
			ID     string
			Status int
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		got = append(got, l.ID)
	}
	if strings.Join(got, " ") != "whole stream" {
		t.Errorf("lines of %q; want one of each request", got)
	}
}
