package cli

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
)

// TestQuestionsOfTheNight runs each command of the table in docs/night.md against a daemon, and searches its output for what
// the table promises.
func TestQuestionsOfTheNight(t *testing.T) {
	if testing.Short() {
		t.Skip("runs servers")
	}
	port, dir := porttest.Row(t, 5), workplace(t)
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", port+i) }
	file := filepath.Join(dir, "warmpath.toml")
	stop := aNight(t, dir, file, at)
	wants := map[string][]string{
		"1":  {"ready  warmpath", "2 of 3 up"},
		"2":  {"gpu-3   down", "connection refused"},
		"3":  {"SLOWNESS", "LAST MINUTE"},
		"4":  {"decision  gpu-", "BLOCKS HELD", "gpu-3", "key flood"},
		"5":  {"strategy of other set aside", "unreachable", "pool other"},
		"6":  {"reloaded; nothing has changed"},
		"7":  {`warmpath_key_arrivals_total{key="flood",pool="main"} `, `warmpath_key_prompt_tokens_total{key="flood",pool="main"} 9`},
		"8":  {`"model":"nobody"`, `"end":"model_not_found"`},
		"9":  {"gets no new requests", "it is idle: safe to stop"},
		"10": {"DEMAND", "REFUSED"},
		"11": {"ready  warmpath", "configuration read"},
		"12": {"LAST MINUTE"},
	}
	page := read(t, "../../docs/night.md")
	ports := strings.NewReplacer("127.0.0.1:9090", at(1))
	for _, m := range regexp.MustCompile("(?m)^\\| (\\d+) \\| .*? \\| `(.*?)` \\|").FindAllStringSubmatch(page, -1) {
		command := strings.ReplaceAll(ports.Replace(m[2]), `\|`, "|")
		if rest, ok := strings.CutPrefix(command, "warmpath "); ok {
			command = "bin/warmpath " + rest + " --admin " + at(1)
		}
		write(t, filepath.Join(dir, "question.sh"), command+"\n")
		out := launch(t, dir, "bash question.sh").succeed()
		for _, want := range wants[m[1]] {
			if !strings.Contains(out, want) {
				t.Errorf("question %s, %s: no %q in\n%s", m[1], m[2], want, out)
			}
		}
		delete(wants, m[1])
	}
	if len(wants) > 0 {
		t.Errorf("the table lacks the questions %v", wants)
	}
	besideTheQuestions(t, dir, file, at(1))
	stop()
}

var quarantined = regexp.MustCompile(`(?m)^warmpath_module_quarantined\{.*\} 1$`)

// aNight starts a daemon with everything that an operator may meet at night: a worker that is down, a strategy that
// traps and is set aside, a refused request, and a stream of which the engine counts nothing.
func aNight(t *testing.T, dir, file string, at func(int) string) (stop func()) {
	t.Helper()
	trap, err := wasmtest.File("../../testdata/modules/trap.wat")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "trap.wasm"), string(trap))
	write(t, filepath.Join(dir, "flood.key"), "a-key-of-32-characters-or-so-1234\n")
	write(t, file, fmt.Sprintf("[server]\nlisten = %q\nadmin = %q\n[[keys]]\nname = \"flood\"\nfile = \"flood.key\"\n"+
		"[strategies.mine]\npath = \"trap.wasm\"\n[[pools]]\nname = \"main\"\nmodels = [\"sim\"]\nhealth_interval = \"100ms\"\n"+
		"[[pools.workers]]\nid = \"gpu-1\"\nurl = \"http://%s\"\n[[pools.workers]]\nid = \"gpu-2\"\nurl = \"http://%s\"\n"+
		"[[pools.workers]]\nid = \"gpu-3\"\nurl = \"http://127.0.0.1:1\"\n"+
		"[[pools]]\nname = \"other\"\nmodels = [\"other\"]\nstrategy = \"mine\"\n[[pools.workers]]\nid = \"other-1\"\ndata_parallel = 4\nurl = \"http://%s\"\n",
		at(0), at(1), at(2), at(3), at(4)))
	sim := launch(t, dir, "bin/warmpath sim --count 2 --listen "+at(2))
	ranks := launch(t, dir, "bin/warmpath sim --model sim,other --data-parallel 4 --listen "+at(4))
	answers := func(url string) func() bool {
		return func() bool {
			resp, err := http.Get(url)
			if err != nil {
				return false
			}
			resp.Body.Close()
			return resp.StatusCode == 200
		}
	}
	sim.eventually("the workers", answers("http://"+at(3)+"/health"))
	ranks.eventually("the worker of four", answers("http://"+at(4)+"/health"))
	serve := launch(t, dir, "bin/warmpath serve --config "+file)
	serve.eventually("the daemon", answers("http://"+at(0)+"/ready"))
	ask := func(path, body string) int {
		req, err := http.NewRequest("POST", "http://"+at(0)+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer a-key-of-32-characters-or-so-1234")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	serve.eventually("answers in spite of the strategy, until it is set aside", func() bool {
		if ask("/endpoints/other/invocations", `{"model":"sim","prompt":"x","max_tokens":1}`) != 200 {
			return false
		}
		resp, err := http.Get("http://" + at(1) + "/metrics")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return quarantined.Match(text)
	})
	if got := ask("/v1/completions", `{"model":"nobody","prompt":"x"}`); got != 404 {
		t.Fatalf("a model that nobody has: %d", got)
	}
	serve.eventually("a stream", func() bool {
		return ask("/v1/completions", `{"model":"sim","prompt":"who is there at three in the morning","max_tokens":2,"stream":true}`) == 200
	})
	return func() {
		serve.stop()
		ranks.stop()
		sim.stop()
	}
}

// besideTheQuestions runs the commands that docs/night.md names beside its table, and those that fail.
func besideTheQuestions(t *testing.T, dir, file, admin string) {
	t.Helper()
	for _, c := range []struct{ line, want string }{
		{"undrain gpu-2 --admin " + admin, "gets requests again"},
		{"status --json --admin " + admin, `"demand_seconds":`},
		{"top -n 2 --every 100ms --admin " + admin, "LAST MINUTE"},
		{"--version", "warmpath "},
		{"completion bash", "__start_warmpath"},
		{"completion zsh", "#compdef warmpath"},
		{"completion fish", "complete -c warmpath"},
	} {
		if out := launch(t, dir, "bin/warmpath "+c.line).succeed(); !strings.Contains(out, c.want) {
			t.Errorf("warmpath %s: no %q in\n%s", c.line, c.want, out)
		}
	}
	fails := func(line, want string) {
		t.Helper()
		p := launch(t, dir, "bin/warmpath "+line)
		if code := p.end(); code != 1 || !strings.Contains(p.String(), want) {
			t.Errorf("warmpath %s: exit %d, no %q in\n%s", line, code, want, p)
		}
	}
	fails("drain gpu-9 --admin "+admin, `there is no worker "gpu-9"; there are gpu-1, gpu-2, gpu-3`)
	fails("check --probe --config "+file, "WRONG main gpu-3")
	write(t, file, read(t, file)+"[nonsense]\n")
	fails("reload --admin "+admin, "the configuration in force stays")
	pages := filepath.Join(dir, "man")
	if err := os.Mkdir(pages, 0o755); err != nil {
		t.Fatal(err)
	}
	launch(t, dir, "bin/warmpath man man").succeed()
	if text := read(t, filepath.Join(pages, "warmpath-why.1")); !strings.Contains(text, ".TH") {
		t.Errorf("the manual page of why is %.200s", text)
	}
}
