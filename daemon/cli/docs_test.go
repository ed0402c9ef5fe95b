package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/cli/scaffold"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/toolchains"
)

// shell returns the text of all shell blocks of a page, from top to bottom.
func shell(page string) string {
	var b strings.Builder
	for _, m := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		b.WriteString(m[1])
	}
	return b.String()
}

// tutorialBegins precedes the commands of the tutorial.
const tutorialBegins = "set -euo pipefail; set -m; PATH=\"$PWD/bin:$PATH\"; trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"

// The tutorial's commands are one script, which runs unchanged except for the ports.
func TestStrategiesTutorial(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs servers and the compiler")
	}
	dir, port := workplace(t), porttest.Row(t, 5)
	at := func(i int) string { return fmt.Sprint(port + i) }
	ports := strings.NewReplacer("8080", at(0), "9090", at(1), "9001", at(2), "9002", at(3), "9003", at(4))
	script := ports.Replace(shell(read(t, "../../docs/strategies.md")))
	write(t, filepath.Join(dir, "tutorial.sh"), tutorialBegins+script)
	out := launch(t, dir, "bash tutorial.sh", "GOPROXY=off", "GOWORK=off").succeed()
	for _, want := range []string{"nearest.wasm: ok", "\n200\n", `msg="strategy prints"`, "text=\"a request of", "reload refused",
		"closest is live of pool pool1, activated in the place of nearest", "nearest is live of pool pool1\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the tutorial does not show %q:\n%s", want, out)
		}
	}
	if !regexp.MustCompile(`(?m)^ +\d+ 200$`).MatchString(out) || regexp.MustCompile(`(?m)^ +\d+ [^2]\d\d$`).MatchString(out) {
		t.Errorf("not all requests were answered with 200:\n%s", out)
	}
	if !regexp.MustCompile(`(?m)^pool1 +roundrobin +nearest +[6-9] `).MatchString(out) {
		t.Errorf("the shadow has not seen six requests:\n%s", out)
	}
}

// The tutorial runs in the other languages too, but for the part that changes the strategy's source, which is Go.
func TestStrategiesTutorialInEachLanguage(t *testing.T) {
	if testing.Short() {
		t.Skip("runs servers and compilers")
	}
	toolchains.Use(t, "../..")
	t.Parallel() // only now, as that sets PATH
	page := read(t, "../../docs/strategies.md")
	from, to := strings.Index(page, "## 4."), strings.Index(page, "## 5.")
	page = page[:from] + page[to:]
	for _, language := range scaffold.Languages[1:] {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			dir, port := workplace(t), porttest.Row(t, 5)
			at := func(i int) string { return fmt.Sprint(port + i) }
			words := strings.NewReplacer("8080", at(0), "9090", at(1), "9001", at(2), "9002", at(3), "9003", at(4),
				"warmpath plugin new nearest ", "#")
			launch(t, dir, "bin/warmpath plugin new nearest --lang "+language).succeed()
			toolchains.Need(t, language, filepath.Join(dir, "nearest"))
			write(t, filepath.Join(dir, "tutorial.sh"), tutorialBegins+words.Replace(shell(page)))
			out := launch(t, dir, "bash tutorial.sh").succeed()
			for _, want := range []string{"nearest.wasm: ok", "reasons          least cost (100 %)", "\n200\n",
				"nearest: least cost", "closest is live of pool pool1, activated in the place of nearest"} {
				if !strings.Contains(out, want) {
					t.Errorf("the tutorial does not show %q:\n%s", want, out)
				}
			}
		})
	}
}

// The commands of the page on the KV cache are one script.
func TestKVCachePage(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("there is no redis-cli, by which the page puts a value")
	}
	dir, port := workplace(t), porttest.Row(t, 4)
	at := func(i int) string { return fmt.Sprint(port + i) }
	ports := strings.NewReplacer("8080", at(0), "9090", at(1), "9001", at(2), "6380", at(3))
	page := read(t, "../../docs/kv-cache.md")
	script := strings.ReplaceAll(ports.Replace(shell(page)), "warmpath cache ", "warmpath cache --admin 127.0.0.1:"+at(1)+" ")
	write(t, filepath.Join(dir, "page.sh"), "set -euo pipefail; PATH=\"$PWD/bin:$PATH\"; trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"+script)
	out := launch(t, dir, "bash page.sh").succeed()
	for _, want := range []string{"room for ", `1 keys of 65536 bytes begin with "resp/0/org/model@"`, "-        resp/0/org/model@1@0@ab12@bfloat16",
		"model    org/model", `{"key":"resp/0/org/model@1@0@ab12@bfloat16","size":65536,"tiers":["l1"]}`, "deleted 1\n", "deleted 0\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the commands of the page do not show %q:\n%s", want, out)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "value")); err != nil || len(b) != 65536 {
		t.Errorf("the value has %d bytes, %v", len(b), err)
	}
}
