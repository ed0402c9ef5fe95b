package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/host"
)

// goModule compiles a program as a strategy, in the folder of the project so that it finds the SDK.
func goModule(t *testing.T, source string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "mine.wasm")
	c := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w -buildid=", "-o", file, source)
	c.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

// Each mistake that authors make in Go is refused or noted by check, in words that name the remedy.
func TestMistakesOfAuthors(t *testing.T) {
	file := goModule(t, "../../host/testdata/guests/mistaken")
	h, err := host.New(t.Context(), host.Config{Slots: 1, CacheDir: t.TempDir()}) // it compiles once
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(context.Background())
	for _, c := range []struct {
		mistake string
		refused string   // "" = it is no reason to refuse the module
		notes   []string // and what is noted
	}{
		{"", "", nil},
		{"panic", "panic: no such tier", nil},
		{"nil", "main.init.func2", nil}, // where the nil pointer is
		{"bounds", "index out of range [1] with length 1", nil},
		{"row", "chose row 1 of 1; want 0 to 0, -1 (Decline), -2 (Reject) or -3 (Hold)", nil},
		{"changes", "it changes its rows, which the host does not read back; copy what you work on", nil},
		{"twice", "its alternative 1 is row 0 once more; name each worker once", nil},
		{"then", "its alternative 1 is row 1 of 1; name rows that there are", nil},
		{"status", "it rejects with status 200, for which the client gets 429; give one of 400 to 599", nil},
		{"reason", "", []string{"reason 263 has no name: return one by wp_reasons, or by Reasons of the SDK"}},
		{"header", "", []string{`may not: allow = ["headers:x-tier"] in its table, --allow headers:x-tier here`}},
		{"kv", "", []string{`may not: allow = ["kv"] in its table, --allow kv here`}},
		{"loop", "look for an endless loop", nil},
		{"recursion", "or recursion", nil},
		{"memory", "much memory at once", nil},
		{"leak", "the module fails after ", nil},
		{"sleep", "a wait (time.Sleep)", nil},
		{"declines", "", []string{"on 16 workers it chose nobody"}},
		{"first", "wp_on_first_token: wasm error: unreachable (it says \"panic: no such arm", nil},
		{"classify", "wp_classify: wasm error: unreachable (it says \"panic: no such class", nil},
		{"nan", "", nil}, // a Ranking takes it as the worst
		{"own", "sdk: NaN and infinities are no numbers of a worker; keep the one before", nil},
		{"configure", `it says "option most: 0 lets nobody in; give 1 or more"`, nil},
		{"most=1", `unknown option \"most\"; the strategy knows mistake number`, nil},
		{"number=x", `option \"number\" is \"x\"; want a whole number`, nil},
	} {
		key, value, is := strings.Cut(c.mistake, "=")
		if !is {
			key, value = "mistake", c.mistake
		}
		r, err := checkIn(t.Context(), h, file, pluginWish{workers: []int{16}, most: 2000, options: map[string]string{key: value}})
		if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%q: %v; want %q", c.mistake, err, c.refused)
			continue
		}
		if err != nil {
			continue
		}
		for i, want := range c.notes {
			if len(r.Notes) <= i || !strings.Contains(r.Notes[i], want) {
				t.Errorf("%q: notes %q; want %q", c.mistake, r.Notes, want)
			}
		}
		if len(r.Notes) != len(c.notes) {
			t.Errorf("%q: notes %q; want %d", c.mistake, r.Notes, len(c.notes))
		}
	}
}

// What keeps a program from being a strategy at all is told by its own remedy.
func TestMistakesOfPrograms(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"no Register", `import _ "github.com/warmpath/warmpath/sdk"`, "sdk.Register"},
		{"twice", `import "github.com/warmpath/warmpath/sdk"
type s struct{}
func (s) Route(*sdk.Request, []sdk.Worker) sdk.Decision { return sdk.Decline }
func init() { sdk.Register(s{}); sdk.Register(s{}) }`, "sdk: Register is called twice; a module is one strategy"},
		{"nil", `import "github.com/warmpath/warmpath/sdk"
func init() { sdk.Register(nil) }`, "sdk: Register(nil); pass the strategy"},
		{"no SDK", ``, "warmpath"},
	} {
		source := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(source, []byte("package main\n"+c.body+"\nfunc main() {}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := checkPlugin(t.Context(), goModule(t, source), pluginWish{workers: []int{16}, most: 100})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
}
