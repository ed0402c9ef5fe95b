package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
)

// TestPluginCheckFindsMistakes: what a module does that the host corrects in silence. Its frame of 1.1 stands at 1024 and has
// room for 64 rows: the rows are at 1216, the order area at 11456.
func TestPluginCheckFindsMistakes(t *testing.T) {
	for _, c := range []struct {
		name, pick string
		want       string // "" = it is well
	}{
		{"well", `i64.const 0x10000000000`, ""},
		{"rows", `i32.const 1248 i32.const 77 i32.store i64.const 0`, "it changes its rows"},
		{"range", `i32.const 1144 i32.const 1 i32.store i32.const 11456 i32.const 99 i32.store i64.const 0`,
			"its alternative 1 is row 99 of "},
		{"twice", `i32.const 1144 i32.const 1 i32.store i32.const 11456 i32.const 0 i32.store i64.const 0`,
			"its alternative 1 is row 0 once more"},
		{"many", `i32.const 1144 i32.const 100 i32.store i64.const 0`, "it names 100 alternatives of "},
		{"status", `i32.const 1176 i32.const 200 i32.store i64.const 0xfffffffe`,
			"it rejects with status 200, for which the client gets 429"},
	} {
		wasm, err := wasmtest.Assemble(`(module (memory (export "memory") 1)
			(func (export "warmpath_abi_1_1"))
			(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
			(func (export "wp_pick") (result i64) ` + c.pick + `))`)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), c.name+".wasm")
		if err := os.WriteFile(file, wasm, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err = checkPlugin(t.Context(), file, pluginWish{workers: []int{16}, most: 2000})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
}

// TestPluginCheckNotes: what is no mistake of the module, and should be seen before it serves.
func TestPluginCheckNotes(t *testing.T) {
	const module = `(module
		(import "warmpath_v1" "str" (func $str (param i32 i32 i32 i32) (result i32)))
		(memory (export "memory") 1) (data (i32.const 0) "x-tier")
		(func (export "warmpath_abi_1_1"))
		(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
		(func (export "wp_pick") (result i64)
			i32.const 6 i32.const 6 i32.const 0 i32.const 0 call $str
			i32.const 0 i32.lt_s if i64.const 0xffffffff return end
			i64.const 0x700000000))`
	wasm, err := wasmtest.Assemble(module)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tiers.wasm")
	if err := os.WriteFile(file, wasm, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		allow []string
		chose bool
		want  []string
	}{
		{nil, false, []string{`may not: allow = ["headers:x-tier"]`, "on 16 workers it chose nobody"}},
		{[]string{"headers:x-tier"}, true, []string{"reason 7 has no name"}},
	} {
		r, err := checkPlugin(t.Context(), file, pluginWish{workers: []int{16}, most: 2000, allow: c.allow})
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(r.Notes, "\n")
		for _, want := range c.want {
			if !strings.Contains(notes, want) {
				t.Errorf("allow %q: notes %q; want %q", c.allow, notes, want)
			}
		}
		if len(r.Notes) != len(c.want) || (r.Fleets[0].Chose > 0) != c.chose {
			t.Errorf("allow %q: notes %q, it chose in %d", c.allow, notes, r.Fleets[0].Chose)
		}
	}
}
