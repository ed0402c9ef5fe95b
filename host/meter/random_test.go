package meter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// program writes valid modules at random: every expression leaves one i64, every loop counts down a local of its own.
type program struct {
	*rand.Rand
	b     strings.Builder
	self  int // the function being written calls those before it
	loops int
	left  int // statements to write
}

const programFuncs, programLocals = 4, 12

// random makes a module whose functions $f0 to $f3 take and give an i64, over one memory, two globals and a table of
// them.
func randomModule(seed uint64) string {
	p := &program{Rand: rand.New(rand.NewPCG(seed, 1))}
	p.b.WriteString("(module (memory (export \"memory\") 1 3) (table 8 funcref) (elem (i32.const 0) $f0 $f1 $f2)\n")
	p.b.WriteString("(global $g0 (mut i64) (i64.const 3)) (global $g1 (mut i64) (i64.const -9)) (data \"passive data\")\n")
	for p.self = range programFuncs {
		fmt.Fprintf(&p.b, "(func $f%d (export \"f%d\") (param i64) (result i64) (local%s)\n", p.self, p.self, strings.Repeat(" i64", programLocals))
		p.loops, p.left = 0, 25
		for p.left > 0 {
			p.statement(0)
		}
		p.expr(3)
		p.b.WriteString(")\n")
	}
	return p.b.String() + ")"
}

func (p *program) out(format string, args ...any) { fmt.Fprintf(&p.b, format+" ", args...) }

// local is one that no loop counts.
func (p *program) local() int { return p.IntN(6) }

// address leaves an i32, now and then one that is out of bounds.
func (p *program) address() {
	p.expr(1)
	mask := 4095
	if p.IntN(300) == 0 {
		mask = 1 << 20
	}
	p.out("i32.wrap_i64 i32.const %d i32.and", mask)
}

func (p *program) expr(depth int) {
	if depth == 0 {
		p.leaf()
		return
	}
	switch p.IntN(12) {
	case 0, 1, 2, 3:
		p.expr(depth - 1)
		p.expr(depth - 1)
		p.out("i64.%s", []string{"add", "sub", "mul", "xor", "and", "or", "shl", "shr_u", "rotl", "const 1 i64.or i64.rem_u", "const 1 i64.or i64.div_u"}[p.IntN(11)])
	case 4:
		p.address()
		p.out("i64.load")
	case 5:
		p.expr(depth - 1)
		p.out("f64.convert_i64_s f64.sqrt i64.trunc_sat_f64_s")
	case 6:
		p.expr(depth - 1)
		p.out("i64.eqz if (result i64)")
		p.expr(depth - 1)
		p.out("else")
		p.expr(depth - 1)
		p.out("end")
	case 7:
		if p.self > 0 {
			p.expr(depth - 1)
			p.out("call $f%d", p.IntN(p.self))
			return
		}
		p.leaf()
	case 8: // through the table: a null or a function that comes later and loops is a trap in both
		if p.self == 3 {
			p.expr(depth - 1)
			p.out("i32.const %d call_indirect (param i64) (result i64)", p.IntN(4))
			return
		}
		p.leaf()
	case 9:
		p.out("ref.func $f0 ref.is_null i64.extend_i32_u")
	case 10:
		p.out("i32.const %d memory.grow i64.extend_i32_s", p.IntN(3))
	default:
		p.leaf()
	}
}

func (p *program) leaf() {
	switch p.IntN(4) {
	case 0:
		p.out("i64.const %d", int64(p.Uint64()>>p.IntN(64)))
	case 1:
		p.out("global.get $g%d", p.IntN(2))
	case 2:
		p.out("memory.size i64.extend_i32_u")
	default:
		p.out("local.get %d", p.local())
	}
}

func (p *program) statement(depth int) {
	p.left--
	switch n := p.IntN(12); {
	case n < 3 || depth > 3:
		p.expr(2)
		p.out("local.set %d", p.local())
	case n == 3:
		p.expr(2)
		p.out("global.set $g%d", p.IntN(2))
	case n == 4:
		p.address()
		p.expr(2)
		p.out("i64.store")
	case n == 5:
		p.address()
		p.out("i32.const %d i32.const %d memory.fill", p.IntN(256), p.IntN(300))
	case n == 6:
		p.address()
		p.address()
		p.out("i32.const %d memory.copy", p.IntN(300))
	case n == 7:
		p.address()
		p.out("i32.const %d i32.const %d memory.init 0", p.IntN(6), p.IntN(6))
	case n == 8:
		p.expr(1)
		p.out("i32.wrap_i64 if")
		p.statement(depth + 1)
		p.out("else")
		p.statement(depth + 1)
		p.out("end")
	case n == 9 && p.loops < programLocals-6:
		p.loop(depth)
	case n == 10:
		p.out("block block block")
		p.expr(1)
		p.out("i32.wrap_i64 br_table 0 1 2 0 end")
		p.statement(depth + 1)
		p.out("end")
		p.statement(depth + 1)
		p.out("end")
	default:
		p.out("block")
		p.statement(depth + 1)
		p.expr(1)
		p.out("i64.eqz br_if 0")
		p.statement(depth + 1)
		p.out("end")
	}
}

// loop turns up to eight times, back by br_if, br or br_table.
func (p *program) loop(depth int) {
	n := 6 + p.loops
	p.loops++
	p.out("i64.const %d local.set %d block loop", p.IntN(8)+1, n)
	p.statement(depth + 1)
	p.out("local.get %d i64.const 1 i64.sub local.tee %d", n, n)
	switch p.IntN(3) {
	case 0:
		p.out("i64.eqz i32.eqz br_if 0")
	case 1:
		p.out("i64.eqz br_if 1 br 0")
	default:
		p.out("i64.eqz br_table 0 1")
	}
	p.out("end end\n")
}

// outcome is all that can be seen of calls of a module.
type outcome struct {
	results []string
	memory  string
	fuel    int64 // used
}

// runs calls all functions of a module with some arguments. slice is the fuel of a refill; 0 = the module has no meter.
func runs(t *testing.T, wasm []byte, slice int64) outcome {
	t.Helper()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(features))
	defer rt.Close(ctx)
	given := slice
	again := func(_ context.Context, m api.Module, _ []uint64) {
		g := m.ExportedGlobal(Global).(api.MutableGlobal)
		given += slice - int64(g.Get()) // what is owed, and a slice
		g.Set(uint64(slice))
	}
	if _, err := rt.NewHostModuleBuilder(Module).NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(again), nil, nil).
		Export(Refill).Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := rt.Instantiate(ctx, wasm)
	if err != nil {
		t.Fatalf("%v", err)
	}
	var o outcome
	for _, arg := range []uint64{0, 1, 77, 1 << 40} {
		for f := range programFuncs {
			got, err := m.ExportedFunction(fmt.Sprint("f", f)).Call(ctx, arg)
			text := fmt.Sprint(got)
			if err != nil {
				text, _, _ = strings.Cut(err.Error(), "\n")
			}
			o.results = append(o.results, text)
		}
	}
	b, _ := m.Memory().Read(0, m.Memory().Size())
	o.memory = string(b)
	if slice > 0 {
		o.fuel = given - int64(m.ExportedGlobal(Global).Get())
	}
	return o
}

// TestRandomModules: a module and what the meter makes of it give the same results, traps and memory, and the fuel used
// does not depend on how it is sliced.
func TestRandomModules(t *testing.T) {
	traps, refills := 0, 0
	for seed := range uint64(150) {
		wasm := assemble(t, randomModule(seed))
		want := runs(t, wasm, 0)
		var fuel int64
		for _, slice := range []int64{1 << 40, 1000, 7, 1} {
			metered, err := Rewrite(wasm, Options{Budget: slice})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			got := runs(t, metered, slice)
			if fmt.Sprint(got.results) != fmt.Sprint(want.results) {
				t.Fatalf("seed %d, slices of %d: %v; the original gives %v", seed, slice, got.results, want.results)
			}
			if got.memory != want.memory {
				t.Fatalf("seed %d, slices of %d: the memories differ", seed, slice)
			}
			if fuel == 0 {
				fuel = got.fuel
			}
			if got.fuel != fuel || fuel <= 0 {
				t.Fatalf("seed %d: %d fuel in slices of %d; %d in one", seed, got.fuel, slice, fuel)
			}
			refills += int(fuel / slice)
		}
		for _, r := range want.results {
			if strings.HasPrefix(r, "wasm error") {
				traps++
			}
		}
	}
	t.Logf("%d traps, some %d refills", traps, refills)
	if traps == 0 || traps > 150*16*3/4 || refills < 1000 {
		t.Errorf("%d traps of %d calls, %d refills: the modules show too little", traps, 150*16, refills)
	}
}
