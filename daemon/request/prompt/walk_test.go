package prompt

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
)

func TestFields(t *testing.T) {
	f := func(raw string, whole bool, want ...string) {
		t.Helper()
		var got []string
		ok := Fields([]byte(raw), func(name, value []byte) bool {
			got = append(got, string(name), string(value))
			return string(name) != "stop"
		})
		if ok != whole || !slices.Equal(got, want) {
			t.Errorf("%s: %q, whole %v; want %q, %v", raw, got, ok, want, whole)
		}
	}
	f(`{"a": [1, {"b":2}] ,"\u0062":"x\"y"}`, true, "a", `[1, {"b":2}]`, "b", `"x\"y"`)
	f(`{"stop":1,"b":2}`, true, "stop", "1")
	f(`{"a":1`, false, "a", "1")
	f(`{"a":1}x`, false, "a", "1")
	f(`{}`, true)
	f(`[1]`, false)
	f(``, false)
}

func TestElements(t *testing.T) {
	f := func(raw string, whole bool, want ...string) {
		t.Helper()
		var got []string
		ok := Elements([]byte(raw), func(value []byte) bool {
			got = append(got, string(value))
			return true
		})
		if ok != whole || !slices.Equal(got, want) {
			t.Errorf("%s: %q, whole %v; want %q, %v", raw, got, ok, want, whole)
		}
	}
	f(` [ "a", {"b":[1]},2 ] `, true, `"a"`, `{"b":[1]}`, "2")
	f(`[]`, true)
	f(`[1,`, false, "1")
	f(`{"a":1}`, false)
}

func FuzzFields(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":2}],"c":"x\"y"}`))
	f.Add([]byte("\xef\xbb\xbf{}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var again []byte
		whole := Fields(raw, func(name, value []byte) bool {
			if !bytes.Contains(raw, value) {
				t.Fatalf("%q is not in %q", value, raw)
			}
			again = append(again, value...)
			return true
		})
		var tree map[string]json.RawMessage
		if json.Unmarshal(raw, &tree) == nil && tree != nil && !whole {
			t.Fatalf("%q is an object to encoding/json, and not to Fields", raw)
		}
	})
}
