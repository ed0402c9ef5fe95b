package house_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// TestNight: each step of .ci/night.txt is a target of the Makefile, and each path that it guards exists.
func TestNight(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	rows := nightRows(t)
	if len(rows) < 5 {
		t.Fatalf("night.txt has %d steps", len(rows))
	}
	for _, row := range rows {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(row[0]) + `: .*## `).Match(makefile) {
			t.Errorf("night.txt: the Makefile has no target %s", row[0])
		}
		if minutes, err := strconv.Atoi(row[1]); err != nil || minutes < 1 {
			t.Errorf("night.txt, %s: %q are no minutes", row[0], row[1])
		}
		for _, guarded := range row[2:] {
			if !exists(guarded) {
				t.Errorf("night.txt, %s: there is no %s", row[0], guarded)
			}
		}
	}
	out, err := exec.Command("make", "-n", "night").Output()
	if err != nil {
		t.Skipf("make does not run here: %v", err)
	}
	if want := strings.Join(nightSteps(rows), " ") + "\n"; !strings.Contains(string(out), want) {
		t.Errorf("make night does not run %s", want)
	}
}

// TestRelease: the changelog begins with the release that the Makefile prepares, and docs/versions.md has the versions that
// the code writes.
func TestRelease(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	find := func(file, pattern string) string {
		m := regexp.MustCompile(pattern).FindStringSubmatch(read(file))
		if m == nil {
			t.Fatalf("%s has no %s", file, pattern)
		}
		return m[1]
	}
	next := find("Makefile", `(?m)^NEXT += v(\S+)$`)
	if first := find("docs/CHANGELOG.md", `(?m)^## (\S+)$`); first != next {
		t.Errorf("docs/CHANGELOG.md begins with %s; the Makefile has NEXT = v%s", first, next)
	}
	for file, pattern := range map[string]string{"deploy/helm/warmpath/Chart.yaml": `(?m)^appVersion: v(\S+)$`,
		"deploy/kubernetes/kustomization.yaml": `(?m)^ +newTag: v(\S+)`} {
		if image := find(file, pattern); image != next {
			t.Errorf("%s names the image %s; the Makefile has NEXT = v%s", file, image, next)
		}
	}
	page := read("docs/versions.md")
	for _, want := range []string{
		fmt.Sprintf("This release has %d.%d,", abi.Version>>16, abi.Version&0xffff),
		"| messages of `[history]` | " + find("daemon/peers/wire.go", `wireVersion += (\d+)`) + ", with " +
			find("daemon/request/prompt/canon.go", `TextVersion = (\d+)`) + " for the hashes of prompts |",
		"| limits of keys in Redis | " + find("daemon/request/ledger/script.go", `if version == '(\d+)'`) + " |",
		"| sessions in Redis | " + find("daemon/request/session/binding.go", `const version = (\d+)`) + " |",
		"| `state_file` | " + find("daemon/peers/statewire.go", `stateVersion += (\d+)`) + " |",
		"| `spill_dir` | " + find("cache/kvstore/spill/record.go", `magic += "(\w+)"`) + " |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("docs/versions.md lacks %q", want)
		}
	}
}

// nightRows returns the fields of each row of night.txt: step, minutes, and one path or more.
func nightRows(t *testing.T) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(".ci/night.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		row := strings.Fields(line)
		if len(row) < 3 {
			t.Fatalf("night.txt: %q has no step, minutes and path", line)
		}
		rows = append(rows, row)
	}
	return rows
}

// nightSteps returns the first column.
func nightSteps(rows [][]string) (steps []string) {
	for _, row := range rows {
		steps = append(steps, row[0])
	}
	return steps
}

// TestStepsOfAChange: .ci/steps prints what guards a day's changes, and all steps where it cannot know them.
func TestStepsOfAChange(t *testing.T) {
	all := strings.Join(nightSteps(nightRows(t)), " ")
	f := func(name string, commits []commit, env, want string) {
		t.Helper()
		if got := stepsOf(t, commits, env); got != want {
			t.Errorf("%s: %q; want %q", name, got, want)
		}
	}
	old := commit{file: "daemon/request/front/old.go", age: 30 * time.Hour}
	f("no git", nil, "", all)
	f("a history of less than a day", []commit{{"docs/a.md", 2 * time.Hour}, {"docs/b.md", 0}}, "", all)
	f("documents", []commit{old, {"docs/a.md", time.Hour}, {"docs/b.md", 0}}, "", "")
	f("the chart, not in the last commit", []commit{old, {"deploy/helm/x.yaml", time.Hour}, {"docs/b.md", 0}}, "", "chartcheck")
	f("a file by name", []commit{old, {"go.mod", 0}}, "", "sbomcheck")
	f("a name that only begins so", []commit{old, {"go.modern", 0}, {"deployed/x", 0}}, "", "")
	f("night", []commit{old, {"docs/a.md", 0}}, "NIGHT=1", all)
	f("not committed", []commit{old, {"docs/a.md", 0}, {"deploy/new.yaml", -1}}, "", "chartcheck")
}

// commit adds a file, so long ago. One of a negative age is not committed.
type commit struct {
	file string
	age  time.Duration
}

// stepsOf makes these commits and returns the steps that .ci/steps prints.
func stepsOf(t *testing.T, commits []commit, env string) string {
	t.Helper()
	dir := t.TempDir()
	run := func(env []string, name string, args ...string) string {
		c := exec.Command(name, args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "NIGHT=", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		c.Env = append(c.Env, env...)
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s %v: %v", name, args, err)
		}
		return string(out)
	}
	if len(commits) > 0 {
		run(nil, "git", "init", "-q")
	}
	if err := os.CopyFS(filepath.Join(dir, ".ci"), os.DirFS(".ci")); err != nil {
		t.Fatal(err)
	}
	for _, c := range commits {
		file := filepath.Join(dir, c.file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		if c.age < 0 {
			continue
		}
		run(nil, "git", "add", ".")
		run([]string{"GIT_COMMITTER_DATE=" + time.Now().Add(-c.age).Format(time.RFC3339)},
			"git", "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", c.file)
	}
	var steps []string
	for line := range strings.Lines(run([]string{env}, "bash", ".ci/steps")) {
		steps = append(steps, strings.Fields(line)[0])
	}
	return strings.Join(steps, " ")
}
