// Package house_test checks the rules of this repository: imports, doors for outside packages, names, sizes and documents. Its
// tests run at the root of the repository, and each file that they name is relative to that.
//
// wings_test.go has the imports that are allowed, house_test.go the doors. shape_test.go measures packages and lists those
// that read no clock. style_test.go counts what the style rules out. daemon/doc.go explains the plan behind these tables.
package house_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/plugins"
	"github.com/warmpath/warmpath/sdk/abi"
)

const module = "github.com/warmpath/warmpath"

// TestMain runs the tests at the root, one folder up.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// doors lists for each outside package, by the start of its path, the only rooms that import it. What stands in no row is
// not to be imported at all.
var doors = map[string][]string{
	"github.com/tetratelabs/wazero":                         {"host"},
	"github.com/gofiber/fiber/v2":                           {"daemon/request/front", "daemon/admin/operator"},
	"github.com/valyala/fasthttp":                           {"daemon/request/front", "daemon/kv/hyperpod", "daemon/admin/operator"},
	"github.com/prometheus/client_golang":                   {"daemon/admin/metrics"},
	"github.com/coreos/go-systemd/v22":                      {"daemon/admin/unit"},
	"github.com/armon/go-radix":                             {"cache/holdings", "cache/kvstore/catalog", "cache/prefix"},
	"github.com/redis/go-redis/v9":                          {"cache/parts/goredis", "cache/kvstore/remote", "cache/tier", "daemon/peers"},
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream": {"daemon/request/sagemaker"},
	"github.com/BurntSushi/toml":                            {"conf", "daemon/lab/setup"},
	"github.com/spf13/cobra":                                {"daemon/cli", "daemon/lab/commands"},
	"github.com/schollz/progressbar/v3":                     {"daemon/lab/replay", "daemon/lab"},
	"github.com/zeebo/blake3":                               {"cache/lmcache"},
	"github.com/klauspost/compress":                         {"daemon/transport/inflate", "plugins"},
	"github.com/andybalholm/brotli":                         {"daemon/transport/inflate"},
	"github.com/tinylib/msgp":                               {"cache/kvevents", "cache/lmcache"},
	"github.com/zeebo/xxh3":                                 {"cache/holdings", "cache/kvstore/remote", "daemon/request/prompt"},
	"go.opentelemetry.io/otel":                              {"daemon/admin/tracing"},
	"github.com/go-logr/logr":                               {"daemon/admin/tracing"},
	"go.opentelemetry.io/proto/otlp":                        {"daemon/lab/otlptest"},
	"google.golang.org/protobuf":                            {"daemon/lab/otlptest"},
	"oras.land/oras-go/v2":                                  {"daemon/admin/registry"},
	"github.com/opencontainers":                             {"daemon/admin/registry"},
	"golang.org/x/term":                                     {"daemon/lab/replay", "daemon/lab", "daemon/cli"},
	"golang.org/x/time":                                     {"daemon/fleet/probe"},
	"golang.org/x/sys":                                      {"daemon/transport/listen", "cache/kvstore/arena"},
}

// topLevel is all that may stand at the top.
var topLevel = []string{
	"daemon", "host", "cache", "conf", "sdk", "house", "plugins", "testdata", "docs", "deploy", ".ci",
	"go.mod", "go.sum", "Makefile", "README.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", ".gitignore",
}

// pkg is what go list tells of a package.
type pkg struct {
	ImportPath string
	Name       string
	Imports    []string
	Deps       []string
}

// goList tells the packages that fit the patterns, for this system or with env for another.
func goList(t *testing.T, env []string, patterns ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-e", "-json=ImportPath,Name,Imports,Deps"}, patterns...)...)
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

var wasip1 = []string{"GOOS=wasip1", "GOARCH=wasm"}

// room returns the longest key of arrows that holds the package.
func room(rel string) string {
	for r := rel; r != "." && r != "/"; r = path.Dir(r) {
		if _, ok := arrows[r]; ok {
			return r
		}
	}
	return ""
}

func allowed(patterns []string, rel string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		folder, deep := strings.CutSuffix(p, "/...")
		return rel == folder || deep && strings.HasPrefix(rel, folder+"/")
	})
}

func TestImports(t *testing.T) {
	// The guests' own files are seen only by wasip1.
	packages := append(goList(t, nil, "./..."), goList(t, wasip1, "./sdk/...", "./plugins/...")...)
	if len(packages) < 5 {
		t.Fatalf("go list told %d packages", len(packages))
	}
	for _, p := range packages {
		rel := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if rel == "" || rel == "house" || strings.HasPrefix(rel, ".ci") {
			continue
		}
		r := room(rel)
		if r == "" {
			t.Errorf("%s is in no room: give it a row in arrows, or another place", rel)
			continue
		}
		for _, imp := range p.Imports {
			checkImport(t, rel, r, imp)
		}
	}
}

func checkImport(t *testing.T, rel, r, imp string) {
	if inside, ours := strings.CutPrefix(imp, module+"/"); ours {
		// module/main.go of a plugin belongs to the plugin's room, and imports it.
		if inside != r && !allowed(arrows[r], inside) {
			t.Errorf("%s imports %s: room %s may import %v", rel, inside, r, arrows[r])
		}
		return
	}
	if imp == "text/template" || imp == "html/template" {
		t.Errorf("%s imports %s: with a template in it the binary grows from 31 to 43 MB, as the linker then keeps every "+
			"exported method of every type; write it as Go", rel, imp)
	}
	if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") {
		return // standard library
	}
	for door, rooms := range doors {
		if imp == door || strings.HasPrefix(imp, door+"/") {
			if !slices.Contains(rooms, r) {
				t.Errorf("%s imports %s: its door is %v", rel, imp, rooms)
			}
			return
		}
	}
	t.Errorf("%s imports %s, which has no door: add a row to doors and the reason to the room's doc.go", rel, imp)
}

// What a strategy imports is compiled, instantiated and kept in memory for each instance.
func TestGuestsStaySmall(t *testing.T) {
	for _, p := range goList(t, wasip1, "./plugins/...", "./sdk") {
		if !strings.HasSuffix(p.ImportPath, "/module") && !strings.HasSuffix(p.ImportPath, "/sdk") {
			continue
		}
		for _, big := range []string{"fmt", "encoding/json", "reflect", "os"} {
			if slices.Contains(p.Deps, big) {
				t.Errorf("%s depends on %s: it would end up in a module", p.ImportPath, big)
			}
		}
	}
}

// TestTopLevel: the top level is fixed, and no file that git has, or would add, was built.
func TestTopLevel(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skipf("not a git checkout: %v", err)
	}
	for _, file := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		if first, _, _ := strings.Cut(file, "/"); !slices.Contains(topLevel, first) {
			t.Errorf("%s stands at the top: the top level is fixed to %v", file, topLevel)
		}
		text, _ := os.ReadFile(file) // one that was removed is listed until the next commit
		if bytes.HasPrefix(text, []byte("\x7fELF")) || bytes.HasPrefix(text, []byte("\x00asm")) {
			t.Errorf("%s was built: remove it, and name it in .gitignore if a build leaves it there", file)
		}
	}
}

// sources calls visit for every Go file of the repository.
func sources(t *testing.T, visit func(file string, set *token.FileSet, f *ast.File)) {
	t.Helper()
	set := token.NewFileSet()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (file == ".git" || file == "bin" || file == ".cache"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(file) != ".go":
			return nil
		}
		f, err := parser.ParseFile(set, file, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		visit(filepath.ToSlash(file), set, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestMakeKnowsTheBuiltins(t *testing.T) {
	out, err := exec.Command("make", "-s", "strategies").Output()
	if err != nil {
		t.Skipf("make does not run here: %v", err)
	}
	if got, want := strings.Fields(string(out)), plugins.Names(); !slices.Equal(got, want) {
		t.Errorf("make strategies = %v; plugins.Names() = %v", got, want)
	}
}

// conf says the default speed by itself, as it imports nothing of ours.
func TestConfKnowsTheModel(t *testing.T) {
	if got := conf.DefaultPool().PrefillTokensPerSecond; got != abi.PrefillTokensPerSecond {
		t.Errorf("conf's default prefill_tokens_per_second is %v; sdk/abi has %v", got, abi.PrefillTokensPerSecond)
	}
}

// TestToolsCompile: a change of the product leaves the module in testdata whole, tests included.
func TestToolsCompile(t *testing.T) {
	if text, err := exec.Command("go", "vet", "-C", "testdata", "-tags", "grpcnotrace", "./...").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}
