package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/testdata/rig"
)

const (
	modules = "testdata/modules"
	allowKV = "allow = [\"kv\"]\n"
)

// fault is a module of testdata/modules that fails in its picks.
type fault struct{ name, endedBy string }

// faultRows are the table of such modules in its README.md.
var faultRows = regexp.MustCompile("(?m)^\\| `([a-z_]+)\\.wat` \\| [^|]+ \\| ([a-z_]+) \\|$")

// faultsOf reads the table.
func faultsOf(readme string) (all []fault) {
	for _, row := range faultRows.FindAllStringSubmatch(readme, -1) {
		all = append(all, fault{row[1], row[2]})
	}
	return all
}

// harmless are the modules of testdata/modules that say what is not so and are not set aside.
var harmless = []string{"order", "reject_forged", "frame_moves", "frame_shrinks"}

// refused are modules that a running daemon is told to load, and the words with which it refuses them.
var refused = map[string]string{
	"start":      "out of",
	"initialize": "out of",
	"refuel":     "names global",
	"sections":   "the limit is 67108864",
}

// attackByModules has a daemon with two other pools serve each faulty module of testdata/modules, and load each of
// those that are refused. What stands in the log is judged, too: pool, request, what ended the pick, and the remedy.
func attackByModules(l *lab) error {
	readme, err := os.ReadFile(filepath.Join(modules, "README.md"))
	if err != nil {
		return err
	}
	for _, f := range faultsOf(string(readme)) {
		l.way(f.name, func() (bool, string) {
			return byModule(l, f.name, disturbance{keys: allowKV, logged: f.logged()})
		})
	}
	for _, name := range harmless {
		l.way(name, func() (bool, string) { return byModule(l, name, disturbance{lies: true}) })
	}
	for name, words := range inOrder(refused) {
		l.way("load-"+name, func() (bool, string) { return loadedByOthers(l, name, words) })
		l.way("reload-"+name, func() (bool, string) { return refusedAgain(l, name, words) })
	}
	return nil
}

// logged is what the log must have of a fault: the pool and the request, what ended the pick, what to change, and that
// the strategy is set aside.
func (f fault) logged() []string {
	all := []string{"pool=bad id=", "set aside after errors"}
	switch f.endedBy {
	case "fuel": // or time, where the processor is slow at it
		return append(all, "make it shorter or raise ")
	case "memory":
		return append(all, "raise memory_mb")
	}
	return append(all, "reason="+f.endedBy)
}

// byModule is neighbour with a module of testdata/modules.
func byModule(l *lab, name string, what disturbance) (bool, string) {
	text, err := os.ReadFile(filepath.Join(modules, name+".wat"))
	if err != nil {
		return false, err.Error()
	}
	what.module = string(text)
	return neighbour(l, what)
}

var modulePath = regexp.MustCompile(`path = ".*"`)

// loadedByOthers is neighbour where no pick fails: in each part the configuration is changed to name another module,
// and back. That module is refused in the second part and well in the others: any load takes the processor from
// requests for some milliseconds, and a refused one must take no more than that.
func loadedByOthers(l *lab, name, words string) (bool, string) {
	refused, err := refusedModule(l, name)
	if err != nil {
		return false, err.Error()
	}
	well, err := l.strategy(module("", "i64.const 1"))
	if err != nil {
		return false, err.Error()
	}
	return neighbour(l, disturbance{
		module: module("", "i64.const 0"),
		logged: []string{"reload refused", words},
		during: func(d *rig.Proc, r rig.Router, part int) func() {
			path, other := well, r
			if part == 1 {
				path = refused
			}
			other.Strategies = modulePath.ReplaceAllLiteralString(r.Strategies, fmt.Sprintf("path = %q", path))
			if other.Rewrite(d) == nil {
				d.Signal(syscall.SIGHUP)
			}
			return func() {
				_ = r.Rewrite(d)
				time.Sleep(time.Second) // until the daemon has seen it: loading it again belongs to no part
			}
		},
	})
}

// refusedAgain has a running daemon refuse the same module time after time. The first take what loads need, which
// the daemon keeps for a while; those after them must leave nothing.
func refusedAgain(l *lab, name, words string) (bool, string) {
	const first, more = 20, 40
	refused, err := refusedModule(l, name)
	if err != nil {
		return false, err.Error()
	}
	d, r, err := l.threePools(disturbance{module: module("", "i64.const 0")})
	if err != nil {
		return false, err.Error()
	}
	r.Strategies = modulePath.ReplaceAllLiteralString(r.Strategies, fmt.Sprintf("path = %q", refused))
	if err := r.Rewrite(d); err != nil {
		return false, err.Error()
	}
	tried := func() int { return strings.Count(d.Log(1<<20), "reload refused") }
	load := func(times int) bool {
		for range times {
			was := tried()
			d.Signal(syscall.SIGHUP)
			if !rig.Eventually(12*time.Second, func() bool { return tried() > was }) {
				return false
			}
		}
		return true
	}
	ok := load(first)
	time.Sleep(time.Second) // the daemon collects its garbage half a second behind a load
	was := d.RSS()
	ok = load(more) && ok
	flat, seen := grown(d, was, 128<<20, fmt.Sprintf("refused %d times and %d times more", first, more))
	named, trouble := d.Logged(words), l.end(d)
	return ok && flat && named && trouble == "", fmt.Sprintf("%s; each refused by name %v %s", seen, ok && named, trouble)
}

// refusedModule writes a module that is refused to a file.
func refusedModule(l *lab, name string) (path string, err error) {
	if name != "sections" {
		text, err := os.ReadFile(filepath.Join(modules, name+".wat"))
		if err != nil {
			return "", err
		}
		return l.strategy(string(text))
	}
	wasm, err := wasmtest.Assemble(module("", "i64.const 0"))
	if err != nil {
		return "", err
	}
	path = filepath.Join(l.dir, "sections.wasm")
	return path, os.WriteFile(path, bytes.Join([][]byte{wasm, sections(100_000_000)}, nil), 0o600)
}

// sections is a custom section of n bytes.
func sections(n int) []byte {
	b := binary.AppendUvarint([]byte{0}, uint64(n))
	return append(append(b, 1, 'x'), strings.Repeat("\x00", n-2)...)
}
