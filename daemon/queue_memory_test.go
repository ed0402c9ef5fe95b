package daemon

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestQueueBytesAreReal: what requests that wait hold, in memory that is in use after a collection, is at most 1.3 of what
// the queue says and max_bytes bounds: small ones, ones with cookies and tokens of 24 KB, and long bodies.
func TestQueueBytesAreReal(t *testing.T) {
	if !alone(t) {
		return
	}
	busy := make(chan struct{})
	w := fakeWorker(t, func(rw http.ResponseWriter, req *http.Request) {
		_, _ = io.ReadAll(req.Body)
		<-busy
		rw.Header().Set("Content-Type", "application/json")
		io.WriteString(rw, `{"id":"x","choices":[{"index":0,"text":"a","finish_reason":"stop"}]}`)
	})
	defer close(busy)
	r := start(t, fromDefaults("max_in_flight = 1\nqueue = { wait = \"60s\" }", w.URL), 1)
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what pools keep for a while
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse + m.StackInuse)
	}
	told := func() int64 {
		return r.state.Load().pools[0].queue.Counts().Bytes
	}
	for _, c := range []struct {
		about        string
		fields, body int
	}{{"small", 0, 10}, {"long headers", 16, 12_000}, {"long bodies", 0, 200_000}} {
		const n = 300
		body := fmt.Sprintf(`{"model":"sim","prompt":%q}`, strings.Repeat("x", c.body))
		request := []byte("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
			strings.Repeat("X-Filler: "+strings.Repeat("f", 1490)+"\r\n", c.fields) +
			fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
		before, had := inUse(), told()
		var conns []net.Conn
		for range n {
			conn, err := net.Dial("tcp", r.Addr())
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, conn)
			go func() { _, _ = conn.Write(request) }()
		}
		eventually(t, "they wait", func() bool { return r.state.Load().pools[0].queue.Depth() >= n-1 })
		held, said := inUse()-before, told()-had
		t.Logf("%s: %d KB each, %d KB by the queue", c.about, held/n>>10, said/n>>10)
		if float64(held) > 1.3*float64(said) || float64(said) > 3*float64(held) {
			t.Errorf("%s: %d requests hold %d bytes; the queue says %d", c.about, n, held, said)
		}
		for _, conn := range conns {
			conn.Close()
		}
		eventually(t, "they are gone", func() bool { return r.state.Load().pools[0].queue.Depth() == 0 })
	}
}

// alone reports whether the test has a process of its own, and if not runs it in one: what other tests leave in the heap, and
// in the holes between it, is not what this one holds.
func alone(t *testing.T) bool {
	t.Helper()
	const asked = "WARMPATH_TEST_ALONE"
	if os.Getenv(asked) == t.Name() {
		return true
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), asked+"="+t.Name())
	out, err := c.CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Errorf("in a process of its own: %v", err)
	}
	return false
}
