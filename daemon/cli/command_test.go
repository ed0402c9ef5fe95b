package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/plugins"
)

// settings is a minimal file on free ports, with a worker that does not exist.
const settings = `[server]
listen = "127.0.0.1:0"
admin = "127.0.0.1:0"
[[pools]]
strategy = "roundrobin"
[[pools.workers]]
url = "http://127.0.0.1:1"
`

// TestAWrongCommandLine: the error says how the command is written, or where its flags are listed. The exit status is
// 2, and 1 for what went wrong with a command that was understood.
func TestAWrongCommandLine(t *testing.T) {
	for line, want := range map[string]string{
		"drain":                   "accepts 1 arg(s), received 0; write: warmpath drain WORKER [flags]",
		"plugin activate a":       "accepts 2 arg(s), received 1; write: warmpath plugin activate POOL STRATEGY [flags]",
		"check --confg a":         "unknown flag: --confg; see warmpath check --help",
		"plugin build --cnt 1":    "unknown flag: --cnt; see warmpath plugin build --help",
		"statu":                   `unknown command "statu" for "warmpath"; did you mean "status"?`,
		"cache lss":               `unknown command "lss" for "warmpath cache"; did you mean "ls"?`,
		"cache --json lss":        `unknown command "lss" for "warmpath cache"; did you mean "ls"?`,
		"completion nix":          `unknown command "nix" for "warmpath completion"; see warmpath completion --help`,
		"completion bash x":       `unknown command "x" for "warmpath completion bash"; write: warmpath completion bash`,
		"help cach":               `unknown command "cach" for "warmpath"; did you mean "cache"?`,
		"serve a.toml":            `unknown command "a.toml" for "warmpath serve"; did you mean --config a.toml?; write: warmpath serve [flags]`,
		"status host:9":           `unknown command "host:9" for "warmpath status"; did you mean --admin host:9?; write: warmpath status [flags]`,
		"serve -config a.toml":    `unknown command "a.toml" for "warmpath serve"; did you mean --config a.toml?; write: warmpath serve [flags]`,
		"status --token t":        "unknown flag: --token; did you mean --token-file?; see warmpath status --help",
		"drain ":                  "an argument is empty; write: warmpath drain WORKER [flags]",
		"why ":                    "an argument is empty; write: warmpath why ID [flags]",
		"drain a --wait -1s":      "--wait -1s is negative; write how long, as 30s",
		"status -admin host:9":    "unknown shorthand flag: 'a' in -admin; did you mean --admin?; see warmpath status --help",
		"cache --admin host:9":    `unknown command "host:9" for "warmpath cache"; write --admin behind the command: warmpath cache COMMAND --admin host:9`,
		"lab --workers 0":         "--workers 0 is below 1; give 1 or more, or leave it out",
		"top -n -1":               "--looks -1 is negative; give a number of looks, or 0 to go on",
		"check --defaults --json": "--defaults prints TOML, the form of the file; leave --json out",
		"help cache lss":          `unknown command "lss" for "warmpath cache"; did you mean "ls"?`,
	} {
		err := execute(t.Context(), root(), strings.Split(line, " "))
		if _, wrong := errors.AsType[wrongLine](err); !wrong || err.Error() != want {
			t.Errorf("%s: %v; want %s", line, err, want)
		}
	}
	for _, line := range []string{"", "help", "help cache", "cache", "cache --help", "completion", "--version",
		"__complete cache l"} {
		c := root()
		c.SetOut(io.Discard)
		c.SetErr(io.Discard)
		if err := execute(t.Context(), c, strings.Fields(line)); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
	for line, want := range map[string]int{"cache lss": 2, "drain": 2, "check --confg a": 2, "check --config none.toml": 1} {
		if code := warmpath(t, workplace(t), line).end(); code != want {
			t.Errorf("%s: exit %d; want %d", line, code, want)
		}
	}
}

// TestCheckNotes: a strategy that no pool uses is named, and is no problem.
func TestCheckNotes(t *testing.T) {
	t.Parallel()
	dir := workplace(t)
	write(t, filepath.Join(dir, "x.toml"), settings+"[strategies.mine]\npath = \"none.wasm\"\n")
	const says = "no pool uses it, and it was not loaded"
	out := warmpath(t, dir, "check --config x.toml").succeed()
	if !strings.Contains(out, "note: x.toml:8: strategies.mine: "+says) || !strings.Contains(out, "x.toml: ok") {
		t.Errorf("it says %q", out)
	}
	if out = warmpath(t, dir, "check --json --config x.toml").succeed(); !strings.Contains(out, says) {
		t.Errorf("as JSON it says %q", out)
	}
}

func TestCheckJSON(t *testing.T) {
	for _, c := range []struct {
		name, toml string
		code       int
		want       []conf.Problem
		says       string
	}{
		{"good", settings, 0, []conf.Problem{}, ""},
		{"one", strings.Replace(settings, "admin", "Admin", 1), 1, []conf.Problem{
			{File: "x.toml", Line: 3, Key: "server.Admin", What: "unknown key", Remedy: `did you mean "admin"?`}},
			"x.toml: 1 problem\n"},
		{"two", strings.Replace(settings, "url =", "url2 =", 1), 1, []conf.Problem{
			{File: "x.toml", Line: 6, Key: "pools[0].workers[0].url", What: "it is missing", Remedy: "write http://HOST:PORT"},
			{File: "x.toml", Line: 7, Key: "pools[0].workers[0].url2", What: "unknown key", Remedy: `did you mean "url"?`}},
			"x.toml: 2 problems\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := workplace(t)
			write(t, filepath.Join(dir, "x.toml"), c.toml)
			p := warmpath(t, dir, "check --json --config x.toml")
			if code := p.end(); code != c.code {
				t.Errorf("exit %d, want %d", code, c.code)
			}
			var got struct {
				OK       bool
				Problems []conf.Problem
			}
			if err := json.Unmarshal(p.out.Bytes(), &got); err != nil {
				t.Fatalf("%v:\n%s", err, p)
			}
			if got.OK != (c.code == 0) || !slices.Equal(got.Problems, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			if !strings.Contains(p.String(), c.says) {
				t.Errorf("got %q, want it to say %q", p, c.says)
			}
		})
	}
}

func TestCheckText(t *testing.T) {
	dir := workplace(t)
	write(t, filepath.Join(dir, "x.toml"), strings.Replace(settings, "admin", "Admin", 1))
	p := warmpath(t, dir, "check --config x.toml")
	if code := p.end(); code != 1 || !strings.Contains(p.String(), `x.toml:3: server.Admin: unknown key; did you mean "admin"?`) {
		t.Errorf("exit %d:\n%s", code, p)
	}
	write(t, filepath.Join(dir, "x.toml"), strings.Replace(settings, `"roundrobin"`, `"mine"`, 1)+"[strategies.mine]\npath = \"x.toml\"\n")
	p = warmpath(t, dir, "check --config x.toml")
	if code := p.end(); code != 1 || !strings.Contains(p.String(), `"mine"`) {
		t.Errorf("a module that is none: exit %d:\n%s", code, p)
	}
}

// TestCheckRedis: check refuses the URL of a Redis that serve would refuse, and shows nothing of it.
func TestCheckRedis(t *testing.T) {
	f := func(key, toml string) {
		t.Helper()
		dir := workplace(t)
		write(t, filepath.Join(dir, "x.toml"), settings+toml)
		p := warmpath(t, dir, "check --config x.toml")
		if code := p.end(); code != 1 || !strings.Contains(p.String(), ": "+key+": ") || strings.Contains(p.String(), "x.toml: ") ||
			strings.Contains(p.String(), "hidden") {
			t.Errorf("exit %d: %s", code, p)
		}
	}
	f("cache.redis", "[cache]\nredis = 'redis://:hidden@127.0.0.1:1/x'\n")
	f("cache.redis", "[cache]\nredis = 'redis://:hidden@127.0.0.1:1?pool_size=-1'\n")
	f("history.redis", "[history]\nredis = 'redis://:hidden@127.0.0.1:1/x'\n")
	f("kv_cache.l2.url", "[kv_cache]\nresp = '127.0.0.1:1'\n[kv_cache.l2]\nenabled = true\nbackend = 'redis'\n"+
		"url = 'redis://:hidden@127.0.0.1:1/x'\n")
}

func TestCheckDefaults(t *testing.T) {
	out := warmpath(t, workplace(t), "check --defaults").succeed()
	c, err := conf.Parse([]byte(out), "defaults.toml")
	if err != nil {
		t.Fatal(err)
	}
	if c.Server.Listen != "127.0.0.1:8080" || len(c.Pools) != 1 {
		t.Errorf("got %+v", c)
	}
}

func TestVersion(t *testing.T) {
	for _, args := range []string{"version", "--version"} {
		if out := warmpath(t, workplace(t), args).succeed(); out != "warmpath dev\n" {
			t.Errorf("%s: got %q", args, out)
		}
	}
	var got map[string]string
	if err := json.Unmarshal([]byte(warmpath(t, workplace(t), "version --json").succeed()), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"version": "dev", "go_version": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestServeLogsInJSON: durations are words, and the first line names the version and the configuration.
func TestServeLogsInJSON(t *testing.T) {
	dir := workplace(t)
	write(t, filepath.Join(dir, "warmpath.toml"), strings.Replace(settings, "[server]", "[server]\nlog_format = \"json\"\ndrain_timeout = \"90s\"", 1))
	p := warmpath(t, dir, "serve")
	p.says(`"msg":"serving"`, 1)
	p.stop()
	for _, want := range []string{`"version":"dev"`, fmt.Sprintf(`"pid":%d`, p.cmd.Process.Pid), `"tls":false`, `"strategies":["pool1: roundrobin `, `"timeout":"1m30s"`} {
		if !strings.Contains(p.String(), want) {
			t.Errorf("want %s in\n%s", want, p)
		}
	}
}

// TestModuleErrorsHaveALine as all other errors of the file have.
func TestModuleErrorsHaveALine(t *testing.T) {
	dir := workplace(t)
	write(t, filepath.Join(dir, "x.toml"), strings.Replace(settings, `"roundrobin"`, `"mine"`, 1)+"[strategies.mine]\npath = \"x.toml\"\n")
	if p := warmpath(t, dir, "check --config x.toml"); p.end() != 1 || !strings.Contains(p.String(), `x.toml:8: strategies.mine: pool "pool1": `) {
		t.Errorf("want the line of [strategies.mine] in\n%s", p)
	}
	p := warmpath(t, dir, "check --json --config x.toml")
	p.end()
	var got struct{ Problems []conf.Problem }
	if err := json.Unmarshal(p.out.Bytes(), &got); err != nil || len(got.Problems) != 1 || got.Problems[0].Line != 8 || got.Problems[0].Key != "strategies.mine" {
		t.Errorf("%v: %+v; want one problem of strategies.mine in line 8", err, got)
	}
}

// TestPluginCheckShowsTheModule: what it exports and imports, and whether its memory grows.
func TestPluginCheckShowsTheModule(t *testing.T) {
	t.Parallel()
	dir := workplace(t)
	wasm, err := plugins.Builtin("roundrobin")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "mine.wasm"), string(wasm))
	var got pluginReport
	if err := json.Unmarshal([]byte(warmpath(t, dir, "plugin check --json mine.wasm").succeed()), &got); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(got.Exports, "wp_pick") || !slices.Contains(got.Imports, "wasi_snapshot_preview1.fd_write") ||
		got.MemoryBytes < 64<<10 || got.MemoryAfter < got.MemoryBytes || got.MemoryAfter > uint64(got.MemoryLimit) || got.Decisions < 1000 {
		t.Errorf("got %+v; want exports, imports and the memory before and after some thousand decisions", got)
	}
	out := warmpath(t, dir, "plugin check mine.wasm").succeed()
	for _, want := range []string{"\n  exports          ", " wp_pick", "\n  imports          ", "wasi_snapshot_preview1.", " KiB after "} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
}

// The command names an author's omissions with their remedies, and takes options in the form of the file.
func TestPluginCheckNamesTheRemedy(t *testing.T) {
	t.Parallel()
	dir := workplace(t)
	warmpath(t, dir, "plugin new mine").succeed()
	main := filepath.Join(dir, "mine", "main.go")
	good := read(t, main)
	check := func(args string) *process { return warmpath(t, dir, "plugin check mine/mine.wasm "+args) }
	build := func() { warmpath(t, dir, "plugin build mine").succeed() }
	refused := func(p *process, want string) {
		t.Helper()
		if code := p.end(); code != 1 || !strings.Contains(p.String(), want) {
			t.Errorf("exit %d, want 1 and %q:\n%s", code, want, p)
		}
	}
	build()
	if out := check("--options each=.5 --workers 3").succeed(); !strings.Contains(out, "(3 workers), of") ||
		!strings.Contains(out, "least cost (100 %)") {
		t.Errorf("got\n%s", out)
	}
	write(t, main, `package main

import "github.com/warmpath/warmpath/sdk"

type counts struct{}

func (counts) Route(r *sdk.Request, _ []sdk.Worker) sdk.Decision {
	n, err := sdk.KVAdd("all", 1, 0)
	if err != nil {
		return sdk.Decline
	}
	return sdk.To(0).Because(sdk.ReasonOwn + sdk.Reason(n%2))
}

func init() { sdk.Register(counts{}) }

func main() {}
`)
	build()
	for args, want := range map[string]string{"": "it declines (100 %)", "--allow kv": "reason 256 (50 %), reason 257 (50 %)"} {
		if out := check(args).succeed(); !strings.Contains(out, want) {
			t.Errorf("a strategy that counts in the store, %q: want %q in\n%s", args, want, out)
		}
	}
	write(t, main, good)
	build()
	refused(check("--options each=much"), "each")
	refused(check("--options eech=1"), "eech")
	refused(check("--workers 0"), "0 workers")
	write(t, main, strings.Replace(good, "sdk.Register(&strategy{each: .01})", "", 1))
	build()
	refused(check(""), "sdk.Register in init")
	write(t, main, good)
	launch(t, filepath.Join(dir, "mine"), "go build -o mine.wasm .", "GOOS=wasip1", "GOARCH=wasm").succeed()
	refused(warmpath(t, dir, "plugin check mine/mine.wasm"), "-buildmode=c-shared")
}

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"serve --nope", 2, "unknown flag: --nope"},
		{"serf", 2, `unknown command "serf"`},
		{"serve x.toml", 2, `unknown command "x.toml"`},
		{"serve --config missing.toml", 1, "missing.toml"},
		{"plugin check", 2, "accepts 1 arg"},
		{"plugin check missing.wasm", 1, "missing.wasm"},
		{"replay x.jsonl", 2, `required flag(s) "model"`},
		{"sim --count 0", 1, "at least one worker"},
	} {
		t.Run(c.args, func(t *testing.T) {
			p := warmpath(t, workplace(t), c.args)
			if code := p.end(); code != c.code || !strings.HasPrefix(p.String(), "warmpath: ") ||
				!strings.Contains(p.String(), c.want) {
				t.Errorf("exit %d, want %d and %q:\n%s", code, c.code, c.want, p)
			}
			if p.out.Len() > 0 {
				t.Errorf("an error does not belong on standard output: %q", p.out.String())
			}
		})
	}
}

func TestServeBusyPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, key := range []string{"listen", "admin"} {
		t.Run(key, func(t *testing.T) {
			dir := workplace(t)
			write(t, filepath.Join(dir, "warmpath.toml"),
				strings.Replace(settings, key+` = "127.0.0.1:0"`, fmt.Sprintf("%s = %q", key, l.Addr()), 1))
			p := warmpath(t, dir, "serve")
			if code := p.end(); code != 1 || !strings.Contains(p.String(), "change server."+key+" or free the port") {
				t.Errorf("exit %d, want 1 and the key:\n%s", code, p)
			}
		})
	}
}

func TestServeSignals(t *testing.T) {
	dir := workplace(t)
	file := filepath.Join(dir, "warmpath.toml")
	write(t, file, settings)
	p := warmpath(t, dir, "serve")
	p.says("msg=serving", 1)
	p.signal(syscall.SIGHUP) // the file is unchanged: only the signal reloads
	p.says("msg=reloaded", 1)
	p.signal(syscall.SIGHUP)
	p.says("msg=reloaded", 2)
	write(t, file, strings.Replace(settings, "roundrobin", "roundrobbin", 1))
	p.signal(syscall.SIGHUP)
	p.says("reload refused: the configuration in force stays", 1)
	p.stop()
	if out := p.String(); !strings.Contains(out, "msg=draining") || strings.Count(out, "msg=reloaded") != 2 {
		t.Errorf("got:\n%s", out)
	}
}

func TestInterruptEndsSim(t *testing.T) {
	p := warmpath(t, workplace(t), "sim --listen 127.0.0.1:0 --count 3")
	p.says("http://127.0.0.1:", 3)
	p.signal(syscall.SIGINT)
	p.succeed()
}
