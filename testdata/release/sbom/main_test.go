package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

// TestBill: each module of a binary stands in its bill, with its sum.
func TestBill(t *testing.T) {
	b := billOf(&debug.BuildInfo{GoVersion: "go1.26.1", Main: debug.Module{Path: "example.org/a"}, Deps: []*debug.Module{
		{Path: "example.org/b", Version: "v1.0.0", Sum: "h1:AQID"},
		{Path: "example.org/c", Version: "v2.0.0", Replace: &debug.Module{Path: "example.org/d", Version: "v3.0.0"}},
	}}, "v9")
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"bomFormat":"CycloneDX","specVersion":"1.5","version":1,"metadata":{"component":{"type":"application",` +
		`"bom-ref":"pkg:golang/example.org/a@v9","name":"example.org/a","version":"v9","purl":"pkg:golang/example.org/a@v9"}},` +
		`"components":[{"type":"library","bom-ref":"pkg:golang/std@1.26.1","name":"std","version":"1.26.1","purl":"pkg:golang/std@1.26.1"},` +
		`{"type":"library","bom-ref":"pkg:golang/example.org/b@v1.0.0","name":"example.org/b","version":"v1.0.0",` +
		`"purl":"pkg:golang/example.org/b@v1.0.0","hashes":[{"alg":"SHA-256","content":"010203"}]},` +
		`{"type":"library","bom-ref":"pkg:golang/example.org/d@v3.0.0","name":"example.org/d","version":"v3.0.0",` +
		`"purl":"pkg:golang/example.org/d@v3.0.0"}],"dependencies":[{"ref":"pkg:golang/example.org/a@v9","dependsOn":[` +
		`"pkg:golang/std@1.26.1","pkg:golang/example.org/b@v1.0.0","pkg:golang/example.org/d@v3.0.0"]}]}`
	if string(text) != want {
		t.Errorf("%s; want %s", text, want)
	}
}

func TestBillOfThisTest(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var texts [2][]byte
	for i := range texts {
		out := filepath.Join(t.TempDir(), "a.cdx.json")
		if err := write(out, "v1", []string{self}); err != nil {
			t.Fatal(err)
		}
		if texts[i], err = os.ReadFile(out); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(texts[0], texts[1]) || !bytes.Contains(texts[0], []byte(`"pkg:golang/std@`)) {
		t.Errorf("two bills of one binary: %s and %s", texts[0], texts[1])
	}
	if write(filepath.Join(t.TempDir(), "x"), "v1", []string{"main.go"}) == nil {
		t.Error("a file that is no binary has a bill")
	}
}
