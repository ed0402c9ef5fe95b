package daemon

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/admin/decisions"
	"github.com/warmpath/warmpath/daemon/request/identity"
	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// fullWorker is a fleet of two workers that take one request each, one of which has a stream of the session "mine".
type fullWorker struct {
	*running
	at string // where the stream is
}

// fillWorker starts that fleet.
func fillWorker(t *testing.T, toml string) *fullWorker {
	release := make(chan struct{})
	holds := func(name string) string {
		return fakeWorker(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Worker", name)
			if r.Header.Get("X-Hold") == "" {
				fmt.Fprint(w, `{"choices":[{"index":0,"text":"x","finish_reason":"stop"}]}`)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"choices":[{"index":0,"text":"x"}]}`+"\n\n")
			w.(http.Flusher).Flush()
			<-release
		}).URL
	}
	urls := []string{holds("w1"), holds("w2")}
	f := &fullWorker{running: start(t, strings.Replace(toml, "URLS", fmt.Sprintf("workers = [{ id = \"w1\", url = %q }, { id = \"w2\", url = %q }]", urls[0], urls[1]), 1), 2)}
	f.ask(t, "X-Session-Id", "mine")
	go f.do("POST", "/v1/completions", strings.Replace(hello, "{", `{"stream":true,`, 1), "X-Session-Id", "mine", "X-Hold", "1")
	t.Cleanup(func() { close(release) })
	eventually(t, "the stream is there", func() bool {
		for _, w := range f.describe()[0].Workers {
			if w.InFlight == 1 {
				f.at = w.ID
			}
		}
		return f.at != ""
	})
	return f
}

// ask sends a request and returns its status, its worker and its code of error.
func (f *fullWorker) ask(t *testing.T, header ...string) string {
	t.Helper()
	s := f.do("POST", "/v1/completions", hello, header...)
	if s.status == 200 {
		return s.header.Get("Worker")
	}
	return s.code()
}

// onePlace is a pool whose workers take one request at a time.
func onePlace(strategy string) string {
	return fmt.Sprintf("[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n[[pools]]\nname = \"main\"\nstrategy = %q\n"+
		"max_in_flight = 1\nqueue.max_requests = 0\nhealth_interval = \"100ms\"\nscrape_interval = \"100ms\"\nURLS\n", strategy)
}

// TestAFullWorkerIsLeft: where nothing binds sessions, a session whose worker is full is served by another. Strategies
// that bind, and bind = "always", keep it where it is.
func TestAFullWorkerIsLeft(t *testing.T) {
	t.Parallel()
	names := [][]string{{"X-Session-Id", "mine"}, {"X-Session-Affinity", "mine", "X-Session-Id", "mine"},
		{"X-Claude-Code-Session-Id", "mine"}, {"X-Session-Id", "mine", "X-Parent-Session-Id", "other"}}
	for _, strategy := range []string{"prefixaware", "kvaware", "roundrobin"} {
		f := fillWorker(t, onePlace(strategy))
		for _, header := range names {
			for range 5 {
				if got := f.ask(t, header...); got == f.at || len(got) != 2 {
					t.Errorf("%s: %v is answered by %q; the worker that has room is not %s", strategy, header, got, f.at)
				}
			}
		}
		if n := f.live(); n != 0 {
			t.Errorf("%s: %d sessions are bound", strategy, n)
		}
	}
	for _, toml := range []string{onePlace("session"), bindAlways + onePlace("prefixaware")} {
		f := fillWorker(t, toml)
		for range 3 {
			if got := f.ask(t, names[0]...); got != "workers_full" {
				t.Errorf("bound to %s: answered by %q; want workers_full\n%s", f.at, got, toml)
			}
		}
		if n := f.metric("warmpath_pool_workers_wanted"); n != 2 {
			t.Errorf("%v workers are wanted; the other one has room, and a third would not be asked", n)
		}
	}
}

// text returns what a file has.
func text(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestABindingOfAnotherStrategyIsLeft: a session that strategy session has bound is free under the next one.
func TestABindingOfAnotherStrategyIsLeft(t *testing.T) {
	f := fillWorker(t, onePlace("session"))
	if f.live() != 1 {
		t.Fatalf("%d sessions are bound", f.live())
	}
	write(t, f.file, strings.Replace(text(t, f.file), `"session"`, `"prefixaware"`, 1))
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := f.ask(t, "X-Session-Id", "mine"); got == f.at || len(got) != 2 {
		t.Errorf("answered by %q; the worker that has room is not %s", got, f.at)
	}
}

// TestDefaultIdentitiesAreRead: each field of the body in the default list is one that the bodies' reader knows.
func TestDefaultIdentitiesAreRead(t *testing.T) {
	for _, entry := range conf.Identities {
		field, ofBody := strings.CutPrefix(entry, identity.OfBody)
		if !ofBody {
			continue
		}
		body := `"x"`
		for path := strings.Split(field, "."); len(path) > 0; path = path[:len(path)-1] {
			body = fmt.Sprintf("{%q:%s}", path[len(path)-1], body)
		}
		r, err := new(prompt.Parser).Parse(prompt.Messages, []byte(body))
		if err != nil || !r.Named() || r.Name(field) != "x" {
			t.Errorf("%s: %v, %q", body, err, r.Name(field))
		}
	}
}

// TestTwoAgentsWithOneKey: equal prompts of one key are two sessions by the agents' own names, and a name is its key's.
// Log, why and page tell them apart, and show no name.
func TestTwoAgentsWithOneKey(t *testing.T) {
	t.Setenv("WARMPATH_TEST_A", "key-of-team-a")
	t.Setenv("WARMPATH_TEST_B", "key-of-team-b")
	log := filepath.Join(t.TempDir(), "access.log")
	r := start(t, withServer(settings("prefixaware", echoes(t, 2)...), fmt.Sprintf("access_log = %q", log))+
		"[[keys]]\nname = \"a\"\nenv = \"WARMPATH_TEST_A\"\n[[keys]]\nname = \"b\"\nenv = \"WARMPATH_TEST_B\"\n", 2)
	n := 0
	send := func(key string, header ...string) map[string]any {
		t.Helper()
		n++
		id := fmt.Sprint("request-", n)
		header = append(header, "Authorization", "Bearer key-of-team-"+key, "X-Request-Id", id)
		if s := r.do("POST", "/v1/completions", hello, header...); s.status != 200 {
			t.Fatal(s.status, s.body)
		}
		eventually(t, "its line", func() bool { return len(logged(t, log)) == n })
		line := logged(t, log)[n-1]
		var d decisions.Decision
		if code, text := r.decided("/api/v1/decisions/"+id, &d); code != 200 || d.Named == nil || d.Identity != fmt.Sprint(line["identity"]) || float64(d.Turn) != line["turn"] {
			t.Errorf("%s: %d %s; the line is %v", id, code, text, line)
		}
		return line
	}
	const first, second = "6f1c0a52-7d0e-4f0e-a9a5-0b9b6c1f2d3e", "6f1c0a52-7d0e-4f0e-a9a5-0b9b6c1f2d3"
	one := send("a", "X-Claude-Code-Session-Id", first)
	two := send("a", "X-Claude-Code-Session-Id", second)
	again := send("a", "X-Claude-Code-Session-Id", first)
	child := send("a", "X-Claude-Code-Session-Id", first, "X-Claude-Code-Agent-Id", "a1")
	other := send("b", "X-Claude-Code-Session-Id", first)
	for what, c := range map[string]struct {
		line map[string]any
		turn float64
	}{"the first": {one, 1}, "the second, whose name begins the first's": {two, 1}, "the first again": {again, 2},
		"its subagent": {child, 1}, "another key's": {other, 1}} {
		if c.line["turn"] != c.turn || c.line["named_by"] != "X-Claude-Code-Session-Id" || c.line["session"] != "" {
			t.Errorf("%s: %v; want turn %v", what, c.line, c.turn)
		}
	}
	if again["identity"] != one["identity"] || child["parent"] != one["identity"] {
		t.Errorf("%v, again %v, its subagent's parent %v", one["identity"], again["identity"], child["parent"])
	}
	seen := map[any]bool{}
	for _, l := range []map[string]any{one, two, child, other} {
		seen[l["identity"]] = true
	}
	if text := text(t, log); len(seen) != 4 || strings.Contains(text, second) {
		t.Errorf("%d sessions; want 4, and no name, in\n%s", len(seen), text)
	}
}
