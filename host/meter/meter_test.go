package meter

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
)

var ctx = context.Background()

const features = api.CoreFeatureBulkMemoryOperations | api.CoreFeatureMultiValue | api.CoreFeatureMutableGlobal |
	api.CoreFeatureNonTrappingFloatToIntConversion | api.CoreFeatureReferenceTypes | api.CoreFeatureSignExtensionOps

func runtimes(t testing.TB) wazero.Runtime {
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features))
	t.Cleanup(func() { _ = rt.Close(ctx) })
	refill(t, rt)
	return rt
}

func assemble(t testing.TB, src string) []byte {
	t.Helper()
	b, err := wasmtest.Assemble(src)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// every has one of each thing that a rewriter must carry along unchanged: multi-value blocks, tables, passive data,
// bulk operations, saturating conversion, calls through a table, globals, nested loops.
const every = `(module
  (memory (export "memory") 1 4)
  (table 4 funcref)
  (global $g (mut i64) (i64.const -7))
  (global $k i32 (i32.const 3))
  (elem (i32.const 1) $sum $fac)
  (data (i32.const 8) "abc\00\ff")
  (data "passive bytes")
  (func $fac (export "fac") (param i64) (result i64)
    local.get 0 i64.eqz if (result i64) i64.const 1
    else local.get 0 local.get 0 i64.const 1 i64.sub call $fac i64.mul end)
  (func $sum (export "sum") (param $n i64) (result i64) (local $s i64)
    block $out
      loop $top
        local.get $n i64.eqz br_if $out
        local.get $s local.get $n i64.add local.set $s
        local.get $n i64.const 1 i64.sub local.set $n
        br $top
      end
    end
    local.get $s)
  (func (export "through") (param $n i64) (result i64)
    local.get $n
    local.get $n i32.wrap_i64 i32.const 1 i32.and i32.const 1 i32.add
    call_indirect (param i64) (result i64))
  (func (export "bulk") (param $n i64) (result i64)
    i32.const 100 i32.const 65 local.get $n i32.wrap_i64 memory.fill
    i32.const 200 i32.const 100 local.get $n i32.wrap_i64 memory.copy
    i32.const 300 i32.const 2 i32.const 7 memory.init 1
    i32.const 200 i64.load i32.const 300 i64.load i64.xor)
  (func (export "values") (param $n i64) (result i64)
    local.get $n i64.const 5
    loop (param i64 i64) (result i64)
      i64.add
    end
    block (result i64 i64) i64.const 3 i64.const 4 end
    i64.mul i64.add
    global.get $g i64.add global.get $k i64.extend_i32_s i64.add)
  (func (export "switch") (param $n i64) (result i64)
    block $a block $b block $c
      local.get $n i32.wrap_i64 br_table $a $b $c
    end i64.const 30 return
    end i64.const 20 return
    end i64.const 10)
  (func (export "pages") (param $n i64) (result i64)
    local.get $n i32.wrap_i64 memory.grow drop memory.size i64.extend_i32_u)
  (func (export "float") (param $n i64) (result i64)
    local.get $n f64.convert_i64_s f64.sqrt f64.const 1e3 f64.mul i64.trunc_sat_f64_s)
  (func (export "traps") (param $n i64) (result i64)
    i64.const 10 local.get $n i64.const 3 i64.sub i64.div_s)
)`

// TestBehavesAsTheOriginal: same results, same traps, same memory afterwards.
func TestBehavesAsTheOriginal(t *testing.T) {
	wasm := assemble(t, every)
	metered, err := Rewrite(wasm, Options{MaxPages: 4, Budget: 100_000_000})
	if err != nil {
		t.Fatal(err)
	}
	rt := runtimes(t)
	start := func(b []byte) api.Module {
		m, err := rt.InstantiateWithConfig(ctx, b, wazero.NewModuleConfig().WithName(""))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	a, b := start(wasm), start(metered)
	for _, name := range []string{"fac", "sum", "through", "bulk", "values", "switch", "pages", "float", "traps"} {
		for n := range uint64(12) {
			want, err1 := a.ExportedFunction(name).Call(ctx, n)
			got, err2 := b.ExportedFunction(name).Call(ctx, n)
			if (err1 == nil) != (err2 == nil) || err1 == nil && want[0] != got[0] {
				t.Errorf("%s(%d) = %v, %v; the original gives %v, %v", name, n, got, err2, want, err1)
			}
		}
	}
	m1, _ := a.Memory().Read(0, a.Memory().Size())
	m2, _ := b.Memory().Read(0, b.Memory().Size())
	if string(m1) != string(m2) {
		t.Error("the memories differ")
	}
	if fuel := int64(b.ExportedGlobal(Global).Get()); fuel <= 0 || fuel >= 100_000_000 {
		t.Errorf("fuel left: %d", fuel)
	}
}

// TestPrice: worked values of the cost model.
func TestPrice(t *testing.T) {
	f := func(what, body string, want int64) {
		t.Helper()
		out, err := Rewrite(assemble(t, `(module (memory 1 100) (table 9 funcref) (func (export "f") `+body+`))`), Options{Budget: 10_000_000})
		if err != nil {
			t.Fatal(err)
		}
		m, err := runtimes(t).Instantiate(ctx, out)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.ExportedFunction("f").Call(ctx); err != nil {
			t.Fatal(err)
		}
		if got := 10_000_000 - int64(m.ExportedGlobal(Global).Get()); got != want {
			t.Errorf("%s costs %d; want %d", what, got, want)
		}
	}
	f("an empty function", "", 1)
	f("256 plain instructions", strings.Repeat("nop ", 256), 2)
	f("4 divisions", strings.Repeat("i32.const 1 i32.const 1 i32.div_s drop ", 4), 1+(4*64+12)/256)
	f("8 locals", "(local i64 i64 i64 i64 i64 i64 i64 i64)", 1+8)
	f("a loop of 10 turns", "(local i32) loop local.get 0 i32.const 1 i32.add local.tee 0 i32.const 10 i32.lt_u br_if 0 end", 1+1+10)
	f("memory.fill of 6,400 bytes", "i32.const 0 i32.const 0 i32.const 6400 memory.fill", 1+(1+512/256)+400)
	f("memory.copy of nothing", "i32.const 0 i32.const 0 i32.const 0 memory.copy", 1+(1+512/256))
	f("memory.grow by 2 pages", "i32.const 2 memory.grow drop", 1+(1+512/256)+2048)
	f("table.fill of 8", "i32.const 0 ref.null i32.const 8 table.fill", 1+(1+512/256)+4)
}

// TestEmptyModule: sections that are missing are made.
func TestEmptyModule(t *testing.T) {
	out, err := Rewrite(assemble(t, `(module)`), Options{Budget: 7})
	if err != nil {
		t.Fatal(err)
	}
	m, err := runtimes(t).Instantiate(ctx, out)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.ExportedGlobal(Global).Get(); got != 7 {
		t.Errorf("budget %d; want 7", got)
	}
}

func TestRefusesByName(t *testing.T) {
	f := func(wasm []byte, want string) {
		t.Helper()
		if _, err := Rewrite(wasm, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %q", err, want)
		}
	}
	body := func(code ...byte) []byte { // () -> () with this body
		b := []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00")
		inner := appendBytes([]byte{1}, append(append([]byte{0}, code...), 0x0b))
		return appendBytes(append(b, 10), inner)
	}
	f(body(0xfd, 0x0c), "SIMD")
	f(body(0xfe, 0x03, 0x00), "threads")
	f(body(0x06, 0x40), "exception")
	f(body(0x08, 0x00), "exception")
	f(body(0x1f, 0x40), "exception")
	f(body(0x12, 0x00), "tail call")
	f(body(0x13, 0x00, 0x00), "tail call")
	f(body(0x14, 0x00), "typed function reference")
	f(body(0xfb, 0x00), "garbage collection")
	f(body(0xfc, 0x20), "0xfc 32")
	f(body(0xff), "0xff")
	f(body(0x20, 0x00), "local 0 of 0")
	f(body(0x24, 0x00), "global 0 of 0")
	f(body(0x02, 0x40), "ends too early; copy it whole, or build it again")
	f([]byte("\x00asm\x0d\x00\x01\x00"), "not a core wasm module")
	f(assemble(t, `(module (memory 300))`), "limit is 256 pages")
	f(assemble(t, `(module (table 200000 funcref))`), "limit is 131072")
	mem := []byte("\x00asm\x01\x00\x00\x00\x05\x04\x01\x03\x01\x01")
	f(mem, "threads, memory64")
	f([]byte("\x00asm\x01\x00\x00\x00\x05\x06\x01\x010\x80\x800"), "WebAssembly allows 65536")
	f([]byte("\x00asm\x01\x00\x00\x00\x02\x09\x01\x01m\x01n\x02\x00\x01\x01"), `a memory, "m"."n"`)
	f([]byte("\x00asm\x01\x00\x00\x00\x00\x01\x00"), "custom section without contents")
	f(binary.AppendUvarint([]byte("\x00asm\x01\x00\x00\x00\x0e"), 0), "section 14")
}

// FuzzRewrite: never panics, and what it makes is valid only if the original is: that is why the original need not be
// compiled first.
func FuzzRewrite(f *testing.F) {
	f.Add(assemble(f, every))
	names, _ := filepath.Glob("../../testdata/modules/*.wat")
	for _, name := range names {
		if _, err := os.Stat(name); err == nil {
			b, err := wasmtest.File(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	rt := runtimes(f)
	f.Fuzz(func(t *testing.T, wasm []byte) {
		out, err := Rewrite(wasm, Options{})
		if err != nil {
			return
		}
		cm, err := rt.CompileModule(ctx, out)
		if err != nil {
			return
		}
		_ = cm.Close(ctx)
		cm, err = rt.CompileModule(ctx, wasm)
		if err != nil {
			t.Fatalf("the original is not valid: %v", err)
		}
		_ = cm.Close(ctx)
	})
}
