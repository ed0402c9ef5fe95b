// Package warmpath_test keeps the plan of the house: who may import whom, one door for each outside package, sizes, names.
// house_shape_test.go measures how a package hangs together, and which rooms are silent. house_style_test.go counts what
// style rules out. The plan is told in daemon/doc.go and in each room's doc.go. These tables are where it is enforced.
package warmpath_test

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

// arrows lists for each room the rooms that it may import. The longest key that holds a package is its room; a room may
// import itself and what is below it only where that is listed. A pattern ending in /... means the folder and all below.
var arrows = map[string][]string{
	// The root wires the rooms and is the only one that knows the configuration.
	"daemon": {"daemon/crew", "daemon/adapt", "daemon/decisions", "daemon/discover", "daemon/exchange", "daemon/feed", "daemon/front", "daemon/gate",
		"daemon/kvcache", "daemon/listen", "daemon/operator", "daemon/peers", "daemon/probe", "daemon/route", "daemon/session", "daemon/sessionapi",
		"daemon/tokens", "daemon/tracing", "daemon/unit", "daemon/upstream", "daemon/worker", "host", "cache/...", "conf", "plugins"},
	"daemon/adapt": {"daemon/discover", "daemon/exchange", "daemon/feed", "daemon/front", "daemon/gate", "daemon/kvcache", "daemon/overflow", "daemon/peers", "daemon/probe", "daemon/route", "daemon/upstream", "daemon/worker",
		"cache/goredis", "cache/lmcache", "cache/tier", "conf"}, // what the configuration means for the others

	"daemon/warmpath": {"daemon", "daemon/crew", "daemon/lab", "daemon/lab/...", "daemon/decisions", "daemon/kvcache", "daemon/operator",
		"daemon/delivery", "daemon/redecide", "daemon/replay", "daemon/scaffold", "daemon/spool", "daemon/unit", "daemon/vllmsim",
		"daemon/vllmsim/events", "daemon/vllmsim/lmworker", "host", "cache/...", "conf",
		"plugins", "sdk", "sdk/abi"},

	// The way of a request: front -> exchange -> route, sessionapi beside it. No arrow runs up.
	"daemon/front": {"daemon/exchange", "daemon/gate", "daemon/inflate", "daemon/jsonline", "daemon/listen", "daemon/spool", "daemon/upstream"},
	"daemon/operator": {"daemon/shadow", "daemon/peers", "daemon/decisions", "daemon/exchange", "daemon/gate", "daemon/kvcache", "daemon/route", "daemon/session", "daemon/tracing", "daemon/worker",
		"daemon/feed", "cache/holdings", "cache/kvevents", "cache/kvstore/remote", "cache/lmcache", "cache/tier"},
	"daemon/decisions":  {"daemon/exchange", "daemon/gate", "daemon/packed", "daemon/route"},
	"daemon/sessionapi": {"daemon/exchange", "daemon/sagemaker", "daemon/session", "daemon/upstream", "daemon/worker"},
	"daemon/exchange": {"daemon/gate", "daemon/overflow", "daemon/prompt", "daemon/route", "daemon/sagemaker", "daemon/seldom", "daemon/session", "daemon/tokens",
		"daemon/upstream", "daemon/worker"},
	"daemon/route": {"daemon/jsonline", "daemon/packed", "daemon/prompt", "daemon/session", "daemon/worker", "cache/holdings", "cache/lmcache", "cache/prefix", "host", "sdk/abi",
		"sdk/score"},

	// The workers' KV cache: a store, and the doors to it.
	"daemon/kvcache":  {"daemon/discover", "daemon/hyperpod", "daemon/resp", "cache/goredis", "cache/kvstore/..."},
	"daemon/hyperpod": {"cache/kvstore", "daemon/listen", "daemon/seldom"},
	"daemon/resp":     {"cache/kvstore", "daemon/seldom", "daemon/socket"},

	// The others under daemon are strangers to each other.
	"daemon/feed":             {"daemon/seldom", "daemon/worker", "cache/holdings", "cache/kvevents", "cache/zmtp"},
	"daemon/gate":             {},
	"daemon/inflate":          {},
	"daemon/overflow":         {},
	"daemon/delivery":         {},
	"daemon/listen":           {"daemon/seldom", "daemon/socket"},
	"daemon/discover":         {},
	"daemon/discover/dnstest": {}, // a name server for tests
	"daemon/peers":            {"daemon/prompt", "daemon/route", "daemon/socket", "daemon/worker", "cache/tier"},
	"daemon/probe":            {},
	"daemon/prompt":           {"sdk/abi"},
	"daemon/sagemaker":        {},
	"daemon/replay":           {"sdk/abi"},
	"daemon/scaffold":         {"sdk", "sdk/abi"},
	"daemon/redecide":         {"daemon/packed", "daemon/worker", "host", "sdk/abi", "sdk/score"},
	// The lab runs the code that serves on simulated engines; trial is its contract.
	"daemon/lab": {"daemon/lab/...", "daemon/route"},
	"daemon/lab/served": {"daemon/lab/...", "daemon/peers", "daemon/prompt", "daemon/route", "daemon/session", "daemon/vllmsim/engine",
		"daemon/worker", "cache/holdings", "host", "plugins", "sdk", "sdk/abi"},
	"daemon/lab/setup":   {"daemon/lab/traffic", "daemon/lab/world", "daemon/vllmsim/engine"},
	"daemon/lab/traffic": {"daemon/replay", "daemon/vllmsim/engine"},
	"daemon/lab/world":   {"daemon/lab/traffic", "daemon/lab/trial", "daemon/vllmsim/engine"},
	"daemon/lab/trial":   {}, "daemon/lab/report": {"daemon/lab/trial"}, "daemon/lab/peers": {"daemon/lab/trial", "sdk/abi"},
	"daemon/session":          {},
	"daemon/shadow":           {"daemon/route", "host"},
	"daemon/crew":             {"daemon/adapt", "daemon/route", "daemon/shadow", "host", "conf", "plugins", "sdk/abi"},
	"daemon/jsonline":         {},
	"daemon/packed":           {},
	"daemon/seldom":           {},
	"daemon/socket":           {},
	"daemon/spool":            {},
	"daemon/tokens":           {"daemon/prompt"},
	"daemon/tracing":          {"daemon/exchange", "daemon/gate", "daemon/jsonline", "daemon/route"},
	"daemon/tracing/otlptest": {}, // a collector for tests
	"daemon/unit":             {},
	"daemon/upstream":         {"daemon/socket"},
	"daemon/vllmsim":          {"daemon/vllmsim/engine", "daemon/vllmsim/events", "daemon/vllmsim/lmworker"},
	"daemon/vllmsim/events":   {"daemon/vllmsim/engine", "daemon/vllmsim/msgpack", "cache/zmtp"},
	"daemon/vllmsim/lmworker": {"daemon/vllmsim/engine", "daemon/vllmsim/msgpack", "cache/zmtp"},
	"daemon/vllmsim/msgpack":  {},
	"daemon/vllmsim/engine":   {"sdk/abi"},
	"daemon/worker":           {"sdk/abi"},

	"host":                  {"host/meter", "sdk/abi"},
	"host/meter":            {},
	"host/wasmtest":         {}, // a fake module for tests
	"cache/goredis":         {},
	"cache/holdings":        {"cache/prefix"},
	"cache/kvstore":         {"cache/kvstore/..."}, // its rooms do not know each other
	"cache/kvstore/arena":   {},
	"cache/kvstore/evict":   {},
	"cache/kvstore/catalog": {},
	"cache/kvstore/chunks":  {},
	"cache/kvstore/remote":  {"cache/goredis", "cache/kvstore"},
	"cache/kvstore/spill":   {"cache/kvstore", "cache/kvstore/catalog"},
	"cache/lmcache":         {"cache/zmtp"},
	"cache/prefix":          {"sdk/abi"},
	"cache/tier":            {"cache/goredis", "sdk/abi"},
	"cache/zmtp":            {},
	"conf":                  {},
	"conf/certtest":         {}, // certificates for tests
	"conf/logtest":          {}, // logs for tests
	"conf/porttest":         {}, // ports for tests
	"conf/redistest":        {}, // redis-servers for tests
	"cache/kvevents":        {"cache/zmtp"},
	"plugins":               {"plugins/...", "sdk"}, // of each plugin see init
	"plugins/internal":      {"sdk"},
	"sdk":                   {"sdk/internal/...", "sdk/abi"},
	"sdk/internal":          {"sdk/abi"},
	"sdk/score":             {"sdk", "sdk/abi"},
	"sdk/sdktest":           {"sdk", "sdk/internal/...", "sdk/abi"},
	"sdk/abi":               {},
}

// doors lists for each outside package, by the start of its path, the only rooms that import it. What stands in no row is
// not to be imported at all.
var doors = map[string][]string{
	"github.com/tetratelabs/wazero":                         {"host"},
	"github.com/gofiber/fiber/v2":                           {"daemon/front", "daemon/operator"},
	"github.com/valyala/fasthttp":                           {"daemon/front", "daemon/hyperpod", "daemon/operator"},
	"github.com/prometheus/client_golang":                   {"daemon/operator"},
	"github.com/coreos/go-systemd/v22":                      {"daemon/unit"},
	"github.com/armon/go-radix":                             {"cache/holdings", "cache/kvstore/catalog", "cache/prefix"},
	"github.com/redis/go-redis/v9":                          {"cache/goredis", "cache/kvstore/remote", "cache/tier", "daemon/peers"},
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream": {"daemon/sagemaker"},
	"github.com/BurntSushi/toml":                            {"conf", "daemon/lab/setup"},
	"github.com/spf13/cobra":                                {"daemon/warmpath"},
	"github.com/schollz/progressbar/v3":                     {"daemon/replay", "daemon/lab"},
	"github.com/zeebo/blake3":                               {"cache/lmcache"},
	"github.com/klauspost/compress":                         {"daemon/inflate"},
	"github.com/tinylib/msgp":                               {"cache/lmcache"},
	"github.com/zeebo/xxh3":                                 {"cache/holdings", "cache/kvstore/remote", "daemon/prompt"},
	"go.opentelemetry.io/otel":                              {"daemon/tracing"},
	"github.com/go-logr/logr":                               {"daemon/tracing"},
	"go.opentelemetry.io/proto/otlp":                        {"daemon/tracing", "daemon/tracing/otlptest"},
	"google.golang.org/protobuf":                            {"daemon/tracing", "daemon/tracing/otlptest"},
	"golang.org/x/term":                                     {"daemon/replay", "daemon/lab", "daemon/warmpath"},
	"golang.org/x/sys":                                      {"daemon/listen", "cache/kvstore/arena"},
}

// topLevel is all that may stand at the top.
var topLevel = []string{
	"daemon", "host", "cache", "conf", "sdk", "plugins", "testdata", "docs", "deploy", ".ci",
	"go.mod", "go.sum", "Makefile", "README.md", "LICENSE", ".gitignore", "house_test.go", "house_shape_test.go",
	"house_names_test.go", "house_style_test.go",
}

const (
	maxFileLines     = 400
	maxFunctionLines = 70
)

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
		if rel == "" || strings.HasPrefix(rel, "testdata/") || strings.HasPrefix(rel, ".ci") {
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

func TestTopLevel(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skipf("not a git checkout: %v", err)
	}
	for _, file := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		if first, _, _ := strings.Cut(file, "/"); !slices.Contains(topLevel, first) {
			t.Errorf("%s stands at the top: the top level is fixed to %v", file, topLevel)
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

func TestSizes(t *testing.T) {
	sources(t, func(file string, set *token.FileSet, f *ast.File) {
		if n := set.Position(f.FileEnd).Line; n > maxFileLines {
			t.Errorf("%s has %d lines: at most %d; it does more than one thing", file, n, maxFileLines)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			fn, ok := n.(*ast.FuncDecl)
			if !ok {
				return true
			}
			first, last := set.Position(fn.Pos()), set.Position(fn.End())
			if lines := last.Line - first.Line + 1; lines > maxFunctionLines {
				t.Errorf("%s: %s has %d lines: at most %d", first, fn.Name.Name, lines, maxFunctionLines)
			}
			return true
		})
	})
}

// The root wires whatif, and gives it strategies; the operator's page asks it.
func init() {
	arrows["daemon/whatif"] = []string{"daemon/exchange", "daemon/gate", "daemon/route", "daemon/upstream"}
	for _, r := range []string{"daemon", "daemon/operator"} {
		arrows[r] = append(arrows[r], "daemon/whatif")
	}
	arrows["daemon/adapt"] = append(arrows["daemon/adapt"], "daemon/delivery", "daemon/tracing", "daemon/whatif", "host", "plugins")
	arrows["daemon/operator"] = append(arrows["daemon/operator"], "daemon/delivery") // modules that the admin API takes in
}

// One of discover's sources is a room of its own: the pods of a Kubernetes service.
func init() {
	arrows["daemon/discover/endpoints"] = nil
	for _, r := range []string{"daemon/discover", "daemon/adapt"} {
		arrows[r] = append(arrows[r], "daemon/discover/endpoints")
	}
}

// A built-in is its folder and one row in plugins.go: this table is made of those rows, and make reads them.
func init() {
	for _, name := range plugins.Names() {
		arrows["plugins/"+name] = []string{"plugins/internal/...", "sdk", "sdk/abi", "sdk/score"}
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
