package house_test

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/plugins"
)

// wings lists for each wing of daemon the wings that it may import. Each folder at the first level below daemon is one,
// and so is daemon itself: "." here. Rules between single rooms are in arrows.
var wings = map[string][]string{
	".":         {"adapt", "admin", "fleet", "kv", "peers", "request", "transport"},
	"warmpath":  {"cli"},
	"cli":       {".", "admin", "fleet", "kv", "lab", "request", "transport"}, // request: the legs that check --probe tries
	"adapt":     {"admin", "fleet", "kv", "peers", "request", "transport"},
	"admin":     {"fleet", "kv", "peers", "request", "transport"},
	"peers":     {"fleet", "request", "transport"},
	"request":   {"fleet", "transport"},
	"kv":        {"fleet", "transport"},
	"fleet":     {"transport"},
	"transport": {},
	"lab":       {"fleet", "peers", "request"}, // which it runs; nothing that serves imports it but cli
}

// arrows lists for each room the rooms that it may import, inside and outside its wing. The longest key that holds a
// package is its room. A room may import itself, and what is below it only where that is listed. A pattern ending in
// /... means the folder and all below.
var arrows = map[string][]string{
	// The process.
	"daemon": { // wires the rooms; it and adapt alone know the configuration
		"cache/...", "conf", "daemon/adapt", "daemon/admin/decisions", "daemon/admin/metrics", "daemon/admin/operator",
		"daemon/admin/readiness", "daemon/admin/register", "daemon/admin/strategies", "daemon/admin/tracing", "daemon/admin/unit", "daemon/fleet/adapters",
		"daemon/fleet/discover", "daemon/fleet/feed", "daemon/fleet/probe", "daemon/fleet/subset", "daemon/fleet/wake",
		"daemon/fleet/worker", "daemon/kv/kvcache",
		"daemon/peers", "daemon/request/epoch", "daemon/request/exchange", "daemon/request/front",
		"daemon/request/ledger",
		"daemon/request/message", "daemon/request/relocate", "daemon/request/route", "daemon/request/session", "daemon/request/sessionapi",
		"daemon/request/tokens",
		"daemon/request/waiting", "daemon/transport/certificate",
		"daemon/transport/gate", "daemon/transport/listen", "daemon/transport/upstream", "host", "plugins",
	},
	"daemon/warmpath": {"daemon/cli"}, // the main package
	"daemon/adapt": { // what the configuration means for each room
		"cache/parts/bind", "cache/parts/goredis", "cache/lmcache", "cache/tier", "conf", "daemon/admin/tracing",
		"daemon/fleet/adapters", "daemon/fleet/discover", "daemon/fleet/discover/endpoints", "daemon/fleet/feed",
		"daemon/fleet/probe", "daemon/fleet/worker", "daemon/kv/kvcache", "daemon/peers", "daemon/request/epoch",
		"daemon/request/exchange",
		"daemon/request/front", "daemon/request/identity", "daemon/request/ledger", "daemon/request/limit",
		"daemon/request/names", "daemon/request/overflow", "daemon/request/pair", "daemon/request/queue",
		"daemon/request/route", "daemon/request/waiting",
		"daemon/transport/certificate", "daemon/transport/gate", "daemon/transport/upstream", "host", "plugins",
	},

	// A request, from front to upstream. No arrow runs up.
	"daemon/request": {},
	"daemon/request/exchange": {
		"cache/parts/quota", "cache/parts/seldom", "daemon/fleet/adapters", "daemon/fleet/judge",
		"daemon/fleet/worker",
		"daemon/request/account",
		"daemon/request/admission", "daemon/request/attempt", "daemon/request/catalogue", "daemon/request/epoch",
		"daemon/request/handoff", "daemon/request/identity", "daemon/request/journal", "daemon/request/limit",
		"daemon/request/message", "daemon/request/names", "daemon/request/overflow", "daemon/request/pair",
		"daemon/request/prompt",
		"daemon/request/relocate", "daemon/request/resume", "daemon/request/record", "daemon/request/route",
		"daemon/request/sagemaker", "daemon/request/session", "daemon/request/sse",
		"daemon/request/tokens", "daemon/request/waiting", "daemon/transport/direct", "daemon/transport/gate",
		"daemon/transport/upstream",
	},
	"daemon/request/handoff": { // a prompt that another worker computes
		"daemon/fleet/adapters", "daemon/fleet/judge", "daemon/fleet/worker", "daemon/request/account",
		"daemon/request/admission", "daemon/request/attempt", "daemon/request/epoch", "daemon/request/journal",
		"daemon/request/message", "daemon/request/pair", "daemon/request/prompt",
		"daemon/request/record", "daemon/request/route",
		"daemon/transport/direct", "daemon/transport/upstream",
	},
	"daemon/request/attempt": { // one try of a request at one worker
		"daemon/fleet/judge", "daemon/fleet/worker", "daemon/request/account", "daemon/request/admission",
		"daemon/request/epoch", "daemon/request/journal", "daemon/request/message", "daemon/request/names",
		"daemon/request/pair", "daemon/request/prompt",
		"daemon/request/record", "daemon/request/route", "daemon/request/sse",
		"daemon/request/tokens", "daemon/transport/gate", "daemon/transport/upstream",
	},
	"daemon/request/account":   {"daemon/request/limit"},
	"daemon/request/catalogue": {"daemon/fleet/worker", "daemon/request/epoch", "daemon/request/message", "daemon/request/names"},
	"daemon/request/epoch": { // what is in force when a request comes in
		"cache/parts/quota", "daemon/fleet/adapters", "daemon/fleet/worker", "daemon/request/identity",
		"daemon/request/limit",
		"daemon/request/names", "daemon/request/overflow", "daemon/request/pair", "daemon/request/prompt",
		"daemon/request/route", "daemon/request/session", "daemon/request/tokens", "daemon/request/waiting",
		"daemon/transport/gate", "daemon/transport/upstream",
	},
	"daemon/request/front": {
		"cache/parts/bind", "cache/parts/seldom", "daemon/request/account", "daemon/request/epoch",
		"daemon/request/exchange",
		"daemon/request/message", "daemon/transport/certificate", "daemon/transport/gate", "daemon/transport/inflate",
		"daemon/transport/jsonline", "daemon/transport/listen", "daemon/transport/spool", "daemon/transport/upstream",
	},
	"daemon/request/admission": { // what may be refused before a worker is asked
		"daemon/fleet/worker", "daemon/request/account", "daemon/request/epoch", "daemon/request/identity",
		"daemon/request/journal", "daemon/request/limit", "daemon/request/message", "daemon/request/names",
		"daemon/request/overflow", "daemon/request/pair", "daemon/request/prompt",
		"daemon/request/record", "daemon/request/route",
		"daemon/request/sagemaker",
		"daemon/request/session", "daemon/request/waiting", "daemon/transport/gate", "daemon/transport/upstream",
	},
	"daemon/request/journal": { // log lines and counters of requests
		"cache/parts/seldom", "daemon/fleet/judge", "daemon/fleet/worker", "daemon/request/epoch",
		"daemon/request/message",
		"daemon/request/names", "daemon/request/record", "daemon/request/route", "daemon/transport/gate",
	},
	"daemon/request/message": { // what client and router say to each other
		"cache/parts/linked", "daemon/fleet/worker", "daemon/request/account", "daemon/request/epoch", "daemon/request/overflow",
		"daemon/request/pair", "daemon/request/prompt", "daemon/request/record", "daemon/request/sagemaker",
		"daemon/request/session", "daemon/transport/gate", "daemon/transport/upstream",
	},
	"daemon/request/breaks":   {"cache/parts/recent", "daemon/request/prompt"},
	"daemon/request/identity": {"cache/parts/recent", "daemon/transport/upstream"},
	"daemon/request/relocate": {
		"cache/parts/linked", "daemon/request/session", "daemon/transport/gate", "daemon/transport/upstream", "sdk/abi",
	},
	"daemon/request/ledger":   {"cache/parts/goredis", "cache/tier", "daemon/request/limit"},
	"daemon/request/limit":    {},
	"daemon/request/jsonwalk": {},
	"daemon/request/names":    {"cache/parts/recent", "daemon/request/jsonwalk", "daemon/request/rewrite"},
	"daemon/request/overflow": {"daemon/request/account"},
	"daemon/request/pair":     {"daemon/request/jsonwalk", "daemon/request/prompt", "daemon/request/rewrite"},
	"daemon/request/prompt":   {"daemon/request/jsonwalk", "daemon/request/sse", "sdk/abi"},
	"daemon/request/queue":    {"cache/parts/linked", "cache/parts/pile"},
	"daemon/request/resume":   {"daemon/request/prompt", "daemon/request/sse"},
	"daemon/request/rewrite":  {"daemon/request/sse"},
	"daemon/request/record": {
		"daemon/request/prompt", "daemon/transport/jsonline", "daemon/transport/packed", "sdk/abi",
	},
	"daemon/request/route": {
		"cache/holdings", "cache/lmcache", "cache/parts/recent", "cache/prefix", "daemon/fleet/judge", "daemon/fleet/worker",
		"daemon/request/breaks",
		"daemon/request/identity", "daemon/request/prompt", "daemon/request/queue", "daemon/request/record",
		"daemon/request/relocate", "daemon/request/session", "host", "sdk/abi", "sdk/score",
	},
	"daemon/request/sagemaker": {"daemon/request/jsonwalk"},
	"daemon/request/session":   {},
	"daemon/request/sessionapi": {
		"cache/parts/seldom", "daemon/fleet/worker", "daemon/request/epoch", "daemon/request/exchange",
		"daemon/request/message", "daemon/request/sagemaker",
		"daemon/request/session",
		"daemon/transport/upstream",
	},
	"daemon/request/sse":     {},
	"daemon/request/waiting": {"daemon/request/queue"},
	"daemon/request/tokens":  {"cache/parts/breaker", "cache/parts/seldom", "daemon/request/prompt", "daemon/request/sse"},

	// Bytes on sockets.
	"daemon/transport":             {},
	"daemon/transport/certificate": {},
	"daemon/transport/direct":      {}, // clients that ask workers
	"daemon/transport/gate":        {},
	"daemon/transport/inflate":     {},
	"daemon/transport/jsonline":    {},
	"daemon/transport/listen":      {"cache/parts/seldom", "daemon/transport/certificate", "daemon/transport/socket"},
	"daemon/transport/packed":      {},
	"daemon/transport/socket":      {},
	"daemon/transport/spool":       {},
	"daemon/transport/upstream":    {"daemon/transport/socket"},

	// The workers.
	"daemon/fleet":                    {},
	"daemon/fleet/adapters":           {"daemon/fleet/worker"},
	"daemon/fleet/discover":           {"daemon/fleet/discover/endpoints"},
	"daemon/fleet/discover/endpoints": {"daemon/transport/direct"},
	"daemon/fleet/feed": {
		"cache/parts/bind", "cache/parts/blocks", "cache/holdings", "cache/kvevents", "cache/parts/seldom",
		"cache/zmtp", "daemon/fleet/worker",
		"daemon/transport/direct", "sdk/abi",
	},
	"daemon/fleet/probe":   {"cache/parts/quota", "daemon/fleet/worker", "daemon/transport/direct"}, // worker: whose Page it reads
	"daemon/fleet/subset":  {"daemon/fleet/labels", "daemon/fleet/worker"},                          // worker: whose Spec and Stats it chooses by
	"daemon/fleet/wake":    {"daemon/transport/direct"},
	"daemon/fleet/judge":   {},
	"daemon/fleet/labels":  {},
	"daemon/fleet/measure": {"sdk/abi"},
	"daemon/fleet/models":  {"sdk/abi"},
	"daemon/fleet/order":   {"cache/parts/pile", "sdk/abi"},
	"daemon/fleet/worker": {
		"cache/parts/linked", "cache/prefix", "daemon/fleet/judge", "daemon/fleet/labels", "daemon/fleet/measure",
		"daemon/fleet/models", "daemon/fleet/order", "sdk/abi",
	},

	// Other routers.
	"daemon/peers": {"cache/parts/goredis", "cache/tier", "daemon/fleet/worker", "daemon/request/prompt", "daemon/request/route"},

	// The workers' KV cache: a store, and the listeners in front of it.
	"daemon/kv":          {},
	"daemon/kv/hyperpod": {"cache/parts/bind", "cache/kvstore", "cache/parts/seldom", "cache/parts/webpage", "daemon/transport/listen"},
	"daemon/kv/kvcache": {
		"cache/parts/bind", "cache/parts/goredis", "cache/kvstore/...", "daemon/fleet/discover",
		"daemon/kv/hyperpod", "daemon/kv/resp",
		"daemon/transport/certificate",
	},
	"daemon/kv/resp": {"cache/parts/bind", "cache/kvstore", "cache/parts/quota", "cache/parts/seldom", "daemon/transport/socket"},

	// Operators.
	"daemon/admin": {},
	"daemon/admin/decisions": {
		"daemon/request/exchange", "daemon/request/journal", "daemon/request/message", "daemon/request/record",
		"daemon/request/route", "daemon/transport/gate",
	},
	"daemon/admin/metrics": {
		"cache/holdings", "cache/kvevents", "cache/kvstore/remote", "cache/lmcache", "cache/tier",
		"daemon/admin/readiness", "daemon/admin/strategies", "daemon/admin/timeline", "daemon/admin/tracing",
		"daemon/fleet/feed", "daemon/fleet/judge", "daemon/fleet/worker", "daemon/kv/kvcache", "daemon/peers",
		"daemon/request/account", "daemon/request/epoch", "daemon/request/front", "daemon/request/journal",
		"daemon/request/ledger", "daemon/request/limit", "daemon/request/message", "daemon/request/route",
		"daemon/request/session", "daemon/request/waiting", "daemon/transport/certificate", "host",
	},
	"daemon/admin/operator": {
		"cache/holdings", "cache/kvstore", "cache/kvstore/chunks", "cache/kvstore/remote", "cache/lmcache",
		"cache/parts/bind", "cache/tier", "daemon/admin/decisions", "daemon/admin/metrics", "daemon/admin/readiness",
		"daemon/admin/register", "daemon/admin/strategies", "daemon/admin/timeline", "daemon/admin/tracing",
		"daemon/fleet/subset", "daemon/fleet/worker", "daemon/kv/kvcache", "daemon/peers", "daemon/request/epoch",
		"daemon/request/front", "daemon/request/ledger", "daemon/request/limit", "daemon/request/message",
		"daemon/request/route", "daemon/request/session", "daemon/request/waiting", "daemon/transport/certificate",
		"daemon/transport/gate", "host",
	},
	"daemon/admin/readiness": {
		"daemon/admin/strategies", "daemon/fleet/feed", "daemon/fleet/subset", "daemon/fleet/worker",
		"daemon/request/epoch", "daemon/request/route", "daemon/request/waiting",
	},
	"daemon/admin/readiness/readinesstest": {
		"cache/tier", "daemon/admin/readiness", "daemon/fleet/watchtest", "daemon/fleet/worker",
		"daemon/request/route", "daemon/request/session",
	},
	"daemon/admin/strategies": {
		"cache/parts/bounded", "conf", "daemon/request/epoch", "daemon/request/exchange", "daemon/request/message",
		"daemon/request/route",
		"daemon/transport/gate",
		"daemon/transport/upstream", "daemon/admin/registry", "host", "plugins", "sdk/abi",
	},
	"daemon/admin/register": {"conf"}, // workers that registered
	"daemon/admin/registry": {"conf"}, // modules from container registries
	"daemon/admin/timeline": {},
	"daemon/admin/tracing":  {"daemon/request/exchange", "daemon/request/message", "daemon/transport/gate"},
	"daemon/admin/unit":     {},

	// The command line.
	"daemon/cli": {
		"cache/...", "conf", "daemon", "daemon/admin/decisions", "daemon/admin/metrics", "daemon/admin/operator",
		"daemon/admin/readiness", "daemon/admin/registry",
		"daemon/admin/strategies", "daemon/admin/unit", "daemon/cli/redecide", "daemon/cli/scaffold",
		"daemon/kv/kvcache", "daemon/lab/commands", "daemon/lab/vllmsim", "daemon/request/pair", "daemon/request/prompt",
		"daemon/transport/direct", "daemon/transport/spool", "host", "plugins", "sdk", "sdk/abi",
	},
	"daemon/cli/redecide": {"daemon/fleet/worker", "daemon/transport/packed", "host", "sdk/abi", "sdk/score"},
	"daemon/cli/scaffold": {"sdk", "sdk/abi"},

	// Simulated users, workers and services. The lab runs the code that serves.
	"daemon/lab": {"daemon/lab/...", "daemon/request/queue", "daemon/request/route"},
	"daemon/lab/commands": {
		"daemon/lab", "daemon/lab/peers", "daemon/lab/replay", "daemon/lab/report", "daemon/lab/setup", "daemon/lab/vllmsim",
		"daemon/lab/vllmsim/events", "daemon/lab/vllmsim/lmworker",
	},
	"daemon/lab/certtest":  {},
	"daemon/lab/dnstest":   {},
	"daemon/lab/lendtest":  {},
	"daemon/lab/logtest":   {},
	"daemon/lab/otlptest":  {},
	"daemon/lab/peers":     {"daemon/lab/trial", "sdk/abi"},
	"daemon/lab/porttest":  {},
	"daemon/lab/pyvenv":    {},
	"daemon/lab/redistest": {"daemon/lab/certtest", "daemon/lab/porttest"},
	"daemon/lab/replay":    {"sdk/abi"},
	"daemon/lab/report":    {"daemon/lab/trial"},
	"daemon/lab/served": {
		"cache/parts/blocks", "cache/holdings", "cache/tier", "daemon/fleet/judge", "daemon/fleet/subset",
		"daemon/fleet/worker", "daemon/lab/...",
		"daemon/lab/vllmsim/engine",
		"daemon/peers", "daemon/request/prompt", "daemon/request/queue", "daemon/request/relocate",
		"daemon/request/route",
		"daemon/request/session",
		"host", "plugins", "sdk", "sdk/abi",
	},
	"daemon/lab/setup":          {"daemon/lab/traffic", "daemon/lab/vllmsim/engine", "daemon/lab/world"},
	"daemon/lab/toolchains":     {"daemon/lab/pyvenv"},
	"daemon/lab/traffic":        {"daemon/lab/replay", "daemon/lab/vllmsim/engine"},
	"daemon/lab/trial":          {}, // the contract between rules and the lab
	"daemon/lab/vllmsim":        {"daemon/lab/vllmsim/engine", "daemon/lab/vllmsim/events", "daemon/lab/vllmsim/lmworker"},
	"daemon/lab/vllmsim/engine": {"sdk/abi"},
	"daemon/lab/vllmsim/events": {
		"cache/zmtp", "daemon/lab/vllmsim/engine", "daemon/lab/vllmsim/msgpack", "daemon/lab/zmqpub",
	},
	"daemon/lab/vllmsim/lmworker": {"cache/zmtp", "daemon/lab/vllmsim/engine", "daemon/lab/vllmsim/msgpack"},
	"daemon/lab/vllmsim/msgpack":  {},
	"daemon/lab/waittest":         {},
	"daemon/lab/wasmtest":         {},
	"daemon/lab/zmqpub":           {"cache/parts/bounded", "cache/zmtp"},
	"daemon/lab/world":            {"daemon/lab/traffic", "daemon/lab/trial", "daemon/lab/vllmsim/engine"},

	// The sandbox.
	"host":       {"host/meter", "sdk/abi"},
	"host/meter": {},

	// The index, the stores, and the wires of LMCache and KV events.
	"cache/parts":           {},
	"cache/parts/bind":      {}, // who makes the sockets of a port
	"cache/parts/blocks":    {}, // what a worker reports of its KV cache
	"cache/parts/bounded":   {}, // a queue that loses what it has no room for
	"cache/parts/breaker":   {},
	"cache/parts/goredis":   {},
	"cache/holdings":        {"cache/parts/blocks", "cache/parts/linked", "cache/prefix"},
	"cache/kvevents":        {"cache/parts/blocks", "cache/parts/bounded", "cache/parts/quota", "cache/zmtp"},
	"cache/kvstore":         {"cache/parts/bounded", "cache/parts/pile", "cache/kvstore/..."},
	"cache/kvstore/arena":   {},
	"cache/kvstore/catalog": {"cache/parts/linked"},
	"cache/kvstore/chunks":  {},
	"cache/kvstore/evict":   {},
	"cache/kvstore/remote": {
		"cache/parts/bounded", "cache/parts/breaker", "cache/parts/goredis", "cache/kvstore", "cache/kvstore/chunks",
		"cache/parts/recent",
		"cache/parts/seldom",
	},
	"cache/kvstore/spill": {"cache/parts/bounded", "cache/kvstore", "cache/kvstore/catalog", "cache/parts/seldom"},
	"cache/lmcache": {
		"cache/kvstore/chunks", "cache/parts/bind", "cache/parts/quota", "cache/parts/seldom", "cache/parts/webpage",
		"cache/zmtp",
	},
	"cache/prefix":        {"sdk/abi"},
	"cache/parts/linked":  {},
	"cache/parts/pile":    {},
	"cache/parts/quota":   {},
	"cache/parts/recent":  {},
	"cache/parts/seldom":  {},
	"cache/tier":          {"cache/parts/bounded", "cache/parts/breaker", "cache/parts/goredis", "cache/parts/pile", "sdk/abi"},
	"cache/parts/webpage": {},
	"cache/zmtp":          {"cache/parts/bind", "cache/parts/quota"},

	// The configuration.
	"conf": {},

	// Strategies: of each built-in see init.
	"docs/strategies":  {"sdk", "sdk/abi"}, // what authors copy
	"plugins":          {"plugins/...", "sdk"},
	"plugins/internal": {"sdk"},

	// What a strategy imports.
	"sdk":          {"sdk/abi", "sdk/internal/..."},
	"sdk/abi":      {},
	"sdk/internal": {"sdk/abi"},
	"sdk/score":    {"sdk", "sdk/abi"},
	"sdk/sdktest":  {"sdk", "sdk/abi", "sdk/internal/..."},
}

// A built-in is its folder and one row in plugins.go: this table is made of those rows, and make reads them.
func init() {
	for _, name := range plugins.Names() {
		arrows["plugins/"+name] = []string{"plugins/internal/...", "sdk", "sdk/abi", "sdk/score"}
	}
}

// wing returns the wing of a package below daemon.
func wing(rel string) (name string, ok bool) {
	if rel == "daemon" {
		return ".", true
	}
	below, ok := strings.CutPrefix(rel, "daemon/")
	name, _, _ = strings.Cut(below, "/")
	return name, ok
}

// TestWings: a wing imports only the wings that it may, and has a doc.go of a screen and a half.
func TestWings(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range goList(t, nil, "./daemon/...") {
		from, _ := wing(strings.TrimPrefix(p.ImportPath, module+"/"))
		seen[from] = true
		may, known := wings[from]
		if !known {
			t.Errorf("%s is in no wing: give it a row in wings, or another place", p.ImportPath)
		}
		for _, imp := range p.Imports {
			to, ok := wing(strings.TrimPrefix(imp, module+"/"))
			if ok && to != from && !slices.Contains(may, to) {
				t.Errorf("%s imports %s: wing %s may import %v", p.ImportPath, imp, from, may)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wings)) {
		if !seen[name] {
			t.Errorf("wings[%q]: there is no such folder: delete the row", name)
		}
		if text, err := os.ReadFile(path.Join("daemon", name, "doc.go")); name != "warmpath" && err != nil {
			t.Error(err)
		} else if n := strings.Count(string(text), "\n"); n > maxWingDoc {
			t.Errorf("daemon/%s/doc.go has %d lines; at most %d", name, n, maxWingDoc)
		}
	}
}

// maxWingDoc is a screen and a half.
const maxWingDoc = 80

// TestClientsAreDirect: whoever asks workers follows no redirect and uses no proxy, as daemon/transport/direct makes the
// clients of net/http. The commands of operators ask a router, with the environment's proxy.
func TestClientsAreDirect(t *testing.T) {
	may := []string{"daemon/transport/direct/direct.go", "daemon/cli/admin.go", "daemon/cli/demo.go",
		"daemon/admin/registry/pull.go"} // which follows a registry to its storage
	of := []string{"Client", "DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm", "ProxyFromEnvironment"}
	sources(t, func(file string, set *token.FileSet, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "daemon/lab/") || strings.Contains("/"+file, "/testdata/") ||
			slices.Contains(may, file) {
			return
		}
		types := map[ast.Node]bool{} // a pointer to a client makes none
		ast.Inspect(f, func(n ast.Node) bool {
			if star, is := n.(*ast.StarExpr); is {
				types[star.X] = true
			}
			x, is := n.(*ast.SelectorExpr)
			if !is || types[n] || !slices.Contains(of, x.Sel.Name) {
				return true
			}
			if from, is := x.X.(*ast.Ident); is && from.Name == "http" {
				t.Errorf("%s: http.%s: have direct.Client make the client", set.Position(n.Pos()), x.Sel.Name)
			}
			return true
		})
	})
}
