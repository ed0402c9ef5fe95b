package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// TestDescriptorsUsedUp: clients that open more connections than the process has descriptors do not end anything. The
// admitted ones are served, the operator's pages answer, workers stay up, and when the crowd has left all is as before.
func TestDescriptorsUsedUp(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{64, 400} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) { useUpDescriptors(t, limit) })
	}
}

// besideTwoWorkers starts two simulated workers at port and the next, and writes a.toml for a router that serves
// clients at port+2 and the operator at port+3.
func besideTwoWorkers(t *testing.T) (dir string, port int) {
	t.Helper()
	dir, port = workplace(t), porttest.Row(t, 4)
	sim := warmpath(t, dir, fmt.Sprintf("sim --listen 127.0.0.1:%d --count 2", port))
	write(t, filepath.Join(dir, "a.toml"), fmt.Sprintf(`[server]
listen = "127.0.0.1:%d"
admin = "127.0.0.1:%d"
[[pools]]
[[pools.workers]]
url = "http://127.0.0.1:%d"
[[pools.workers]]
url = "http://127.0.0.1:%d"
`, port+2, port+3, port, port+1))
	sim.says("", 0)
	return dir, port
}

func useUpDescriptors(t *testing.T, limit int) {
	dir, port := besideTwoWorkers(t)
	clients, admin := fmt.Sprintf("127.0.0.1:%d", port+2), fmt.Sprintf("http://127.0.0.1:%d", port+3)
	p := launch(t, dir, fmt.Sprintf("sh -c 'ulimit -n %d && exec bin/warmpath serve --config a.toml'", limit),
		"XDG_CACHE_HOME="+filepath.Join(built, "cache"))
	p.eventually("both workers are up", func() bool { return strings.Count(p.String(), `msg="worker up"`) >= 2 })
	p.says("max_connections is lowered", 1)

	first, err := net.Dial("tcp", clients)
	if err != nil {
		t.Fatal(err)
	}
	body := `{"model":"sim","prompt":"hello","max_tokens":2}`
	ask := func() { // a client that has sent no request loses its place in a crowd
		t.Helper()
		_ = first.SetDeadline(time.Now().Add(patience))
		fmt.Fprintf(first, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		answer, err := http.ReadResponse(bufio.NewReader(first), nil)
		if err != nil || answer.StatusCode != 200 {
			t.Fatalf("one that was let in got %v, %v; want 200", answer, err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
	}
	ask()
	crowd := []net.Conn{first}
	defer func() {
		for _, c := range crowd {
			c.Close()
		}
	}()
	for range 4 * limit {
		c, err := net.DialTimeout("tcp", clients, 10*time.Second)
		if err != nil {
			continue // the kernel's queue is full
		}
		crowd = append(crowd, c)
	}
	p.says("connections are refused", 1)
	for range 20 { // scrapes while the crowd is there
		for _, page := range []string{"/metrics", "/ready", "/health"} {
			if status, _, text := fetch("GET", admin+page, ""); status != 200 {
				t.Fatalf("%s with every descriptor in use: %d %.200s\n%s", page, status, text, p)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	ask()
	for _, c := range crowd {
		c.Close()
	}
	crowd = nil
	waittest.Until(t, "an answer after the crowd", func() bool { // the daemon sees one after the other leave
		status, _, _ := fetch("POST", "http://"+clients+"/v1/completions", body)
		return status == 200
	})
	if out := p.String(); strings.Contains(out, "worker down") || strings.Contains(out, "panic") {
		t.Errorf("a crowd of clients took a worker down:\n%s", out)
	}
	p.stop()
}
