package meter

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// repeated is a module whose function run repeats code without end, forty times a turn. Its locals: $i i32, $l i64, $f
// f32, $d f64, $r i32 at random. setup runs once.
func repeated(setup, code string) string {
	return `(module
  (memory (export "memory") 256 256)
  (table 4096 funcref)
  (global $g (mut i64) (i64.const 0))
  (global $gi (mut i32) (i32.const 0))
  (data "0123456789abcdef")
  (elem (i32.const 0) $e0 $e1 $e2 $e3)
  (func $e0 (param i32) (result i32) local.get 0)
  (func $e1 (param i32) (result i32) local.get 0)
  (func $e2 (param i32) (result i32) local.get 0)
  (func $e3 (param i32) (result i32) local.get 0)
  (func (export "run") (local $i i32) (local $l i64) (local $f f32) (local $d f64) (local $r i32) (local $k i32)
    i32.const 2463534242 local.set $r
    ` + setup + `
    loop $top
` + strings.Repeat(code+"\n", 40) + `
      br $top
    end))`
}

// random steps $r, a xorshift, and leaves it on the stack.
const random = `local.get $r local.get $r i32.const 13 i32.shl i32.xor local.set $r
  local.get $r local.get $r i32.const 17 i32.shr_u i32.xor local.set $r
  local.get $r local.get $r i32.const 5 i32.shl i32.xor local.tee $r`

// chase makes a random cycle through all cache lines of the memory: 64-bit linear congruence, full period over 2^18
// lines.
const chase = `loop $fill
   local.get $i local.get $i i32.const 64 i32.div_u i32.const 166661 i32.mul i32.const 12345 i32.add i32.const 262143 i32.and i32.const 64 i32.mul i32.store
   local.get $i i32.const 64 i32.add local.tee $i i32.const 16777216 i32.lt_u br_if $fill
  end i32.const 0 local.set $i`

// dear lists code by what it is; what is not dear on one machine may be so on another.
func dear() map[string][2]string {
	d := map[string][2]string{
		"empty loop":                  {"", ""},
		"call":                        {"", "local.get $i call $e0 local.set $i"},
		"call_indirect at random":     {"", "local.get $i " + random + " i32.const 3 i32.and call_indirect (param i32) (result i32) local.set $i"},
		"br_table at random":          {"", "block block block block " + random + " i32.const 3 i32.and br_table 0 1 2 3 end end end end"},
		"if at random":                {"", random + " i32.const 1 i32.and if local.get $i i32.const 1 i32.add local.set $i end"},
		"load after load":             {chase, "local.get $i i32.load local.set $i"},
		"store at random":             {"", random + " i32.const 16777212 i32.and i32.const 1 i32.store"},
		"store to fresh pages":        {"", "local.get $i i32.const 16773120 i32.and i32.const 1 i32.store local.get $i i32.const 4096 i32.add local.set $i"},
		"global":                      {"", "global.get $g i64.const 1 i64.add global.set $g"},
		"memory.size":                 {"", "memory.size drop"},
		"memory.grow 0":               {"", "i32.const 0 memory.grow drop"},
		"memory.grow fails":           {"", "i32.const 1 memory.grow drop"},
		"memory.fill 0":               {"", "i32.const 0 i32.const 0 i32.const 0 memory.fill"},
		"memory.fill 100":             {"", "i32.const 0 i32.const 0 i32.const 100 memory.fill"},
		"memory.fill 64 KiB":          {"", "i32.const 0 i32.const 0 i32.const 65536 memory.fill"},
		"memory.fill 16 MiB":          {"", "i32.const 0 i32.const 0 i32.const 16777216 memory.fill"},
		"memory.copy 0":               {"", "i32.const 0 i32.const 8 i32.const 0 memory.copy"},
		"memory.copy 100":             {"", "i32.const 0 i32.const 8 i32.const 100 memory.copy"},
		"memory.copy 4 MiB at random": {"", random + " i32.const 4194303 i32.and i32.const 8000000 i32.const 4194304 memory.copy"},
		"memory.init":                 {"", "i32.const 0 i32.const 0 i32.const 16 memory.init 0"},
		"table.grow 0":                {"", "ref.null i32.const 0 table.grow drop"},
		"table.grow fails":            {"", "ref.null i32.const 1000000 table.grow drop"},
		"table.size":                  {"", "table.size drop"},
		"table.fill 0":                {"", "i32.const 0 ref.null i32.const 0 table.fill"},
		"table.fill 4000":             {"", "i32.const 0 ref.null i32.const 4000 table.fill"},
		"table.copy 4000":             {"", "i32.const 4 i32.const 8 i32.const 4000 table.copy"},
		"table.get":                   {"", "i32.const 0 table.get drop"},
		"table.set":                   {"", "i32.const 5 ref.null table.set"},
		"ref.func":                    {"", "ref.func $e0 drop"},
	}
	for _, op := range []string{"i32.div_s", "i32.rem_u"} {
		d[op] = [2]string{"i32.const 2147483647 local.set $i", "local.get $i i32.const 1 " + op + " local.set $k"}
	}
	for _, op := range []string{"i64.div_s", "i64.div_u", "i64.rem_s", "i64.rem_u"} {
		d[op] = [2]string{"i64.const 9223372036854775807 local.set $l", "i64.const 9223372036854775806 local.get $l i64.const 9223372036854775000 i64.or " + op + " local.set $l"}
	}
	for _, op := range []string{"add", "sub", "mul", "div", "min", "max", "copysign"} {
		d["f64."+op+" of denormals"] = [2]string{"f64.const 3e-320 local.set $d", "local.get $d f64.const 1.0000001 f64." + op + " f64.const 3e-320 f64.min local.set $d"}
		d["f32."+op+" of denormals"] = [2]string{"f32.const 3e-41 local.set $f", "local.get $f f32.const 1.0000001 f32." + op + " f32.const 3e-41 f32.min local.set $f"}
		d["f64."+op+" of two denormals"] = [2]string{"f64.const 3e-320 local.set $d", "local.get $d f64.const 2e-320 f64." + op + " f64.const 3e-320 f64.min local.set $d"}
	}
	d["f64.mul to denormals"] = [2]string{"f64.const 2.5e-308 local.set $d", "local.get $d f64.const 0.5 f64.mul drop"}
	for _, op := range []string{"sqrt", "ceil", "floor", "trunc", "nearest", "abs", "neg"} {
		d["f64."+op] = [2]string{"f64.const 3e-320 local.set $d", "local.get $d f64." + op + " local.set $d"}
		d["f32."+op] = [2]string{"f32.const 3e-41 local.set $f", "local.get $f f32." + op + " local.set $f"}
	}
	d["f64.sqrt of a denormal"] = [2]string{"f64.const 3e-320 local.set $d", "local.get $d f64.sqrt drop"}
	d["f32.demote_f64"] = [2]string{"f64.const 3e-41 local.set $d", "local.get $d f32.demote_f64 f64.promote_f32 local.set $d"}
	d["f64.convert_i64_u"] = [2]string{"", "i64.const -5 f64.convert_i64_u i64.trunc_sat_f64_s local.set $l"}
	d["i64.trunc_f64_u"] = [2]string{"", "f64.const 1e18 i64.trunc_f64_u local.set $l"}
	for _, op := range []string{"clz", "ctz", "popcnt"} {
		d["i64."+op] = [2]string{"", "local.get $l i64." + op + " local.set $l"}
	}
	d["i64.mul"] = [2]string{"", "local.get $l i64.const 12345677 i64.mul local.set $l"}
	d["i64.rotl"] = [2]string{"", "local.get $l local.get $l i64.rotl local.set $l"}
	return d
}

// rate gives the time that 1 fuel of the module's run takes.
func rate(t *testing.T, rt wazero.Runtime, src string, fuel int64) time.Duration {
	t.Helper()
	out, err := Rewrite(assemble(t, src), Options{})
	if err != nil {
		t.Fatal(err)
	}
	cm, err := rt.CompileModule(ctx, out)
	if err != nil {
		t.Fatal(err)
	}
	defer cm.Close(ctx)
	best := time.Hour
	for range 3 {
		m, err := rt.InstantiateModule(ctx, cm, wazero.NewModuleConfig().WithName(""))
		if err != nil {
			t.Fatal(err)
		}
		g := m.ExportedGlobal(Global).(api.MutableGlobal)
		g.Set(1 << 40)
		g.Set(uint64(fuel))
		began := time.Now()
		_, err = m.ExportedFunction("run").Call(ctx)
		took := time.Since(began)
		if err == nil || int64(g.Get()) >= 0 {
			t.Fatalf("run ended with %v and %d fuel", err, int64(g.Get()))
		}
		best = min(best, took*1000/time.Duration(fuel-int64(g.Get())))
		_ = m.Close(ctx)
	}
	return best
}

// TestPrices times every instruction that might be dear, forty times a turn of a loop: 1 fuel of none may take much
// longer than host's worst case, 0.8 us. On a quiet machine a load after a load takes 0.6 us a fuel, which memory
// decides, a product with denormals 0.5, and nothing else over 0.2. The marks leave room for a busy machine: 8 us for
// that load, 1 us for all else. go test -v prints the list.
func TestPrices(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(features).WithMemoryCapacityFromMax(true))
	defer rt.Close(ctx)
	refill(t, rt)
	rates := map[string]time.Duration{}
	for name, c := range dear() {
		fuel := int64(20_000)
		if c[0] == chase {
			fuel = 2_000_000
		}
		rates[name] = rate(t, rt, repeated(c[0], c[1]), fuel)
	}
	const most = 1000 * 1000 // picoseconds
	for name, c := range dear() {
		for try := 0; try < 20 && rates[name] > most && c[0] != chase; try++ { // a busy machine is over it once, not always
			rates[name] = min(rates[name], rate(t, rt, repeated(c[0], c[1]), 20_000))
		}
	}
	names := slices.SortedFunc(maps.Keys(rates), func(a, b string) int { return cmp.Compare(rates[b], rates[a]) })
	for _, name := range names {
		t.Logf("%8.1f ns  %s", float64(rates[name])/1000, name)
		if rates[name] > 8*most || rates[name] > most && name != "load after load" {
			t.Errorf("1 fuel of %s takes %v; raise its price", name, rates[name]/1000)
		}
	}
}

// refill puts a host module into rt whose refill ends the call.
func refill(t testing.TB, rt wazero.Runtime) {
	t.Helper()
	_, err := rt.NewHostModuleBuilder(Module).NewFunctionBuilder().WithFunc(func() { panic("out of fuel") }).Export(Refill).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
}
