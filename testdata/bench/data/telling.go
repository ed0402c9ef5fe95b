package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/warmpath/warmpath/testdata/rig"
)

// telling is a way of telling what becomes of requests. Its CPU is told over that of another, in the same round.
type telling struct {
	name   string
	server string // lines of [server]; %[1]s is a folder
	tables string // %[2]s is the collector's address
	over   string
	limit  float64 // of the ratio; 0 = none
	beside bool    // by the other build
}

const (
	logged   = "access_log = \"%[1]s/access.log\"\n"
	toldNone = "decisions_bytes = 0\n"
	traced   = "[tracing]\nendpoint = \"http://%[2]s\"\n"
)

// tellings are compared with the one that keeps no record, and with the one whose access log has no candidates.
var tellings = []telling{
	{name: "nothing told", server: toldNone},
	{name: "records", over: "nothing told", limit: 1.03},
	{name: "spans of all", tables: traced, over: "records", limit: 1.03},
	{name: "spans of 1 in 100", tables: traced + "sample = 0.01\n", over: "records", limit: 1.03},
	{name: "access log", server: logged, over: "records"},
	{name: "access log, candidates of all", server: logged + "explain_log = \"all\"\n", over: "access log", limit: 1.1},
	{name: "access log, candidates and spans of all", server: logged + "explain_log = \"all\"\n",
		tables: traced, over: "access log", limit: 1.1},
}

// wantedTellings returns those whose name fits the expression behind "telling/", and what they are told over.
func wantedTellings(only string) ([]telling, bool) {
	expression, ok := strings.CutPrefix(only, "telling")
	if !ok {
		return nil, false
	}
	want, err := regexp.Compile(strings.TrimPrefix(expression, "/"))
	if err != nil {
		return nil, false
	}
	needed := map[string]bool{}
	for _, t := range tellings {
		if want.MatchString(t.name) {
			needed[t.name], needed[t.over] = true, true
		}
	}
	return slices.DeleteFunc(slices.Clone(tellings), func(t telling) bool { return !needed[t.name] }), true
}

// unmeasured is the rounds in which the rings fill: until then each record pays for memory that nobody has touched.
const unmeasured = 4

// emptyLogs empties the access logs, so that the next lines take their memory: a machine that has served for a while
// has no other. Memory that is touched first costs a write seven times as much where a host has to find it.
func (b *bench) emptyLogs() error {
	logs, err := filepath.Glob(filepath.Join(b.dir, "telling*", "access.log"))
	for _, path := range logs {
		err = errors.Join(err, os.Truncate(path, 0))
	}
	return err
}

// withBeside adds the same by the other build, if there is one: only these are told over those of the build itself.
func (b *bench) withBeside(some []telling) []telling {
	if !b.compare {
		return some
	}
	both := slices.Clone(some)
	for _, t := range some {
		t.over, t.limit, t.beside = t.name, 0, true
		t.name += ", beside"
		both = append(both, t)
	}
	return both
}

// printTelling measures what records, spans and the access log cost a request of 1 KB: all in turns.
func (b *bench) printTelling(some []telling) error {
	workers, err := plainWorkers(4)
	if err != nil {
		return err
	}
	collector, err := b.startSelf("collector", "")
	if err != nil {
		return err
	}
	defer collector.Stop()
	some = b.withBeside(some)
	var all []*rig.Proc
	for i, t := range some {
		dir := filepath.Join(b.dir, fmt.Sprint("telling", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		text := func(s string) string { return fmt.Sprintf(s+"%.0[1]s%.0[2]s", dir, collector.Addr) }
		r := rig.Router{Server: text(t.server), Workers: workers, Strategies: text(t.tables)}
		bin := b.bin["warmpath"]
		if t.beside {
			bin = b.bin["beside"]
		}
		p, err := r.Start(dir, bin)
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		defer p.Stop()
		p.Name = t.name
		all = append(all, p)
	}
	const figureName = "telling"
	turn := cpuOf(figureName, 1<<10)
	for round := range unmeasured + 24 {
		if round == unmeasured {
			clear(b.samples)
		}
		for i := range all {
			p := all[(i+round)%len(all)]
			if err := errors.Join(b.emptyLogs(), turn(b, p)); err != nil {
				return err
			}
		}
	}
	out := json.NewEncoder(os.Stdout)
	for _, t := range some {
		f := figure{Name: figureName + "/" + t.name, Unit: "us/request"}
		f.judge(b.samples[[2]string{figureName, t.name}], true)
		if err := out.Encode(f); err != nil {
			return err
		}
		if !slices.ContainsFunc(some, func(o telling) bool { return o.name == t.over }) {
			continue
		}
		f = figure{Name: figureName + "/" + t.name + " over " + t.over, Unit: "ratio"}
		if t.limit > 0 {
			f.Target = &t.limit
		}
		f.judge(b.ratios(figureName, t.name, t.over), true)
		if err := out.Encode(f); err != nil {
			return err
		}
	}
	return nil
}

// serveCollector takes whatever it is sent, at once.
func serveCollector(listen string) error {
	return http.ListenAndServe(listen, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
}
