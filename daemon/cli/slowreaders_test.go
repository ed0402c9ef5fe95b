package cli

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// gusher is a worker whose streams have no end and come as fast as the reader takes them, in events in vLLM's form: a
// daemon keeps the text of an answer until its end.
func gusher(t *testing.T) string {
	t.Helper()
	event := []byte(strings.Repeat("data: {\"id\":\"cmpl-"+strings.Repeat("0", 32)+"\",\"object\":\"text_completion\",\"created\":1760000000,\"model\":\"sim\","+
		"\"choices\":[{\"index\":0,\"text\":\" word\",\"logprobs\":null,\"finish_reason\":null,\"stop_reason\":null}],\"usage\":null}\n\n", 16))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/v1/completions":
		case r.Header.Get("X-Gush") == "":
			io.WriteString(w, `{"choices":[{"index":0,"text":"x"}]}`)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			for {
				if _, err := w.Write(event); err != nil {
					return
				}
			}
		}
	}))
	t.Cleanup(s.CloseClientConnections)
	return s.URL
}

// readSlowly requests a stream and reads a piece of it at each interval; nothing if that is zero.
func readSlowly(addr string, every time.Duration, took *atomic.Int64, done <-chan struct{}) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.(*net.TCPConn).SetReadBuffer(4096)
	const body = `{"model":"sim","prompt":"x","stream":true}`
	fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nX-Gush: 1\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if every == 0 {
		<-done
		return nil
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	piece := make([]byte, 16<<10)
	for {
		select {
		case <-done:
			return nil
		case <-tick.C:
		}
		_ = c.SetReadDeadline(time.Now().Add(patience))
		n, err := c.Read(piece)
		if err != nil {
			return err
		}
		took.Add(int64(n))
	}
}

// TestFiveHundredSlowReaders: 250 clients read nothing of their streams and are cut off, 250 read slowly and are not.
// The process grows by at most 128 KiB for each, and other requests are not affected.
func TestFiveHundredSlowReaders(t *testing.T) {
	t.Parallel()
	dir, port := workplace(t), porttest.Row(t, 2)
	write(t, filepath.Join(dir, "a.toml"), fmt.Sprintf("[server]\nlisten = \"127.0.0.1:%d\"\nadmin = \"127.0.0.1:%d\"\nwrite_timeout = \"3s\"\n[[pools]]\nconnect_timeout = \"20s\"\nhealth_interval = \"20s\"\n[[pools.workers]]\nurl = %q\n",
		port, port+1, gusher(t)))
	p := warmpath(t, dir, "serve --config a.toml")
	p.says(`msg="worker up"`, 1)
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	honest := func() {
		t.Helper()
		if status, _, text := fetch("POST", "http://"+addr+"/v1/completions", `{"model":"sim","prompt":"x"}`); status != 200 {
			t.Errorf("a request beside slow readers: %d %.100s", status, text)
		}
	}
	gauge := func(name string) (n int) {
		_, _, text := fetch("GET", fmt.Sprintf("http://127.0.0.1:%d/metrics", port+1), "")
		for line := range strings.SplitSeq(text, "\n") {
			if rest, ok := strings.CutPrefix(line, name+" "); ok {
				fmt.Sscan(rest, &n)
			}
		}
		return n
	}
	// Rounds run until the heap is as large as the collector lets it become without streams, which takes some 500 rounds:
	// later growth would count as the streams'.
	largest, still, rounds := 0, 0, 0
	for ; still < 600 && rounds < 5000; rounds++ {
		honest()
		gauge("")
		still++
		if now := p.resident(); now > largest {
			largest, still = now, 0
		}
	}
	before := p.resident()
	const each = 250
	done := make(chan struct{})
	var all sync.WaitGroup
	var took, broken atomic.Int64
	for i := range 2 * each {
		time.Sleep(5 * time.Millisecond) // not all connections at once
		all.Go(func() {
			if err := readSlowly(addr, time.Duration(i%2)*200*time.Millisecond, &took, done); err != nil {
				broken.Add(1)
			}
		})
	}
	const slow = `warmpath_client_connections_total{event="too_slow"}`
	p.eventually("who reads nothing is cut", func() bool { honest(); return gauge(slow) >= each })
	grown := p.resident() - before
	if limit := 2 * each * 128 / 1024; grown > limit {
		t.Errorf("%d MB before, %d MB more; want at most %d MB for %d streams", before, grown, limit, 2*each)
	}
	for range 20 {
		honest()
	}
	if n := gauge(slow); n != each || broken.Load() > 0 {
		t.Errorf("%d connections were cut, and %d of those that read slowly; want %d and none", n, broken.Load(), each)
	}
	if took.Load() == 0 {
		t.Error("who reads slowly got nothing")
	}
	t.Logf("%d MB before, after %d rounds, %d MB more", before, rounds, grown)
	close(done)
	all.Wait()
	p.stop()
}
