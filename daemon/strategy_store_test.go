package daemon

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
)

// counting is a strategy whose reason is what it has counted in the store, with this much more of a module.
const counting = `(module
  (import "warmpath_v1" "kv_incr" (func $incr (param i32 i32 i64 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "n%s")
  (func (export "warmpath_abi_1_1"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64)
    i32.const 0 i32.const 1 i64.const 1 i32.const 0 call $incr
    i64.const 0xffff i64.and i64.const 32 i64.shl))`

// TestAStoresValuesSurviveASwap: what a strategy has put into the store is there for its next version.
func TestAStoresValuesSurviveASwap(t *testing.T) {
	f := newVersionFile(t, "mine")
	put := func(more string) (sum string) {
		t.Helper()
		wasm, err := wasmtest.Assemble(fmt.Sprintf(counting, more))
		if err != nil {
			t.Fatal(err)
		}
		write(t, f.path, string(wasm))
		return fmt.Sprintf("%x", sha256.Sum256(wasm))
	}
	put("")
	text := settings("mine", sims(t, 1, vllmsim.Config{}).URLs()...) + fmt.Sprintf("[strategies.mine]\npath = %q\nallow = [\"kv\"]\n", f.path)
	r := start(t, text, 1)
	want := 0
	counts := func() {
		t.Helper()
		for range 3 {
			want++
			s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`, "X-Warmpath-Explain", "1")
			if got := s.header.Get("X-Warmpath-Reason"); s.status != 200 || got != fmt.Sprint("reason ", want) {
				t.Errorf("%d %q; want reason %d", s.status, got, want)
			}
		}
	}
	counts()
	for _, more := range []string{" again", " and again"} {
		put(more)
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
		counts()
	}
}

// TestAModuleOfAnotherSumIsRefused: the file says which module it means; another one is refused with both sums, and the
// one in force serves on.
func TestAModuleOfAnotherSumIsRefused(t *testing.T) {
	f := newVersionFile(t, "mine")
	f.put(1)
	good, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(good))
	text := settings("mine", sims(t, 1, vllmsim.Config{}).URLs()...) + fmt.Sprintf("[strategies.mine]\npath = %q\nsha256 = %q\n", f.path,
		strings.ToUpper(sum))
	r := start(t, text, 1)
	serves := func(want string) {
		t.Helper()
		s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`, "X-Warmpath-Explain", "1")
		if got := s.header.Get("X-Warmpath-Reason"); s.status != 200 || got != want {
			t.Errorf("%d %q; want %q", s.status, got, want)
		}
	}
	serves("version-01")
	f.put(2)
	bad, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	other := fmt.Sprintf("%x", sha256.Sum256(bad))
	if err := r.Reload(); err == nil || !strings.Contains(err.Error(), sum) || !strings.Contains(err.Error(), other) ||
		!strings.Contains(err.Error(), "correct the sum") {
		t.Errorf("%v; want both sums and what to do", err)
	}
	serves("version-01")
	write(t, r.file, strings.Replace(text, strings.ToUpper(sum), other, 1))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	serves("version-02")
}
