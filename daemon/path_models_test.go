package daemon

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// nginxBefore starts an nginx that hands all paths on as nginx resolves them: its proxy_pass has a path of its own.
func nginxBefore(t *testing.T, worker string) (url string) {
	t.Helper()
	command, err := exec.LookPath("nginx")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no nginx: apt-get install nginx")
		}
		t.Skip("SKIPPED: there is no nginx, so paths that a proxy resolves are not tested; apt-get install nginx")
	}
	addr := porttest.Address(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "nginx.conf"), fmt.Sprintf(`daemon off; worker_processes 1; pid %[1]s/pid; error_log stderr crit;
events { worker_connections 128; }
http {
	access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	server { listen %[2]s; location / { proxy_pass %[3]s/; } }
}
`, dir, addr, worker))
	cmd := exec.Command(command, "-p", dir, "-c", filepath.Join(dir, "nginx.conf"), "-e", "stderr")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	eventually(t, "nginx listens", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return "http://" + addr
}

// TestPathsStayUnderV1: no spelling of a path reaches what a worker serves beside inference, nor another endpoint
// than the one that was judged, with a proxy before the worker that resolves paths.
func TestPathsStayUnderV1(t *testing.T) {
	w := newWitness(t)
	r := start(t, keysFor(t)+settings("roundrobin", nginxBefore(t, w.url)), 1)
	for _, path := range []string{
		"/v1/..%2fsleep", "/v1/%2e%2e%2fsleep", "/v1/x/..%2f..%2fsleep", "/v1/responses/..%2f..%2fmetrics", "/v1/responses/..%2f..%2fopenapi.json",
		"/v1/responses/..%2fchat%2fcompletions", "/v1/responses/%2e%2e/chat/completions", "/v1/..%5csleep", `/v1/..\sleep`, "/v1/models%00", "/v1//load_lora_adapter",
		"/v1/x/../load_lora_adapter", "/v1/x%2f..%2fload_lora_adapter", "/v1/./sleep", "/v1/..;/sleep%2f",
	} {
		for _, method := range []string{"POST", "GET"} {
			for _, who := range []string{"alice", "bob"} {
				body := `{"model":"secret"}`
				head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s-secret\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", method, path, who, len(body))
				resp, text, _ := r.raw(head + body)
				if asked := w.since(); resp.StatusCode != 400 && resp.StatusCode != 404 || len(asked) > 0 {
					t.Errorf("%s %s of %s: %d %s, the worker was asked %q", method, path, who, resp.StatusCode, text, asked)
				}
			}
		}
	}
	if s := r.as("alice", "POST", "/v1/%63hat/completions?a=%2f..%2f", `{"model":"secret"}`); s.status != 200 {
		t.Errorf("a plain path: %d %s", s.status, s.body)
	}
	if asked := w.since(); len(asked) != 1 || !strings.HasPrefix(asked[0], "POST /v1/chat/completions?a=%2f..%2f ") {
		t.Errorf("the worker was asked %q", asked)
	}
}

// TestModelsByName: GET /v1/models/{id} is answered from the list, as the key may see it, in the client's shape.
func TestModelsByName(t *testing.T) {
	w := newWitness(t)
	other := sims(t, 1, vllmsim.Config{Models: []string{"sim-2"}})
	var b strings.Builder
	b.WriteString(keysFor(t) + "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n")
	addPool(&b, "second", "roundrobin", "sim-2", other.URLs()...)
	addPool(&b, "first", "roundrobin", "*", w.url)
	r := start(t, b.String(), 2)
	f := func(who, path string, status int, want string, header ...string) {
		t.Helper()
		s := r.as(who, "GET", path, "", header...)
		if s.status != status || !strings.Contains(s.body, want) || s.header.Get("Content-Type") != "application/json" || len(w.since()) > 0 {
			t.Errorf("%s, %s %q: %d %s; want %d with %s, from the router", who, path, header, s.status, s.body, status, want)
		}
	}
	const lost = `"code":"model_not_found"`
	f("alice", "/v1/models/sim", 200, `{"id":"sim","object":"model","created":1700000000}`)
	f("alice", "/v1/models/sim-2", 200, `"id":"sim-2"`)
	f("alice", "/v1/models/org/name", 200, `"id":"org/name"`)
	f("alice", "/v1/models/org%2Fname", 200, `"id":"org/name"`)
	f("alice", "/v1/models/%73im", 200, `"id":"sim"`)
	f("alice", "/v1/models/nobody", 404, lost)
	f("alice", "/v1/models/..%2f..%2fmetrics", 404, lost)
	f("alice", "/v1/models/../../metrics", 404, lost)
	f("alice", "/v1/models/"+strings.Repeat("x", 3000), 404, lost)
	f("bob", "/v1/models/sim", 200, `"id":"sim"`)
	f("bob", "/v1/models/secret", 404, lost)
	f("carol", "/v1/models/org%2fname", 200, `"id":"org/name"`)
	f("carol", "/v1/models/sim", 404, lost)
	f("carol", "/v1/models", 200, `{"object":"list","data":[{"id":"org/name"}]}`)
	f("carol", "/v1/models/", 200, `{"object":"list","data":[{"id":"org/name"}]}`)
	f("alice", "/v1/models/sim", 200, `{"type":"model","id":"sim","display_name":"sim","created_at":"2023-11-14T22:13:20Z"}`, "anthropic-version", "2023-06-01")
	f("bob", "/v1/models/secret", 404, `{"type":"error","error":{"type":"not_found_error"`, "anthropic-version", "2023-06-01")
	f("carol", "/v1/models", 200, `{"data":[{"type":"model","id":"org/name","display_name":"org/name","created_at":"1970-01-01T00:00:00Z"}],"has_more":false,`+
		`"first_id":"org/name","last_id":"org/name"}`, "anthropic-version", "2023-06-01")
	if s := r.do("GET", "/v1/models/sim", ""); s.status != 401 {
		t.Errorf("without a key: %d", s.status)
	}
}
