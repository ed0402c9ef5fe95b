package conf

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const changing = `[server]
log_level = "info"
cors_origins = ["*"]
[[keys]]
name = "app"
file = "app.key"
[[pools]]
name = "a"
models = ["a"]
[[pools.workers]]
id = "w1"
url = "http://127.0.0.1:1"
[[pools]]
name = "b"
models = ["b"]
[[pools.workers]]
url = "http://127.0.0.1:2"
[strategies.prefixaware]
options = { spread = 2.0 }
`

func TestChanges(t *testing.T) {
	dir := t.TempDir()
	load := func(toml, key string) *Config {
		t.Helper()
		for name, text := range map[string]string{"x.toml": toml, "app.key": key} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, err := Load(filepath.Join(dir, "x.toml"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := load(changing, "a-first-key")
	f := func(old, replacement string, want ...string) {
		t.Helper()
		text := strings.Replace(changing, old, replacement, 1)
		if old != "" && text == changing {
			t.Fatalf("%q is not in the file", old)
		}
		if got := Changes(before, load(text, "a-first-key")); !slices.Equal(got, want) {
			t.Errorf("%q -> %q: got %q, want %q", old, replacement, got, want)
		}
	}
	f("", "")
	f("\n[[pools]]", "\n\n# a comment\n[[pools]]")
	f(`"info"`, `"debug"`, "server.log_level")
	f(`cors_origins = ["*"]`, `cors_origins = []`, "server.cors_origins")
	f(`"http://127.0.0.1:1"`, `"http://127.0.0.1:3"`, "pools.a.workers.w1.url", "pools.a.workers.w1.metrics_url")
	f(`id = "w1"`, `id = "w2"`, "pools.a.workers.w1 (gone)", "pools.a.workers.w2 (new)")
	f(`models = ["a"]`, "models = [\"a\"]\nstrategy = \"session\"\nheader_timeout = \"9s\"", "pools.a.strategy", "pools.a.header_timeout")
	f(`name = "b"`, `name = "c"`, "pools.b (gone)", "pools.c (new)")
	f("spread = 2.0", "spread = 3.0", "strategies.prefixaware.options")
	f("[strategies.prefixaware]\noptions = { spread = 2.0 }\n", "", "strategies.prefixaware (gone)")
	first, second, _ := strings.Cut(changing, "[[pools]]\nname = \"b\"")
	second, _, _ = strings.Cut(second, "[strategies")
	_, a, _ := strings.Cut(first, "[[pools]]")
	f("[[pools]]"+a+"[[pools]]\nname = \"b\""+second, "[[pools]]\nname = \"b\""+second+"[[pools]]"+a, "pools (order)")
	if got, want := Changes(before, load(changing, "a-second-key")), []string{"contents of " + filepath.Join(dir, "app.key")}; !slices.Equal(got, want) {
		t.Errorf("another key in the file: got %q, want %q", got, want)
	}
}

// withWorker parses a document that lacks nothing but a pool with a worker.
func withWorker(t *testing.T, doc string) *Config {
	t.Helper()
	c, err := Parse([]byte(doc+"\n[[pools]]\nworkers = [{url = 'http://a'}]"), "x.toml")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What a field's tag promises is what differs at a reload; see daemon's reload.
func TestNeedRestart(t *testing.T) {
	parse := func(doc string) *Config { t.Helper(); return withWorker(t, doc) }
	before := parse("")
	f := func(doc string, want ...string) {
		t.Helper()
		if got := NeedRestart(before, parse(doc)); !slices.Equal(got, want) {
			t.Errorf("%q: got %q; want %q", doc, got, want)
		}
	}
	f("")
	f("[server]\nlog_level = 'debug'\nmax_in_flight = 5\nexplain_log = 'all'\ncors_origins = []\n[sessions]\nidentity = ['X']")
	f("[server]\nread_timeout = '1m'\nlog_level = 'debug'\nlisten = ':1'", "server.listen", "server.read_timeout")
	f("[cache]\nredis = 'redis://h:1'\nmax_bytes = 99999999\ntimeout = '9ms'", "cache.redis", "cache.max_bytes", "cache.timeout")
	f("[sessions]\nlife = '1h'\nttl = '1h'", "sessions.life", "sessions.ttl")
	if got := Changes(before, parse("[server]\nexplain_log = 0.5")); !slices.Equal(got, []string{"server.explain_log"}) {
		t.Errorf("changes = %q", got)
	}
}

// TestInForce: what is in force differs from the file in the keys that need a restart, and from the start in the others.
func TestInForce(t *testing.T) {
	parse := func(doc string) *Config { t.Helper(); return withWorker(t, doc) }
	start := parse("[server]\nidle_timeout = '7s'")
	file := parse("[server]\nidle_timeout = '8s'\nexplain_log = 'all'\n[cache]\nmax_bytes = 99999999\n[sessions]\nlife = '1h'")
	got := InForce(start, file)
	if changed, want := Changes(file, got), NeedRestart(start, file); !slices.Equal(changed, want) || len(want) != 3 {
		t.Errorf("what is in force differs from the file in %q; want %q", changed, want)
	}
	if changed := Changes(start, got); !slices.Equal(changed, []string{"server.explain_log"}) {
		t.Errorf("what is in force differs from the start in %q; want server.explain_log", changed)
	}
	if file.Server.IdleTimeout != 8*time.Second {
		t.Error("the file's configuration was changed")
	}
}

func TestStrategyProblemNamesTheLine(t *testing.T) {
	c, err := Parse([]byte(strings.Replace(changing, "[[keys]]\nname = \"app\"\nfile = \"app.key\"\n", "", 1)), "x.toml")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.StrategyProblem(&c.Pools[0], "it fails").Error(), `conf: x.toml:15: strategies.prefixaware: pool "a": it fails`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	c.Pools[1].Strategy = Chain{"roundrobin"}
	if got, want := c.StrategyProblem(&c.Pools[1], "it fails").Error(), `conf: x.toml:10: pools[1].strategy: pool "b": it fails`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An option that the strategy does not know has its own line, and the nearest of those that it knows.
func TestProblemOfAnOption(t *testing.T) {
	c, err := Parse([]byte("[[pools]]\nname = \"a\"\nmodels = [\"a\"]\nworkers = [{ url = \"http://h:1\" }]\n[pools.options]\neech = 1\n"+
		"[[pools]]\nname = \"b\"\nmodels = [\"b\"]\nstrategy = \"session\"\nworkers = [{ url = \"http://h:2\" }]\n"+
		"[strategies.session.options]\neach = 2\n"), "x.toml")
	if err != nil {
		t.Fatal(err)
	}
	f := func(pool int, what, want string) {
		t.Helper()
		if got := c.StrategyProblem(&c.Pools[pool], what).Error(); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", what, got, want)
		}
	}
	const host = `host: module "m": wp_configure answers errno -3 (it says "sdk: unknown option \"%s\"; the strategy knows each half")`
	f(0, fmt.Sprintf(host, "eech"),
		`conf: x.toml:6: pools[0].options.eech: the strategy prefixaware of pool "a" has no such option; did you mean "each"?`)
	f(0, fmt.Sprintf(host, "nothing_like_it"), `conf: x.toml:12: strategies.prefixaware.options.nothing_like_it: `+
		`the strategy prefixaware of pool "a" has no such option; known here: each, half`)
	f(1, `sdk: unknown option "each"; the strategy has no options; remove it`,
		`conf: x.toml:13: strategies.session.options.each: the strategy session of pool "b" has no such option; `+
			`remove it: the strategy has none`)
}
