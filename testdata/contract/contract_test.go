package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
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
		got, err := os.ReadFile(filepath.Join("../..", l.path()))
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
		b, err := os.ReadFile(filepath.Join("../..", l.path()))
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		if l.apart {
			continue
		}
		for _, r := range []reflect.Type{reflect.TypeFor[abi.Header](), reflect.TypeFor[abi.Row](), reflect.TypeFor[abi.Outcome](),
			reflect.TypeFor[abi.KVEvent](), reflect.TypeFor[abi.Talk](), reflect.TypeFor[abi.Holder](), reflect.TypeFor[abi.Tier]()} {
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

// The WIT has each record with its fields in their order, each import and each export, and nothing else. A field's type and
// offset are the compiler's, and a function has the parameters and results of the contract.
func TestWIT(t *testing.T) {
	b, err := os.ReadFile("../../docs/warmpath.wit")
	if err != nil {
		t.Fatal(err)
	}
	wire := map[reflect.Kind]string{reflect.Uint32: "u32", reflect.Int32: "s32", reflect.Uint64: "u64", reflect.Int64: "s64",
		reflect.Float32: "f32", reflect.Float64: "f64"}
	var want []string
	for _, r := range []reflect.Type{reflect.TypeFor[abi.Header](), reflect.TypeFor[abi.Row](), reflect.TypeFor[abi.Outcome](),
		reflect.TypeFor[abi.KVEvent](), reflect.TypeFor[abi.Talk](), reflect.TypeFor[abi.Holder](), reflect.TypeFor[abi.Tier]()} {
		want = append(want, "record "+strings.ReplaceAll(snake(r.Name()), "_", "-"))
		for i := range r.NumField() {
			f := r.Field(i)
			want = append(want, fmt.Sprintf("%s: %s %d", strings.ReplaceAll(snake(f.Name), "_", "-"), wire[f.Type.Kind()], f.Offset))
		}
	}
	size := map[string]string{"s32": "32", "u32": "32", "s64": "64", "u64": "64", "f64": "f64"}
	core := map[abi.Type]string{abi.I32: "32", abi.I64: "64", abi.F64: "f64"}
	for _, list := range [][]abi.Func{abi.Imports, abi.Exports} {
		for _, f := range list {
			one := "func " + strings.ReplaceAll(f.Name, "_", "-")
			for _, p := range append(slices.Clone(f.Params), f.Results...) {
				one += " " + core[p]
			}
			if f.Name != "_initialize" && f.Name != abi.Marker { // which are no names in WIT
				want = append(want, one)
			}
		}
	}
	var got []string
	field := regexp.MustCompile(`^%?([a-z0-9-]+): ([suf]\d\d), // (\d+): \S`)
	function := regexp.MustCompile(`^(?:export )?%?([a-z0-9-]+): func\((.*)\)(?: -> (\w+))?;$`)
	param := regexp.MustCompile(`: (\w+)`)
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		switch m, f := field.FindStringSubmatch(line), function.FindStringSubmatch(line); {
		case strings.HasPrefix(line, "//"), line == "", line == "}":
		case strings.HasPrefix(line, "record "):
			got = append(got, strings.TrimSuffix(line, " {"))
		case m != nil:
			got = append(got, fmt.Sprintf("%s: %s %s", m[1], m[2], m[3]))
		case f != nil:
			one := "func " + f[1]
			for _, p := range param.FindAllStringSubmatch(f[2]+": "+f[3], -1) {
				one += " " + size[p[1]]
			}
			got = append(got, one)
		case strings.HasPrefix(line, "package "), strings.HasPrefix(line, "interface "), strings.HasPrefix(line, "world "),
			line == "import host;":
		default:
			t.Errorf("a line that is no part of the contract: %s", line)
		}
	}
	if !slices.Equal(got, want) {
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("line %d of the contract differs:\n%q\n%q", i, got[min(i, len(got)):min(i+1, len(got))], want[min(i, len(want)):min(i+1, len(want))])
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
