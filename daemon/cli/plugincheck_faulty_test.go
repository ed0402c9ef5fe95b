package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/admin/strategies"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
)

// TestPluginCheckFindsFaultyModules: modules that a daemon takes, and that would fail or do nothing in service. Each is
// refused, or has a note. Their frame of 1.2 stands at 1024 and has room for 64 rows.
func TestPluginCheckFindsFaultyModules(t *testing.T) {
	wants := func(bits string) string { return `(func (export "wp_wants") (result i32) i32.const ` + bits + `)` }
	first := func(body string) string {
		return wants("4") + `(func (export "wp_on_first_token") (param i32) ` + body + `)`
	}
	complete := func(body string) string {
		return wants("8") + `(func (export "wp_on_complete") (param i32) ` + body + `)`
	}
	classify := func(body string) string {
		return wants("64") + `(func (export "wp_classify") (result i64) ` + body + `)`
	}
	filter := func(body string) string { // of four rows and more: a start shows it three
		return wants("256") + `(func (export "wp_filter") (result i64) i32.const 1036 i32.load i32.const 3 i32.gt_u if ` + body +
			` end i64.const 0xffffffff)`
	}
	pick := func(body string) string { return `(func (export "wp_pick") (result i64) ` + body + `)` }
	well := pick("i64.const 0")
	for _, c := range []struct {
		name, module  string
		refused, note string // a part of the error, or of a note
	}{
		{"well", well, "", ""},
		// What check calls beside wp_pick.
		{"classify traps", well + classify("unreachable"), "wp_classify: wasm error: unreachable", ""},
		{"classify never ends", well + classify("loop $l br $l end i64.const 0"), "wp_classify used up its fuel", ""},
		{"classify gives NaN", well + classify("i64.const 0x7fc0000000000000"), "wp_classify gives the key a share of NaN", ""},
		{"classify gives -1", well + classify("i64.const 0xbf80000000000000"), "wp_classify gives the key a share of -1", ""},
		{"a class that is cut", well + classify("i64.const 10"), "", "it gives classes from 0 to 10, which [[keys]] priority cuts"},
		{"first token traps", well + first("unreachable"), "wp_on_first_token: wasm error: unreachable", ""},
		{"a division by no tokens", well + complete("i32.const 1 i32.const 1088 i32.load i32.const 1184 i32.load i32.mul i32.div_u drop"),
			"wp_on_complete: wasm error: integer divide by zero", ""},
		{"no worker has answered", well + complete("i32.const 1264 i64.load i64.eqz if unreachable end"), "wp_on_complete: wasm error: unreachable", ""},
		{"outcomes are kept", well + complete("i32.const 1 memory.grow drop"), "", "its memory grows with its decisions"},
		{"an event of removal traps", well + wants("16") + `(func (export "wp_on_kv_event") (param i32)
			i32.const 1108 i32.load i32.const 2 i32.eq if unreachable end)`, "wp_on_kv_event: wasm error: unreachable", ""},
		{"a tick never ends", well + wants("2") + `(func (export "wp_tick") (param i64) loop $l br $l end)`, "wp_tick used up its fuel", ""},
		{"a tick writes outside", well + wants("2") + `(func (export "wp_tick") (param i64) i32.const -8 i64.const 1 i64.store)`,
			"wp_tick: wasm error: out of bounds memory access", ""},
		{"upkeep traps, from the second on", `(global $n (mut i32) (i32.const 0))` + well + `(func (export "wp_maint")
			global.get $n if unreachable end i32.const 1 global.set $n)`, "wp_maint: wasm error: unreachable", ""},
		{"a filter traps", well + filter("unreachable"), "wp_filter: wasm error: unreachable", ""},
		{"a filter never ends", well + filter("loop $l br $l end"), "used up its fuel", ""},
		{"a filter keeps a row that there is not", well + filter("i32.const 13064 i32.const 99 i32.store i64.const 1 return"), "keeps row 99 of ", ""},
		{"a filter keeps nobody", well + wants("256") + `(func (export "wp_filter") (result i64) i64.const 0)`, "", "its filter left no worker to any request"},
		// What it shows to a pick.
		{"a row that runs an adapter", pick("i32.const 1036 i32.load i32.const 3 i32.gt_u if i32.const 1292 i32.load i32.const 8 i32.and " +
			"if unreachable end end i64.const 0"), "wp_pick: wasm error: unreachable", ""},
		{"a row with the label of its option", `(func (export "wp_configure") (param i32) (result i32) i32.const 0)` +
			pick("i32.const 1036 i32.load i32.const 3 i32.gt_u if i32.const 1024 i32.const 0 i32.store8 call $rack if unreachable end end i64.const 0") +
			`(func $rack (result i32) i32.const 5 i32.const 0 i32.const 0 i32.const 64 call $str drop
			i32.const 0 i32.load i32.const 0x6b636172 i32.eq)`, "wp_pick: wasm error: unreachable", ""},
		// What it reads of a decision.
		{"flags that mean nothing", pick("i64.const 0x4000000000000"), "it sets the flags 0x4, which mean nothing", ""},
		{"a text outside", pick("i32.const 1184 i32.const 0xfffff0 i32.store i32.const 1188 i32.const 99 i32.store i64.const 0xfffffffe"),
			"the text of its rejection leaves its memory", ""},
		{"holds for ever", pick("i32.const 1244 i32.const -1 i32.store i64.const 0xfffffffd"), "", "it holds every request"},
		{"a row that there is not", pick("i64.const 0xfffffff9"), "chose row -7 of 1; want 0 to 0, -1 (Decline), -2 (Reject) or -3 (Hold)", ""},
		// What it asks for.
		{"memory grows", pick("i32.const 16 memory.grow drop i64.const 0"), "", "its memory grows with its decisions"},
		{"memory grows by little", `(global $n (mut i32) (i32.const 0))` + pick("global.get $n i32.const 1 i32.add global.set $n "+
			"global.get $n i32.const 127 i32.and i32.eqz if i32.const 1 memory.grow drop end i64.const 0"), "", "its memory grows with its decisions"},
		{"files", pick("i32.const 3 i32.const 0 i32.const 0 i32.const 0 i32.const 0 i64.const 0 i64.const 0 i32.const 0 i32.const 0 " +
			"call $path_open drop i64.const 0"), "", "files do not work here"},
		{"an open file", pick("i32.const 3 i32.const 0 i32.const 0 i32.const 0 call $fd_read drop i64.const 0"), "", "files do not work here"},
	} {
		wasm, err := wasmtest.Assemble(`(module
			(import "warmpath_v1" "str" (func $str (param i32 i32 i32 i32) (result i32)))
			(import "wasi_snapshot_preview1" "path_open" (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
			(import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
			(memory (export "memory") 2) (data (i32.const 0) "some")
			(func (export "warmpath_abi_1_2"))
			(func (export "wp_frame") (param i32) (result i32) i32.const 1024)` + c.module + `)`)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		file := filepath.Join(t.TempDir(), "m.wasm")
		write(t, file, string(wasm))
		wish := pluginWish{workers: []int{16}, most: 20_000, options: map[string]string{}}
		if strings.Contains(c.module, "wp_configure") {
			wish.options["rack"] = "r1"
		}
		r, err := checkPlugin(t.Context(), file, wish)
		if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s: %v; want %q", c.name, err, c.refused)
		}
		if c.note != "" && !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, c.note) }) ||
			c.note == "" && err == nil && len(r.Notes) > 0 {
			t.Errorf("%s: notes %q; want %q", c.name, r.Notes, c.note)
		}
	}
}

// TestPluginCheckRefusesWhatAPushRefuses: a module beyond the bound of a push.
func TestPluginCheckRefusesWhatAPushRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.wasm")
	write(t, file, "")
	if err := os.Truncate(file, strategies.MaxBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, err := checkPlugin(t.Context(), file, pluginWish{}); err == nil || !strings.Contains(err.Error(), "a push takes 16777216") {
		t.Errorf("%v; want its size refused", err)
	}
}
