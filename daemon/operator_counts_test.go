package daemon

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// metric is the sum of the series of that name that have all of these labels, written as name="value".
func (r *running) metric(name string, with ...string) (sum float64) {
	r.t.Helper()
	for line := range strings.Lines(do(r.t, "GET", "http://"+r.AdminAddr()+"/metrics", "").body) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		fits := series == name || strings.HasPrefix(series, name+"{")
		for _, label := range with {
			fits = fits && (strings.Contains(series, "{"+label) || strings.Contains(series, ","+label))
		}
		if fits {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				r.t.Fatalf("%q: %v", line, err)
			}
			sum += n
		}
	}
	return sum
}

// logged reads the access log.
func logged(t *testing.T, file string) (lines []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1] // another line may be in the midst of being written
	for line := range strings.Lines(string(text)) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		lines = append(lines, m)
	}
	return lines
}

// raw sends the bytes on a connection of its own and returns the status line and the header of the answer.
func raw(t *testing.T, addr, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	var head strings.Builder
	for r := bufio.NewReader(c); ; {
		line, err := r.ReadString('\n')
		head.WriteString(line)
		if err != nil || line == "\r\n" {
			return head.String()
		}
	}
}

// TestEveryAnswerIsCountedAndLoggedOnce: what is refused at the door too, and with Expect as without.
func TestEveryAnswerIsCountedAndLoggedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, log := filepath.Join(dir, "key"), filepath.Join(dir, "access.log")
	write(t, key, "a-good-key")
	toml := strings.Replace(settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...), "[server]",
		fmt.Sprintf("[server]\nmax_body_bytes = 2048\nread_timeout = \"1s\"\naccess_log = %q", log), 1)
	r := start(t, toml+fmt.Sprintf("[[keys]]\nname = \"k\"\nfile = %q\n", key), 1)
	const good = "Host: x\r\nAuthorization: Bearer a-good-key\r\nContent-Type: application/json\r\n"
	want := map[string]float64{}
	f := func(status int, request string) {
		t.Helper()
		head := raw(t, r.Addr(), request)
		if !strings.HasPrefix(head, fmt.Sprintf("HTTP/1.1 %d ", status)) {
			t.Errorf("%.60q: %.60q; want %d", request, head, status)
		}
		if strings.Count(strings.ToLower(head), "\r\nx-request-id: ") != 1 {
			t.Errorf("%.60q: want one X-Request-Id in\n%s", request, head)
		}
		want[strconv.Itoa(status)]++
	}
	body := `{"model":"sim","prompt":"x","max_tokens":1}`
	f(200, "POST /v1/completions HTTP/1.1\r\n"+good+fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
	f(200, "GET /v1/models HTTP/1.1\r\n"+good+"\r\n")
	for _, expect := range []string{"", "Expect: 100-continue\r\n"} {
		f(401, "POST /v1/completions HTTP/1.1\r\nHost: x\r\n"+expect+"Content-Length: 50\r\n\r\n")
		f(413, "POST /v1/completions HTTP/1.1\r\n"+good+expect+"Content-Length: 4000\r\n\r\n")
	}
	f(401, "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
	f(404, "GET /nowhere HTTP/1.1\r\n"+good+"\r\n")
	f(404, "POST /nowhere HTTP/1.1\r\n"+good+"\r\n")
	f(404, "GET /v1/realtime HTTP/1.1\r\n"+good+"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	f(401, "GET /v1/realtime HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	f(400, "POST /v1/completions HTTP/1.1\r\n"+good+"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n")
	f(400, "GET /health HTTP/1.1\r\n"+good+"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n")
	f(400, "BREW /v1/completions HTTP/1.1\r\n"+good+"Content-Length: 2\r\n\r\n{}")
	f(408, "POST /v1/completions HTTP/1.1\r\n"+good+"Content-Length: 60\r\n\r\n{")
	f(408, "POST /v1/compl")
	f(200, "OPTIONS /v1/completions HTTP/1.1\r\nHost: x\r\nOrigin: https://a.example\r\nAccess-Control-Request-Method: POST\r\n\r\n")
	f(201, "POST /sessions HTTP/1.1\r\n"+good+"Content-Length: 0\r\n\r\n")
	f(404, "GET /sessions/ABCDEFGHIJKLMNOPQRSTUVWXYZ HTTP/1.1\r\n"+good+"\r\n")
	f(404, "DELETE /sessions/ABCDEFGHIJKLMNOPQRSTUVWXYZ HTTP/1.1\r\n"+good+"\r\n")
	f(400, "POST /endpoints/main/invocations HTTP/1.1\r\n"+good+"X-Amzn-SageMaker-Session-Id: nobody\r\nContent-Length: 0\r\n\r\n")
	now := *r.state.Load()
	full := *now.epoch
	full.MaxInFlight = 0
	now.epoch = &full
	r.state.Store(&now)
	for _, expect := range []string{"", "Expect: 100-continue\r\n"} {
		f(429, "POST /v1/completions HTTP/1.1\r\n"+good+expect+"Content-Length: 50\r\n\r\n")
	}
	written := map[string]float64{}
	eventually(t, "a line each", func() bool {
		clear(written)
		for _, m := range logged(t, log) {
			written[fmt.Sprint(m["status"])]++
		}
		return maps.Equal(written, want)
	})
	for code, n := range want {
		if got := r.metric("warmpath_requests_total", `code="`+code+`"`); got != n {
			t.Errorf("warmpath_requests_total has %v with code %s; want %v", got, code, n)
		}
	}
	if got := r.metric("warmpath_shed_total"); got != 2 {
		t.Errorf("warmpath_shed_total is %v; want 2: the requests above max_in_flight, and nothing else", got)
	}
}

// TestPoolsAreKeptApartInMetrics: two pools may give their workers the same ids.
func TestPoolsAreKeptApartInMetrics(t *testing.T) {
	a, b := sims(t, 1, vllmsim.Config{Models: []string{"a"}}), sims(t, 1, vllmsim.Config{Models: []string{"b"}})
	var toml strings.Builder
	toml.WriteString("[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n")
	addPool(&toml, "first", "prefixaware", "a", a.URLs()...)
	addPool(&toml, "second", "prefixaware", "b", b.URLs()...)
	r := start(t, toml.String(), 2)
	long := strings.Repeat("The tide comes in twice a day. ", 20)
	ask := func(model string, stream bool, n int) {
		for range n {
			body := fmt.Sprintf(`{"model":%q,"prompt":%q,"max_tokens":5,"stream":%v`, model, long, stream)
			if stream {
				body += `,"stream_options":{"include_usage":true}`
			}
			if s := r.do("POST", "/v1/completions", body+"}"); s.status != 200 || s.err != nil {
				t.Fatalf("%d %v %s", s.status, s.err, s.body)
			}
		}
	}
	ask("a", true, 3)
	ask("a", false, 2)
	ask("b", false, 4)
	f := func(want float64, name string, with ...string) {
		t.Helper()
		eventually(t, fmt.Sprintf("%s%v is %v", name, with, want), func() bool { return r.metric(name, with...) == want })
	}
	for pool, n := range map[string]float64{"first": 5, "second": 4} {
		in := fmt.Sprintf("pool=%q", pool)
		f(n, "warmpath_requests_total", in, `worker="w1"`, `code="200"`)
		f(n, "warmpath_request_duration_seconds_count", in, `strategy="prefixaware"`)
		f(n, "warmpath_ttft_seconds_count", in, `worker="w1"`)
		f(n, "warmpath_pick_seconds_count", in)
		f(n, "warmpath_pick_fuel_count", in)
		f(n*float64(len(long)/128), "warmpath_prefix_blocks_total", in)
		if got := r.metric("warmpath_prefix_matched_blocks_total", in, `tier="predicted"`); got <= 0 {
			t.Errorf("%s: no matched blocks", in)
		}
	}
	f(3, "warmpath_ttft_seconds_count", `pool="first"`, `stream="true"`)
	f(2, "warmpath_ttft_seconds_count", `pool="first"`, `stream="false"`)
	f(4, "warmpath_ttft_seconds_count", `pool="second"`, `stream="false"`)
	f(3, "warmpath_itl_seconds_count", `pool="first"`, `worker="w1"`)
	f(0, "warmpath_itl_seconds_count", `pool="second"`)
	f(1, "warmpath_build_info", `version="dev"`, fmt.Sprintf("go_version=%q", runtime.Version()))
	page := do(t, "GET", "http://"+r.AdminAddr()+"/metrics", "").body
	problems, err := promlint.New(strings.NewReader(page)).Lint() // as promtool check metrics does
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("promlint: %s: %s", p.Metric, p.Text)
	}
}
