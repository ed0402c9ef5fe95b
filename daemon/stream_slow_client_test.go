package daemon

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/account"
)

// TestSlowClientIsNotASilentWorker: while the client takes nothing, nothing is read of the worker either, and a fall
// there with its grace is no reason to end the answer that has come meanwhile.
func TestSlowClientIsNotASilentWorker(t *testing.T) {
	t.Parallel()
	const tokens = 200
	token := "data: {\"choices\":[{\"index\":0,\"text\":\"" + strings.Repeat("y", 100_000) + "\"}]}\n\n"
	w := fakeWorker(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		for range tokens {
			io.WriteString(rw, token)
		}
		io.WriteString(rw, done)
	})
	r := start(t, fromDefaults("down_grace = \"1s\"", w.URL), 1)
	resp, err := testClient.Post("http://"+r.Addr()+"/v1/completions", "application/json", strings.NewReader(aStream))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond) // the buffers on the way fill up
	pool := r.state.Load().pools[0].route.Workers
	w.Listener.Close()
	eventually(t, "the worker down", func() bool { return pool.Stats(time.Now())[0].State == worker.Down })
	time.Sleep(2 * time.Second) // the grace, and a second look
	b, err := io.ReadAll(resp.Body)
	if want := tokens*len(token) + len(done) - 10; err != nil || len(b) != want {
		t.Errorf("%d bytes, %v; want %d: ...%q", len(b), err, want, b[max(0, len(b)-200):])
	}
}

// slowReader sends a request and reads nothing of its answer. The kernel takes little of it on its behalf.
func slowReader(t *testing.T, r *running, body string, header ...string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}).Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
		strings.Join(header, ""), len(body), body)
	return conn
}

// TestASlowReaderHoldsNoWorker: a worker's only place is free once the worker has sent its answer, although the client
// has taken hardly any of it. The client gets all of it, whenever it reads. One that leaves in the meantime leaves
// nothing behind.
func TestASlowReaderHoldsNoWorker(t *testing.T) {
	t.Parallel()
	const tokens = 35
	token := "data: {\"choices\":[{\"index\":0,\"text\":\"" + strings.Repeat("y", 100_000) + "\"}]}\n\n"
	w := fakeWorker(t, func(rw http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		if !strings.Contains(string(body), "slow") {
			rw.Header().Set("Content-Type", "application/json")
			io.WriteString(rw, `{"id":"x","choices":[{"index":0,"text":"a","finish_reason":"stop"}]}`)
			return
		}
		if strings.Contains(string(body), "whole") {
			rw.Header().Set("Content-Type", "application/json")
			io.WriteString(rw, `{"id":"x","choices":[{"index":0,"text":"`+strings.Repeat("y", tokens*100_000)+`","finish_reason":"stop"}]}`)
			return
		}
		rw.Header().Set("Content-Type", "text/event-stream")
		for range tokens {
			io.WriteString(rw, token)
		}
		io.WriteString(rw, done)
	})
	r := start(t, limited(t, "team", "max_in_flight = 8")+fromDefaults("max_in_flight = 1", w.URL), 1)
	key := "Authorization: Bearer " + "team-secret" + "\r\n"
	for _, c := range []struct {
		about, body string
		leaves      bool
	}{
		{about: "a stream", body: `{"model":"sim","prompt":"slow","stream":true}`},
		{about: "a whole answer", body: `{"model":"sim","prompt":"slow whole"}`},
		{about: "a client that leaves", body: `{"model":"sim","prompt":"slow","stream":true}`, leaves: true},
	} {
		slow := slowReader(t, r, c.body, key)
		eventually(t, c.about+": the answer is read ahead", func() bool { return r.front.Stats().Held.Held[account.Ahead] > 0 })
		if s := r.as("team", "POST", "/v1/completions", `{"model":"sim","prompt":"quick"}`); s.status != 200 {
			t.Errorf("%s: another request got %d %s", c.about, s.status, s.body)
		}
		if c.leaves {
			slow.Close()
		} else if resp, err := http.ReadResponse(bufio.NewReader(slow), nil); err != nil {
			t.Errorf("%s: %v", c.about, err)
		} else if b, err := io.ReadAll(resp.Body); err != nil || strings.Count(string(b), "y") != tokens*100_000 {
			t.Errorf("%s: %d bytes, %v", c.about, len(b), err)
		}
		slow.Close()
		eventually(t, c.about+": nothing is held", func() bool {
			return r.front.Stats().Held == account.Sums{} && r.front.Stats().InFlight == 0
		})
	}
}
