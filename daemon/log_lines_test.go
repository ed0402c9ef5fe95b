package daemon

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/logtest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// logLines are the lines of a daemon's log.
type logLines struct{ logtest.Log }

// with lists the lines of that message.
func (l *logLines) with(t *testing.T, msg string) []map[string]any {
	t.Helper()
	return l.With(t, "msg", msg)
}

// wait waits for a line of that message and returns the last.
func (l *logLines) wait(t *testing.T, msg string) map[string]any {
	t.Helper()
	var found []map[string]any
	eventually(t, "the line "+msg, func() bool { found = l.with(t, msg); return len(found) > 0 })
	return found[len(found)-1]
}

// startLogged is start with the log kept. up < 0 waits for nobody.
func startLogged(t *testing.T, toml string, up int) (*running, *logLines) {
	t.Helper()
	lines := &logLines{}
	r := launch(t, toml, slog.New(slog.NewJSONHandler(lines, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if up >= 0 {
		r.waitUp(up)
	}
	return r, lines
}

const short = `{"model":"sim","prompt":"x","max_tokens":1}`

func TestReloadTakesUpLogLevelAndExplain(t *testing.T) {
	good := settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...)
	r, lines := startLogged(t, good, 1)
	ask := func() (told bool) {
		t.Helper()
		s := r.do("POST", "/v1/completions", short, "X-Warmpath-Explain", "1", "X-Request-Id", "r1")
		if s.status != 200 {
			t.Fatal(s.status, s.body)
		}
		return s.header.Get("X-Warmpath-Worker") != ""
	}
	if !ask() || len(lines.with(t, "routed")) != 0 {
		t.Fatal("the defaults: want the decision told, and no debug line")
	}
	change := func(with string, want ...any) {
		t.Helper()
		write(t, r.file, strings.Replace(good, "[server]", "[server]\n"+with, 1))
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
		if got, _ := lines.wait(t, "reloaded")["changed"].([]any); !slices.Equal(got, want) {
			t.Errorf("reloaded tells of %q; want %q", got, want)
		}
	}
	change("log_level = \"debug\"\nexplain = false", "server.explain", "server.log_level")
	if ask() {
		t.Error("the decision is told after explain was switched off")
	}
	if l := lines.wait(t, "routed"); l["id"] != "r1" || l["pool"] != "main" || l["worker"] != "w1" || l["reason"] == "" || l["reason"] == nil {
		t.Errorf("routed: %v; want id r1, pool main, worker w1 and a reason", l)
	}
	if n := len(lines.with(t, "reloaded, but some changed keys take effect at the next start only")); n != 0 {
		t.Error("a restart is asked for")
	}
	n := len(lines.with(t, "routed"))
	change("", "server.explain", "server.log_level")
	if !ask() || len(lines.with(t, "routed")) != n {
		t.Error("the level or explain did not come back")
	}
	if l := lines.wait(t, "serving"); l["version"] != "dev" || l["pid"] == nil || l["tls"] != false ||
		!strings.HasPrefix(fmt.Sprint(l["strategies"]), "[main: prefixaware ") {
		t.Errorf("serving: %v; want version, pid, tls and strategies", l)
	}
}

// TestLinesAboutARequestNameIt: whoever has a request's id finds all lines about it, and of which pool it was.
func TestLinesAboutARequestNameIt(t *testing.T) {
	f := sims(t, 5, vllmsim.Config{})
	file := filepath.Join(t.TempDir(), "trap.wasm")
	module(t, "trap.wat", file)
	r, lines := startLogged(t, bindAlways+settings("mine", f.URLs()...)+fmt.Sprintf("[strategies.mine]\npath = %q\n", file), 5)
	named := func(msg, id string) {
		t.Helper()
		if l := lines.wait(t, msg); l["id"] != id || l["pool"] != "main" {
			t.Errorf("%s: id %v, pool %v; want %s and main", msg, l["id"], l["pool"], id)
		}
	}
	r.do("POST", "/v1/completions", short, "X-Request-Id", "traps", "X-Session-Id", "s")
	named("the strategy failed on a request; the fallback chose its worker", "traps")
	if l := lines.wait(t, "the strategy failed on a request; the fallback chose its worker"); l["reason"] != "trap" || !strings.Contains(fmt.Sprint(l["error"]), "unreachable") {
		t.Errorf("%v; want the reason and the module's error", l)
	}
	home := r.do("POST", "/v1/completions", short, "X-Session-Id", "s", "X-Warmpath-Explain", "1").header.Get("X-Warmpath-Worker")
	at := int(home[1] - '1')
	if err := f[at].SetFault(vllmsim.Fault{Mode: vllmsim.FaultCut}); err != nil {
		t.Fatal(err)
	}
	r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":50,"stream":true}`, "X-Request-Id", "breaks", "X-Session-Id", "s")
	named("worker broke off in the middle of an answer", "breaks")
	f[at].Close()
	r.do("POST", "/v1/completions", short, "X-Request-Id", "moves", "X-Session-Id", "s")
	if len(lines.with(t, "request goes to the next worker")) > 0 {
		named("request goes to the next worker", "moves")
	} else {
		named("session moves to another worker", "moves")
	}
	r.do("DELETE", "/sessions/ABCDEFGHIJKLMNOPQRSTUVWXYZ", "", "X-Request-Id", "refused")
	if l := lines.wait(t, "session refused"); l["id"] != "refused" || l["pool"] != "" {
		t.Errorf("session refused: %v; want its id, and no pool as none was found", l)
	}
	l := lines.wait(t, "worker down")
	if l["why"] == "" || l["worker"] != home || l["pool"] != "main" {
		t.Errorf("worker down: %v; want why, worker and pool", l)
	}
}

func TestAccessLogTellsTheDecisionAndTheTokens(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "access.log")
	toml := strings.Replace(settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...), "[server]", fmt.Sprintf("[server]\naccess_log = %q", log), 1)
	r := start(t, bindAlways+toml, 1)
	long := strings.Repeat("Low water is at noon. ", 40)
	m := []chatMessage{{"user", long}}
	for _, stream := range []bool{false, true} {
		if s := r.do("POST", "/v1/chat/completions", chatBody(stream, m), "X-Session-Id", "s"); s.status != 200 {
			t.Fatal(s.status, s.body)
		}
	}
	r.do("POST", "/v1/embeddings", `{"model":"nobody's","input":"x"}`)
	var got []map[string]any
	eventually(t, "three lines", func() bool { got = logged(t, log); return len(got) == 3 })
	for i, want := range []map[string]any{
		{"stream": false, "reason": "no prefix, least cost", "session": "key", "named_by": "X-Session-Id", "turn": 1., "parent": nil, "cached_tokens": 0.},
		{"stream": true, "reason": "bound session", "session": "key", "named_by": "X-Session-Id", "turn": 2.},
		{"stream": false, "reason": "", "session": "", "named_by": nil, "prompt_tokens": nil, "cached_tokens": nil},
	} {
		for k, v := range want {
			if got[i][k] != v {
				t.Errorf("request %d: %s is %v; want %v", i+1, k, got[i][k], v)
			}
		}
	}
	prompt, _ := got[1]["prompt_tokens"].(float64)
	cached, _ := got[1]["cached_tokens"].(float64)
	if prompt < 50 || cached <= 0 || cached >= prompt || got[0]["prompt_tokens"] != prompt {
		t.Errorf("prompt_tokens %v, then %v with %v cached; want the worker's own count, and part of it cached", got[0]["prompt_tokens"], prompt, cached)
	}
}

// TestTheLinesAboutAShadowSayThatItServesNobody: whoever is woken by a shadow's failure must not look for requests that the
// fallback answered.
func TestTheLinesAboutAShadowSayThatItServesNobody(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trap.wasm")
	module(t, "trap.wat", file)
	toml := settings("roundrobin", sims(t, 5, vllmsim.Config{}).URLs()...) + fmt.Sprintf(`
[[pools.shadow]]
strategy = "mine"
[strategies.mine]
path = %q
`, file)
	r, lines := startLogged(t, toml, 5) // the module traps where there are so many
	const aside = "shadow is set aside after errors; it counts as failed until a pick that tries it again succeeds"
	eventually(t, "the shadow is set aside", func() bool { // a request that finds no instance ready is no failure
		r.do("POST", "/v1/completions", short)
		return len(lines.with(t, aside)) > 0
	})
	l := lines.wait(t, aside)
	if l["strategy"] != "mine" || l["level"] != "WARN" || l["reason"] != "trap" {
		t.Errorf("%v; want a warning about mine", l)
	}
	if n := len(lines.with(t, "shadow failed; its decision is sent nowhere")); n == 0 {
		t.Error("no line says that a shadow failed")
	}
	for _, untrue := range []string{"strategy failed; the fallback answers",
		"strategy is set aside after errors; the fallback answers until a pick that tries it again succeeds"} {
		if n := len(lines.with(t, untrue)); n > 0 {
			t.Errorf("%d lines say: %s", n, untrue)
		}
	}
}
