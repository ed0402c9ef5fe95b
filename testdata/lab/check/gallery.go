package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/warmpath/warmpath/daemon/lab"
	"github.com/warmpath/warmpath/daemon/lab/setup"
)

// rule is a strategy on both sides: a built-in, or a module with its settings.
type rule struct {
	name    string
	path    string // of the module; "" = a built-in
	options string // of the lab, as "part=0.3"
	allow   []string
}

// gallery is the strategies of docs/strategies that are compared by the load of that name.
var gallery = []rule{
	{name: "slo", allow: []string{"headers:x-slo-ttft-ms"}},
	{name: "generations", options: "dearer=1.5"},
	{name: "twochoices"},
	{name: "bounded", allow: []string{"headers:x-user"}},
	{name: "bandit"},
	{name: "arms", options: "part=0.3"},
}

// rulesOf returns what a load compares: the gallery by its own load, else built-ins.
func rulesOf(ctx context.Context, load string, names []string) (all []rule, err error) {
	if load == "gallery" {
		return build(ctx, filepath.Join(".cache", "labcheck"))
	}
	for _, name := range names {
		all = append(all, rule{name: name})
	}
	return all, nil
}

// build compiles the gallery into dir.
func build(ctx context.Context, dir string) (all []rule, err error) {
	for _, r := range gallery {
		r.path = filepath.Join(dir, r.name+".wasm")
		c := exec.CommandContext(ctx, "go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w -buildid=", "-o",
			r.path, "./docs/strategies/"+r.name)
		c.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
		if out, err := c.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
		all = append(all, r)
	}
	return all, nil
}

// find returns the rule as the lab runs it.
func (r *rule) find() ([]lab.Strategy, error) {
	found, err := lab.Find(strings.TrimSpace(cmp.Or(r.path, r.name) + " " + r.options))
	if err == nil && len(r.allow) > 0 {
		found[0].Allow(r.allow)
	}
	return found, err
}

// table is the rule's table of a configuration.
func (r *rule) table() string {
	if r.path == "" {
		return ""
	}
	text := fmt.Sprintf("[strategies.%s]\npath = %q\n", r.name, r.path)
	if len(r.allow) > 0 {
		text += fmt.Sprintf("allow = [%q]\n", r.allow[0])
	}
	if key, value, has := strings.Cut(r.options, "="); has {
		text += fmt.Sprintf("options = { %s = %s }\n", key, value)
	}
	return text
}

// workerLines are what a scenario says of each of its workers, as [[pools.workers]] has it.
func workerLines(sc *setup.Scenario) (each []string) {
	for _, w := range sc.EachKind() {
		text := fmt.Sprintf("cost = %f\n", w.Cost)
		for name, value := range w.Labels {
			text += fmt.Sprintf("labels.%s = %q\n", name, value)
		}
		each = append(each, text)
	}
	return each
}
