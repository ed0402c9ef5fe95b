package cli

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// limitFiles sets the soft limit of open files of a running process.
func (p *process) limitFiles(n uint64) {
	p.t.Helper()
	var r unix.Rlimit
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_NOFILE, nil, &r); err != nil {
		p.t.Fatal(err)
	}
	r.Cur = min(n, r.Max)
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_NOFILE, &r, nil); err != nil {
		p.t.Fatal(err)
	}
}

// TestNoDescriptorForAWorker: a process without a free descriptor for the workers refuses its clients, and logs that
// once a second, not once a request: a log that fills the disk would be the next failure.
func TestNoDescriptorForAWorker(t *testing.T) {
	dir, port := besideTwoWorkers(t)
	p := warmpath(t, dir, "serve --config a.toml")
	p.eventually("both workers are up", func() bool { return strings.Count(p.String(), `msg="worker up"`) >= 2 })

	client := http.Client{Timeout: patience} // one connection: no other can be accepted
	ask := func(method, path, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequest(method, fmt.Sprintf("http://127.0.0.1:%d%s", port+2, path), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	const chat = `{"model":"sim","messages":[{"role":"user","content":"x"}],"max_tokens":2}`
	ask("GET", "/health", "")
	p.limitFiles(5) // fewer than are open
	before, began := strings.Count(p.String(), "\n"), time.Now()
	const requests = 300
	for range requests {
		if status, text := ask("POST", "/v1/chat/completions", chat); status != 429 || !strings.Contains(text, "overloaded") {
			t.Fatalf("%d %s; want 429", status, text)
		}
	}
	lines, most := strings.Count(p.String(), "\n")-before, 10*(int(time.Since(began).Seconds())+2)
	p.says("no descriptor is left", 1)
	if lines > most || lines > requests {
		t.Errorf("%d requests left %d lines; want %d at most:\n%.2000s", requests, lines, most, p)
	}
	p.limitFiles(1024)
	if status, text := ask("POST", "/v1/chat/completions", chat); status != 200 {
		t.Errorf("with descriptors again: %d %s; want 200", status, text)
	}
	p.stop()
}
