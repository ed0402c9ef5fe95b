package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/sdk/abi"
)

// The files of the contract are those that its source gives. After a change of sdk/abi: go generate ./daemon/cli/scaffold
func TestContractIsFresh(t *testing.T) {
	c, err := read("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range languages {
		want, err := l.write(c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("../..", folder, l.file))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from sdk/abi: run go generate ./daemon/cli/scaffold", l.file)
		}
	}
}

// Each field of a record stands in each language at the offset that the compiler gives it, and has a meaning; so does each
// function.
func TestContractIsWhole(t *testing.T) {
	for _, l := range languages {
		b, err := os.ReadFile(filepath.Join("../..", folder, l.file))
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		if l.stands {
			continue
		}
		for _, r := range []reflect.Type{reflect.TypeFor[abi.Header](), reflect.TypeFor[abi.Row](), reflect.TypeFor[abi.Outcome](),
			reflect.TypeFor[abi.KVEvent](), reflect.TypeFor[abi.Holder](), reflect.TypeFor[abi.Tier]()} {
			for _, f := range reflect.VisibleFields(r) {
				if place := fmt.Sprintf("// %d: ", f.Offset); !has(text, snake(f.Name), place) {
					t.Errorf("%s: %s.%s is missing at %d", l.file, r.Name(), f.Name, f.Offset)
				}
			}
		}
		for _, list := range [][]abi.Func{abi.Imports, abi.Exports} {
			for _, f := range list {
				if f.Name != "_initialize" && !strings.Contains(text, f.Name) {
					t.Errorf("%s does not have %s", l.file, f.Name)
				}
			}
		}
		for name, value := range map[string]int32{"FlagOnly": int32(abi.FlagOnly), "Hold": abi.Hold, "ErrLimit": abi.ErrLimit,
			"StrHeader": abi.StrHeader, "WantClassify": int32(abi.WantClassify), "RowAdaptersFull": int32(abi.RowAdaptersFull),
			"ReasonCost": 10, "NoZone": abi.NoZone} {
			if !has(text, l.prefix+strings.ToUpper(snake(name)), fmt.Sprintf("= %d", value)) {
				t.Errorf("%s: %s is not %d", l.file, name, value)
			}
		}
	}
}

// has reports whether a line has both.
func has(text, a, b string) bool {
	for line := range strings.Lines(text) {
		if strings.Contains(line, a) && strings.Contains(line, b) {
			return true
		}
	}
	return false
}

func TestNames(t *testing.T) {
	for in, want := range map[string]string{"GPU": "gpu", "FreeGPU": "free_gpu", "InFlight": "in_flight", "C1": "c1",
		"InvBWL1": "inv_bw_l1", "TTFT": "ttft", "KVUsage": "kv_usage", "KVEvent": "kv_event", "WantKVEvents": "want_kv_events",
		"C2": "c2", "TierL1": "tier_l1", "StrModel": "str_model", "MaxMany": "max_many", "RejectLen": "reject_len"} {
		if got := snake(in); got != want {
			t.Errorf("%s is %s; want %s", in, got, want)
		}
	}
}

// A function whose comment is missing, or gives it other parameters, is refused.
func TestFunctionsMustBeDescribed(t *testing.T) {
	for _, f := range []abi.Func{{Name: "nobody", Results: []abi.Type{abi.I32}}} {
		if _, err := functions(nil, []abi.Func{f}); err == nil || !strings.Contains(err.Error(), "nobody") {
			t.Errorf("%v; want that the comment lacks nobody", err)
		}
	}
	f := function{Name: "own"}
	if err := f.signature(abi.Func{Name: "own", Params: []abi.Type{abi.I64}}, "key, value", ""); err == nil {
		t.Error("a parameter too many is taken")
	}
}
