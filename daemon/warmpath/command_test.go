package main

import (
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/warmpath/warmpath/conf"
)

// settings are a smallest file on free ports, with a worker that is not there.
const settings = `[server]
listen = "127.0.0.1:0"
admin = "127.0.0.1:0"
[[pools]]
strategy = "roundrobin"
[[pools.workers]]
url = "http://127.0.0.1:1"
`

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
	if out := warmpath(t, workplace(t), "version").succeed(); out != "warmpath dev\n" {
		t.Errorf("got %q", out)
	}
}

func TestUsageErrors(t *testing.T) {
	for args, want := range map[string]string{
		"serve --nope":                "unknown flag: --nope",
		"serf":                        `unknown command "serf"`,
		"serve x.toml":                `unknown command "x.toml"`,
		"serve --config missing.toml": "missing.toml",
		"plugin check":                "accepts 1 arg",
		"plugin check missing.wasm":   "missing.wasm",
		"replay x.jsonl":              `required flag(s) "model"`,
		"sim --count 0":               "at least one worker",
	} {
		t.Run(args, func(t *testing.T) {
			p := warmpath(t, workplace(t), args)
			if code := p.end(); code != 1 || !strings.HasPrefix(p.String(), "warmpath: ") || !strings.Contains(p.String(), want) {
				t.Errorf("exit %d, want 1 and %q:\n%s", code, want, p)
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
	p.signal(syscall.SIGHUP) // the file is the same: only the signal reloads
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
