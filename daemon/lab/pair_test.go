package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/served"
	"github.com/warmpath/warmpath/daemon/lab/setup"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
)

// spread takes one row after the other for the answer, and the last row for the prompt; or the same one, if alone.
type spread struct{ alone bool }

func (spread) Wants() sdk.Want { return sdk.WantPair }

func (s spread) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	choices := uint64(len(workers)) - uint64(r.Prefillers)
	d, p := int(r.Seq%choices), len(workers)-1
	if s.alone {
		p = d
	}
	return r.Pair(d, p)
}

// module is spread as a module.
func (s spread) module(t *testing.T) string {
	t.Helper()
	pair := "i32.const 1036 i32.load i32.const 1 i32.sub"
	if s.alone {
		pair = "local.get $d"
	}
	wasm, err := wasmtest.Assemble(fmt.Sprintf(`(module
		(memory (export "memory") 1)
		(func (export "warmpath_abi_1_2"))
		(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
		(func (export "wp_wants") (result i32) i32.const %d)
		(func (export "wp_pick") (result i64) (local $d i32)
			i32.const 1040 i32.load
			i32.const 1036 i32.load i32.const 1248 i32.load i32.sub i32.rem_u local.set $d
			i32.const 1252 %s i32.store
			local.get $d i64.extend_i32_u))`, abi.WantPair, pair))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), fmt.Sprint("spread-", s.alone, ".wasm"))
	if err := os.WriteFile(file, wasm, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestPairInTheLab: a strategy that names a pair is served so, whatever the scenario's rule is, inside of the sandbox and
// outside of it alike. No prefiller answers.
func TestPairInTheLab(t *testing.T) {
	const requests = 40
	sc, err := setup.Read("pd-2k")
	if err != nil {
		t.Fatal(err)
	}
	sc.Requests = requests
	c := Config{Seeds: []uint64{7}, Processors: 2, Scenarios: []*setup.Scenario{sc}}
	for _, alone := range []bool{false, true} {
		s := spread{alone}
		found, err := Find(s.module(t))
		if err != nil {
			t.Fatal(err)
		}
		native := Strategy{Name: "native", spec: served.Spec{Name: "native", Native: func() sdk.Strategy { return s }}}
		c.Strategies = append(c.Strategies, found[0], native)
	}
	rule, err := Find("roundrobin")
	if err != nil {
		t.Fatal(err)
	}
	c.Strategies = append(c.Strategies, rule...)
	runs, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	prefillers := 0
	for _, k := range sc.EachKind() {
		if k.Role == setup.RolePrefill {
			prefillers++
		}
	}
	for i, want := range []int{requests, requests, 0, 0} {
		if runs[i].Prefills != want || len(runs[i].Outcomes) != requests || runs[i].Fallbacks != 0 {
			t.Errorf("%s: %d of %d prompts at prefillers, %d fallbacks; want %d", runs[i].Strategy, runs[i].Prefills,
				len(runs[i].Outcomes), runs[i].Fallbacks, want)
		}
		for _, o := range runs[i].Outcomes {
			if o.Worker < prefillers {
				t.Fatalf("%s: worker %d of %d prefillers answers", runs[i].Strategy, o.Worker, prefillers)
			}
		}
	}
	for _, i := range []int{0, 2} {
		if marshal(t, runs[i].Outcomes) != marshal(t, runs[i+1].Outcomes) {
			t.Errorf("the module and the function differ")
		}
	}
	if n := runs[4].Prefills; n == requests {
		t.Errorf("the rule splits all %d", n)
	}
}
