package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/testdata/rig"
)

// module is a strategy in text. pick is the body of wp_pick, which is well on fewer than 4 rows and so passes the
// self-test; more are imports, tables and functions.
func module(more, pick string) string {
	return fmt.Sprintf(`(module %s
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64) (local $i i32) (local $x f64)
    i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
    %s)
)`, more, pick)
}

// The strategies that keep within their fuel, or nearly, and take far more time than it stands for, beside those of
// testdata/modules.
var slowPicks = map[string]string{
	// It multiplies denormals, and is never ended: some milliseconds in each pick, by the processor.
	"denormals-in-time": module("", `f64.const 1e-310 local.set $x
    loop local.get $x `+strings.Repeat("f64.const 1.0000001 f64.mul ", 200)+` local.set $x
      local.get $i i32.const 1 i32.add local.tee $i i32.const 300 i32.lt_u br_if 0 end i64.const 0`),
	// It leaves the compiled code for the runtime, and allocates there.
	"ref-func": module("(table 1 funcref) (func $f) (elem (i32.const 0) $f)",
		`loop `+strings.Repeat("ref.func $f drop ", 200)+` br 0 end unreachable`),
}

// kvFlood asks the store for 15,000 keys that nobody has set.
var kvFlood = module(`(import "warmpath_v1" "kv_get" (func $get (param i32 i32 i32 i32) (result i32)))`,
	`loop
      i32.const 64 local.get $i i32.store
      i32.const 64 i32.const 4 i32.const 0 i32.const 0 call $get drop
      local.get $i i32.const 1 i32.add local.tee $i i32.const 15000 i32.lt_u br_if 0
    end i64.const 0`)

// attackSandbox tries what a strategy can do to everybody else's requests, and to the process.
func attackSandbox(l *lab) error {
	for name, text := range inOrder(slowPicks) {
		l.way(name, func() (bool, string) { return neighbour(l, disturbance{module: text}) })
	}
	l.way("kv-flood", func() (bool, string) {
		redis, err := l.redis()
		if err != nil {
			return false, err.Error()
		}
		return neighbour(l, disturbance{module: kvFlood, keys: allowKV,
			more: fmt.Sprintf("[cache]\nredis = \"redis://%s\"\n", redis.Addr)})
	})
	if err := attackByModules(l); err != nil {
		return err
	}
	for name, text := range inOrder(map[string]string{
		"compile-one-target":   oneTarget(200, 4000),
		"compile-many-targets": manyTargets(200, 4000),
		"compile-straight": module("", strings.Repeat("local.get $i i32.const 1 i32.add local.set $i ", 350_000)+
			"i64.const 0"),
	}) {
		l.way(name, func() (bool, string) { return compileBomb(l, text) })
	}
	return nil
}

// manyTargets is a module of n tables of branches, to as many blocks each.
func manyTargets(n, labels int) string {
	var to strings.Builder
	for i := range labels {
		fmt.Fprintf(&to, "%d ", i%200)
	}
	one := strings.Repeat("block ", 200) + "local.get $i br_table " + to.String() + strings.Repeat("end ", 200)
	return module("", strings.Repeat(one, n)+" i64.const 0")
}

// oneTarget is a module of n tables of branches, all to one block.
func oneTarget(n, labels int) string {
	one := "local.get $i if local.get $i br_table " + strings.Repeat("1 ", labels) + "end "
	return module("", "block "+strings.Repeat(one, n)+"end i64.const 0")
}

// moduleCache is a cache of this run's own: with it the built-in strategies are compiled once, and the bombs in every
// run.
func (l *lab) moduleCache() string {
	return fmt.Sprintf("module_cache = %q\n", filepath.Join(l.dir, "modules"))
}

// strategy writes a module to a new file.
func (l *lab) strategy(text string) (path string, err error) {
	wasm, err := wasmtest.Assemble(text)
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(l.dir, "strategy-*.wasm")
	if err != nil {
		return "", err
	}
	defer f.Close()
	_, err = f.Write(wasm)
	return f.Name(), err
}

// fleet starts four workers, so many that the strategies of this topic do their worst.
func (l *lab) fleet(models ...string) (at []string, err error) {
	for range 4 {
		w, err := l.echoes(models...)
		if err != nil {
			return nil, err
		}
		at = append(at, w.addr)
	}
	return at, nil
}

// compileBomb puts a module that takes long to compile below a running strategy. Within 12 s it is taken up or
// refused by name, and the next configuration is taken up, too.
func compileBomb(l *lab, text string) (bool, string) {
	path, err := l.strategy(module("", "i64.const 0"))
	if err != nil {
		return false, err.Error()
	}
	bomb, err := l.strategy(text)
	if err != nil {
		return false, err.Error()
	}
	at, err := l.fleet("sim")
	if err != nil {
		return false, err.Error()
	}
	conf := func(name, path string) rig.Router {
		return rig.Router{
			Server:     l.moduleCache(),
			Pool:       fmt.Sprintf("name = %q\nstrategy = \"mine\"\n", name),
			Workers:    at,
			Strategies: fmt.Sprintf("[strategies.mine]\npath = %q\n", path),
		}
	}
	d, err := l.serve(conf("pool0", path))
	if err != nil {
		return false, err.Error()
	}
	was, most := d.RSS(), mostRSS(d)
	change := func(name, path string) (refused, up bool, took time.Duration) {
		began := time.Now()
		if err := conf(name, path).Rewrite(d); err != nil {
			return false, false, 0
		}
		d.Signal(syscall.SIGHUP)
		rig.Eventually(12*time.Second, func() bool {
			refused, up = d.Logged("strategies.mine"), taken(d, name)
			return refused && path == bomb || up
		})
		return refused, up, time.Since(began)
	}
	refused, up, took := change("pool1", bomb)
	_, next, again := change("pool2", path)
	served := answers(d.Addr)
	grew := most() - was
	trouble := l.end(d)
	return (refused || up) && next && served && grew < 512<<20 && trouble == "",
		fmt.Sprintf("taken up %v or refused by name %v, after %.1f s; the next configuration taken up %v after %.1f s; "+
			"memory +%s; served %v %s",
			up, refused, took.Seconds(), next, again.Seconds(), mb(grew), served, trouble)
}
