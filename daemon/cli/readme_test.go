package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/replay"
)

// readerPages are read in this order: the later ones use the daemon of README.md.
var readerPages = []string{"README.md", "docs/requests.md", "docs/workers.md", "docs/replay.md", "docs/measured.md", "CONTRIBUTING.md"}

// reader follows these pages from top to bottom, like a person who has just built bin/warmpath.
type reader struct {
	t          *testing.T
	root, dir  string // the repository; the folder that the reader works in
	ports      *strings.Replacer
	url, admin string
	settings   string   // the last [server] file
	sim, serve *process // the running ones
	transcript string   // the answer of demo
	ran        map[string]bool
}

// steps maps the beginnings of the commands that these pages may show to their tests.
var steps = map[string]func(*reader, string){
	"make run":             (*reader).makeRun,
	"make build":           (*reader).makeTarget,
	"make test":            (*reader).makeTarget,
	"bin/warmpath sim":     (*reader).runSim,
	"bin/warmpath check":   (*reader).runCheck,
	"bin/warmpath serve":   (*reader).runServe,
	"bin/warmpath plugin":  (*reader).runPlugin,
	"bin/warmpath lab":     (*reader).runLab,
	"bin/warmpath replay":  (*reader).runReplay,
	"bin/warmpath drain":   (*reader).runDrain,
	"bin/warmpath undrain": (*reader).runDrain,
	"curl -X":              (*reader).curl,
	"curl -si":             (*reader).explain,
	"bin/warmpath session": (*reader).runSessions,
	"bin/warmpath why":     (*reader).runWhy,
	"testdata/real/vllm":   (*reader).script,
	"testdata/run":         (*reader).tool,
}

// fence matches a fenced block: its language and its text.
var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// TestREADME runs every command of readerPages on the files that they show. A new command or block needs a step here.
func TestREADME(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs servers and the compiler")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	port := porttest.Row(t, 4)
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", port+i) }
	r := &reader{t: t, root: root, dir: workplace(t), ran: map[string]bool{}, url: "http://" + at(0), admin: "http://" + at(1),
		ports: strings.NewReplacer("127.0.0.1:8080", at(0), "127.0.0.1:9090", at(1), "127.0.0.1:9001", at(2), "127.0.0.1:9002", at(3))}
	traces := filepath.Join(r.dir, "testdata", "traces")
	if err := os.CopyFS(traces, os.DirFS(filepath.Join(root, "testdata", "traces"))); err != nil {
		t.Fatal(err)
	}
	for _, page := range readerPages {
		for _, m := range fence.FindAllStringSubmatch(read(t, filepath.Join(root, page)), -1) {
			r.block(m[1], r.ports.Replace(m[2]))
		}
	}
	for name := range steps {
		if !r.ran[name] {
			t.Errorf("no page shows %q any more", name)
		}
	}
	r.serve.stop()
	r.sim.stop()
}

func (r *reader) block(language, text string) {
	r.t.Helper()
	switch {
	case language == "sh":
		for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
			r.command(line)
		}
	case language == "toml" && strings.Contains(text, "[server]"):
		r.settings = text
		write(r.t, r.file(), text)
	case language == "toml" && strings.HasPrefix(text, "[strategies.mine]"):
		r.chooseMine(text)
	case language == "go":
		r.newModule(text)
	case language == "json": // lines of a trace
		if _, err := replay.ReadTrace(strings.NewReader(text), "the page", 0); err != nil {
			r.t.Error(err)
		}
	case language == "" && strings.Contains(text, "──HTTP──▶"): // a drawing
	case language == "" && strings.HasPrefix(text, "  turn "):
		if !strings.Contains(r.transcript, text) {
			r.t.Errorf("README.md shows\n%sbut demo printed\n%s", text, r.transcript)
		}
	default:
		r.t.Errorf("a block that the test does not know: ```%s\n%s", language, text)
	}
}

func (r *reader) command(line string) {
	r.t.Helper()
	line, _, _ = strings.Cut(strings.TrimSpace(line), "  #")
	line = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), "&"))
	if line == "" || strings.HasPrefix(line, "#") {
		return
	}
	for name, step := range steps {
		if strings.HasPrefix(line, name) {
			r.ran[name] = true
			step(r, line)
			return
		}
	}
	r.t.Fatalf("a page shows a command that the test does not run: %s", line)
}

func (r *reader) file() string { return filepath.Join(r.dir, "warmpath.toml") }

func (r *reader) run(line string) *process {
	r.t.Helper()
	args, ok := strings.CutPrefix(line, "bin/warmpath ")
	if !ok {
		r.t.Fatalf("%q is not a command of warmpath", line)
	}
	return warmpath(r.t, r.dir, args)
}

// makeTarget only checks that the target exists: the tests cannot run themselves, and TestMain builds.
func (r *reader) makeTarget(line string) {
	r.t.Helper()
	target := strings.TrimPrefix(line, "make ")
	if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:.* ## `).MatchString(read(r.t, filepath.Join(r.root, "Makefile"))) {
		r.t.Errorf("Makefile has no target %q", target)
	}
}

// makeRun runs the commands of the target, on free ports and to their end.
func (r *reader) makeRun(line string) {
	r.t.Helper()
	r.makeTarget(line)
	if !strings.Contains(read(r.t, filepath.Join(r.root, "Makefile")), "\nrun: build ") ||
		!strings.Contains(read(r.t, filepath.Join(r.root, "Makefile")), "\n\tbin/warmpath demo\n") {
		r.t.Error("make run is no longer bin/warmpath demo")
	}
	r.transcript = r.run("bin/warmpath demo --once --listen 127.0.0.1:0 --admin 127.0.0.1:0").succeed()
	if !strings.Contains(r.transcript, "4 simulated workers") || !strings.Contains(r.transcript, "\n  curl -i http://127.0.0.1:") {
		r.t.Errorf("demo shows no workers or no request to try:\n%s", r.transcript)
	}
}

// runSim replaces the running workers: they have the same ports.
func (r *reader) runSim(line string) {
	r.t.Helper()
	if r.sim != nil {
		r.sim.stop()
	}
	r.sim = r.run(line)
	r.sim.says("http://127.0.0.1:", 2)
	if r.serve != nil {
		r.waitUp()
	}
}

func (r *reader) runCheck(line string) {
	r.t.Helper()
	if out := r.run(line).succeed(); out != "warmpath.toml: ok\n" {
		r.t.Errorf("check printed %q", out)
	}
}

func (r *reader) runServe(line string) {
	r.t.Helper()
	r.serve = r.run(line)
	r.waitUp()
	if status, header := r.ask(); status != http.StatusOK || header.Get("X-Warmpath-Worker") != "gpu-1" && header.Get("X-Warmpath-Worker") != "gpu-2" {
		r.t.Errorf("status %d, %v", status, header)
	}
	if status, _, body := fetch("GET", r.admin+"/metrics", ""); status != http.StatusOK || !strings.Contains(body, "warmpath_") {
		r.t.Errorf("/metrics: status %d, %.200s", status, body)
	}
}

// curl opens a session, or drains a worker or puts it back, by the line.
func (r *reader) curl(line string) {
	r.t.Helper()
	words := strings.Fields(line)
	method, url := words[2], words[3]
	status, _, body := fetch(method, url, "")
	if status != http.StatusOK && status != http.StatusCreated {
		r.t.Errorf("%s: status %d, %s", line, status, body)
	}
	if strings.HasSuffix(url, "/sessions") {
		if !strings.Contains(body, `"id":"`) || !strings.Contains(body, `"expires":"`) {
			r.t.Errorf("%s: %s", line, body)
		}
		return
	}
	r.gpu1Is(map[string]string{"POST": "draining", "DELETE": "up"}[method], line)
}

// gpu1Is expects the worker in that state after the command.
func (r *reader) gpu1Is(want, line string) {
	r.t.Helper()
	for _, w := range r.pool().Workers {
		if w.ID == "gpu-1" && w.State != want {
			r.t.Errorf("%s: the worker is %s; want %s", line, w.State, want)
		}
	}
}

// runDrain takes gpu-1 out, or back in.
func (r *reader) runDrain(line string) {
	r.t.Helper()
	r.run(line).succeed()
	r.gpu1Is(map[bool]string{true: "up", false: "draining"}[strings.Contains(line, " undrain ")], line)
}

// explained matches a request whose decision the client requests as JSON, as in the line.
var explained = regexp.MustCompile(`^curl -si (\S+) -H 'X-Warmpath-Explain: json' +-H 'Content-Type: application/json' -d '(.*)' \| grep (\S+)$`)

func (r *reader) explain(line string) {
	r.t.Helper()
	m := explained.FindStringSubmatch(line)
	if m == nil {
		r.t.Fatalf("%s: the test reads no such line", line)
	}
	req, err := http.NewRequest("POST", m[1], strings.NewReader(m[2]))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Warmpath-Explain", "json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	if told := resp.Header.Get(m[3]); resp.StatusCode != http.StatusOK || !json.Valid([]byte(told)) || !strings.Contains(told, "gpu-1") {
		r.t.Errorf("%s: %d, %s %q; want 200 and a decision that names the workers", line, resp.StatusCode, m[3], told)
	}
}

// runSessions expects the session that was opened before it.
func (r *reader) runSessions(line string) {
	r.t.Helper()
	if out := r.run(line).succeed(); !strings.Contains(out, "gpu-") {
		r.t.Errorf("%s printed %q", line, out)
	}
}

func (r *reader) runWhy(line string) {
	r.t.Helper()
	if out := r.run(line).succeed(); !strings.Contains(out, "BLOCKS HELD") || !strings.Contains(out, "gpu-2") {
		r.t.Errorf("%s printed %q", line, out)
	}
}

// script is not run here, as it installs vLLM.
func (r *reader) script(line string) {
	r.t.Helper()
	if info, err := os.Stat(filepath.Join(r.root, line)); err != nil || info.Mode()&0o111 == 0 {
		r.t.Errorf("%s cannot be run: %v", line, err)
	}
}

// tool is not run here, as it takes minutes.
func (r *reader) tool(line string) {
	r.t.Helper()
	if _, err := os.Stat(filepath.Join(r.root, "testdata", strings.Fields(line)[1], "main.go")); err != nil {
		r.t.Errorf("%s cannot be run: %v", line, err)
	}
}

// ask sends a chat request with X-Warmpath-Explain: 1.
func (r *reader) ask() (int, http.Header) {
	r.t.Helper()
	status, header, body := fetch("POST", r.url+"/v1/chat/completions",
		`{"model":"sim","messages":[{"role":"user","content":"Where do the ferries leave?"}],"max_tokens":8}`)
	if status != http.StatusOK {
		r.t.Errorf("chat: status %d, %s", status, body)
	}
	return status, header
}

// pool returns the daemon's state of its one pool.
func (r *reader) pool() (p operator.PoolState) {
	var pools []operator.PoolState
	_, _, body := fetch("GET", r.admin+"/api/v1/pools", "")
	if err := json.Unmarshal([]byte(body), &pools); err == nil && len(pools) == 1 {
		p = pools[0]
	}
	return p
}

// waitUp waits until the present workers, not those before them, are up.
func (r *reader) waitUp() {
	r.t.Helper()
	r.serve.eventually("two workers up", func() bool {
		p := r.pool()
		for _, w := range p.Workers {
			if w.State != "up" || w.Models == nil {
				return false
			}
		}
		return p.Up == 2
	})
}

// newModule compares the strategy that README.md shows with that of a new project.
func (r *reader) newModule(text string) {
	r.t.Helper()
	if got := read(r.t, filepath.Join(r.dir, "mine", "main.go")); got != text {
		r.t.Errorf("README.md shows\n%sbut a new project has\n%s", text, got)
	}
}

// runPlugin runs one step of an author's work.
func (r *reader) runPlugin(line string) {
	r.t.Helper()
	out := r.run(line).succeed()
	if strings.Contains(line, " check ") && (!strings.Contains(out, "mine.wasm: ok\n") || !strings.Contains(out, "fuel a decision")) {
		r.t.Errorf("%s printed %q", line, out)
	}
}

// chooseMine names the module and selects it, in the file of the running daemon.
func (r *reader) chooseMine(text string) {
	r.t.Helper()
	chosen := strings.Replace(r.settings, `strategy = "prefixaware"`, `strategy = "mine"`, 1)
	if chosen == r.settings {
		r.t.Fatalf("no strategy to replace in\n%s", r.settings)
	}
	write(r.t, r.file(), chosen+"\n"+text)
	r.serve.eventually("strategy mine", func() bool { return r.pool().Strategy == "mine" })
	r.ask()
	r.runCheck("bin/warmpath check --config warmpath.toml")
}

// runLab expects a row for each strategy that the line names, of four at most. It plays only a part of each load.
func (r *reader) runLab(line string) {
	r.t.Helper()
	_, list, _ := strings.Cut(line, "--strategy ")
	list, _, _ = strings.Cut(list, " ")
	names := strings.Split(list, ",")
	names = names[:min(4, len(names))]
	out := r.run(strings.Replace(line, list, strings.Join(names, ","), 1) + " --seeds 1 --requests 40").succeed()
	for _, name := range names {
		if !strings.Contains(out, "\n  "+name+" ") {
			r.t.Errorf("%s has no row of %s:\n%s", line, name, out)
		}
	}
}

// runReplay expects that every request of the trace is answered.
func (r *reader) runReplay(line string) {
	r.t.Helper()
	out := r.run(line + " --json").succeed()
	var got struct {
		Requests, Answered int
		BlockHitRate       float64 `json:"block_hit_rate"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		r.t.Fatalf("%v:\n%s", err, out)
	}
	if got.Requests != 60 || got.Answered != 60 {
		r.t.Errorf("%d of %d requests answered, want 60 of 60:\n%s", got.Answered, got.Requests, out)
	}
	if got.BlockHitRate < 0.035 || got.BlockHitRate > 0.045 {
		r.t.Errorf("block hit rate %.3f; docs/replay.md says .040", got.BlockHitRate)
	}
}
