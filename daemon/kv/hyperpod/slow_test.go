package hyperpod

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
)

// drip is a body with a piece every 29 s.
type drip struct{ left int }

func (d *drip) Read(p []byte) (int, error) {
	time.Sleep(pieceTime - time.Second)
	if d.left == 0 {
		return 0, io.EOF
	}
	d.left--
	p[0] = 1
	return 1, nil
}

// clock is a connection whose reads end at their deadline.
type clock struct {
	net.Conn
	body io.Reader
	due  time.Time
}

func (c *clock) SetReadDeadline(t time.Time) error { c.due = t; return nil }

func (c *clock) Read(p []byte) (int, error) {
	n, err := c.body.Read(p)
	if time.Now().After(c.due) {
		return 0, context.DeadlineExceeded
	}
	return n, err
}

// TestSlowBody: a value that comes byte by byte is given up when the time for all of it is over.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const length = 4 << 20
		s := &Server{config: Config{Log: slog.New(slog.DiscardHandler)}}
		c := &clock{body: &drip{left: 100}}
		var r fasthttp.RequestCtx
		r.Init2(c, nil, false)
		r.Request.SetBodyStream(c, length)
		start := time.Now()
		err := s.fill(&r, [][]byte{make([]byte, length)}, bytes.Repeat([]byte{1}, firstRoom), length)
		if took, most := time.Since(start), 2*pieceTime+length/leastRate*time.Second; err == nil || took > most {
			t.Errorf("it ended after %s with %v; want an error within %s", took, err, most)
		}
	})
}

// TestStallsAreLoggedOnceAMinute: a worker that dies leaves as many values as it has connections.
func TestStallsAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := &Server{config: Config{Log: slog.New(slog.NewTextHandler(&log, nil))}}
		stall := func(times, lines int) {
			t.Helper()
			for range times {
				var r fasthttp.RequestCtx
				r.Init(&fasthttp.Request{}, nil, nil)
				s.broken(&r, os.ErrDeadlineExceeded, 1<<20)
			}
			if n := bytes.Count(log.Bytes(), []byte("stopped in the middle")); n != lines {
				t.Errorf("%d lines; want %d:\n%s", n, lines, log.String())
			}
		}
		stall(100, 1)
		time.Sleep(time.Minute)
		stall(100, 2)
		if n := s.counts.stalled.Load(); n != 200 {
			t.Errorf("%d stalls are counted; want 200", n)
		}
	})
}
