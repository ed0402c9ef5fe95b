package daemon

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/logtest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// TestIgnoredFields: the answer names what a client has written into its header without an effect.
func TestIgnoredFields(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	toml := strings.Replace(settings("prefixaware", sims(t, 1, vllmsim.Config{Speed: 20}).URLs()...), "[server]\n",
		"[server]\ndeadline_header = [\"X-Wait\"]\n", 1)
	r := start(t, toml+fmt.Sprintf("[[keys]]\nname = \"a\"\nfile = %q\npriority = [-5, 3]\n", key), 1)
	f := func(name, value, want string) {
		t.Helper()
		for _, body := range []string{hello, `{"model":"sim","prompt":"x","max_tokens":1,"stream":true}`, `{"model":"none","prompt":"x"}`} {
			s := r.do("POST", "/v1/completions", body, "Authorization", "Bearer 0123456789", name, value)
			if got := s.header.Get("X-Warmpath-Ignored"); got != want {
				t.Errorf("%s: %s, with %s: ignored %q; want %q", name, value, body, got, want)
			}
		}
	}
	f("X-Slo-Ttft-Ms", "2s", "X-Slo-Ttft-Ms: want a number of milliseconds, as 500")
	f("X-Slo-Ttft-Ms", "60000", "")
	f("X-Wait", "soon", "X-Wait: want seconds, as 30, or a time, as 1500ms")
	f("X-Wait", "30", "")
	f("X-Warmpath-Priority", "high", "X-Warmpath-Priority: want a number that the client may ask for: [[keys]] priority")
	f("X-Warmpath-Priority", "4", "X-Warmpath-Priority: want a number that the client may ask for: [[keys]] priority")
	f("X-Dynamo-Request-Priority", "3", "")
	f("X-Warmpath-Explain", "1", "X-Warmpath-Explain: want 1 or json, and a client that may ask for it: explain of [server] and [[keys]]")
}

// TestSourceFails: while a file or a name that gives workers has no answer, the status says so.
func TestSourceFails(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "workers.toml")
	text := fmt.Sprintf("[[workers]]\nurl = %q\n", sims(t, 1, vllmsim.Config{Speed: 20}).URLs()[0])
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text)
	r := start(t, freePorts+fmt.Sprintf("[[pools]]\nname = \"main\"\nworkers_file = %q\n", file), 1)
	title := "workers of main are those of before"
	write("")
	r.warned(title, "workers.toml", "there is no worker")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	r.warned(title, "no such file")
	write(text)
	eventually(t, "it is over", func() bool { return len(r.status().Warnings) == 0 })
	start(t, freePorts+"[[pools]]\nname = \"named\"\nworkers_dns = \"vllm.invalid:8000\"\n", 0).
		warned("workers of named are those of before", "vllm.invalid")
}

// TestNotesAreLogged: who starts or reloads without `warmpath check` reads in the log what check notes.
func TestNotesAreLogged(t *testing.T) {
	t.Parallel()
	var log logtest.Log
	toml := settings("prefixaware", sims(t, 1, vllmsim.Config{Speed: 20}).URLs()...)
	r := launch(t, withPool(toml, "first_byte_retry = \"5ms\""), slog.New(slog.NewTextHandler(&log, nil)))
	r.waitUp(1)
	noted := func(key string) {
		t.Helper()
		eventually(t, key, func() bool { return log.Count("key="+key) == 1 && log.Count("hardly meant") > 0 })
	}
	noted("pools[0].first_byte_retry")
	if err := os.WriteFile(r.file, []byte(strings.Replace(toml, "[server]\n", "[server]\nmax_in_flight = 8\n", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	noted("server.max_in_flight")
}

// TestAliasOfASocket: the answer speaks of the query, and of no body.
func TestAliasOfASocket(t *testing.T) {
	t.Parallel()
	toml := settings("prefixaware", sims(t, 1, vllmsim.Config{Speed: 20}).URLs()...)
	r := start(t, toml+"[[models]]\nname = \"chat\"\nto = [{ model = \"sim\" }]\n", 1)
	s := r.do("GET", "/v1/realtime?model=chat", "", "Connection", "Upgrade", "Upgrade", "websocket",
		"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", wsKey)
	if s.status != http.StatusBadRequest || !strings.Contains(s.body, "an alias serves no WebSocket") {
		t.Errorf("%d %s", s.status, s.body)
	}
}

// TestListsOthers: a worker that was started again with another model is named.
func TestListsOthers(t *testing.T) {
	t.Parallel()
	var log logtest.Log
	first := sims(t, 1, vllmsim.Config{Speed: 20})
	at := strings.TrimPrefix(first.URLs()[0], "http://")
	r := launch(t, settings("prefixaware", first.URLs()[0]), slog.New(slog.NewTextHandler(&log, nil)))
	r.waitUp(1)
	time.Sleep(50 * time.Millisecond)
	first.Close()
	eventually(t, "it is down", func() bool { return log.Count("worker down") > 0 })
	f, err := vllmsim.StartFleet(at, 1, vllmsim.Config{Speed: 20, Models: []string{"other"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	eventually(t, "the line", func() bool { return log.Count("none of the models that it listed before") == 1 })
	if log.Count(`models="sim to other"`) != 1 {
		t.Error(log.String())
	}
}
