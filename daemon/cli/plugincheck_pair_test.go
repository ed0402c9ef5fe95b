package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/sdk/abi"
)

// TestPluginCheckOfPairs: what a module does that names pairs. Its frame of 1.2 stands at 1024 and has room for 64 rows.
func TestPluginCheckOfPairs(t *testing.T) {
	const note = "it asks for prefillers and has named none"
	order := 1024 + 264 + 64*abi.RowSize
	f := func(what, pick, wrong string, pairs, alone bool, notes string) {
		t.Helper()
		wasm, err := wasmtest.Assemble(fmt.Sprintf(`(module (memory (export "memory") 1)
			(func (export "warmpath_abi_1_2"))
			(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
			(func (export "wp_wants") (result i32) i32.const %d)
			(func (export "wp_pick") (result i64)
				i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end %s i64.const 0))`, abi.WantPair, pick))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "m.wasm")
		if err := os.WriteFile(file, wasm, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := checkPlugin(t.Context(), file, pluginWish{workers: []int{16}, most: 2000})
		if wrong != "" {
			if err == nil || !strings.Contains(err.Error(), wrong) {
				t.Errorf("%s: %v; want %q", what, err, wrong)
			}
			return
		}
		noted := slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, note) })
		if err != nil || (r.Paired > 0) != pairs || (r.Alone > 0) != alone || noted != (notes != "") {
			t.Errorf("%s: %v, %d paired, %d alone, notes %q", what, err, r.Paired, r.Alone, r.Notes)
		}
	}
	last := "i32.const 1036 i32.load i32.const 1 i32.sub"
	f("a pair", "i32.const 1248 i32.load if i32.const 1252 "+last+" i32.store end", "", true, false, "")
	f("the same worker twice", "i32.const 1252 i32.const 0 i32.store", "", false, true, "")
	f("nobody", "", "", false, false, note)
	f("no row", "i32.const 1252 i32.const 99 i32.store", "it names row 99 of ", false, false, "")
	f("one that computes for itself", "i32.const 1252 i32.const 2 i32.store", "it names row 2 for the prompt, which computes none",
		false, false, "")
	f("a prefiller as alternative", fmt.Sprintf("i32.const 1144 i32.const 1 i32.store i32.const %d %s i32.store", order, last),
		"a prefiller, which answers nobody", false, false, "")
	f("a prefiller for the answer", last+" i64.extend_i32_u return", "a prefiller, for the answer", false, false, "")
}
