// Package sbomcheck measures the binary, and holds the bill of materials of testdata/release/sbom to CycloneDX's own schema. A module of its own: the
// schema comes with CycloneDX/cyclonedx-go (Apache-2.0), which stays out of the daemon's go.mod as all that reads JSON
// Schema does.
package sbomcheck

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemas are the files of version 1.5, by the names under which they refer to each other.
var schemas = map[string]string{
	"bom-1.5.schema.json":  "bom-1.5.schema.json",
	"spdx.schema.json":     "spdx.schema.json",
	"jsf-0.82.schema.json": "jsf-0.82.schemax.json",
}

const at = "http://cyclonedx.org/schema/"

// schema compiles CycloneDX's schema, which stands in the module's folder.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	for name, file := range schemas {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "schema", file))
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource(at+name, v); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.Compile(at + "bom-1.5.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// daemon returns the path of the daemon's binary, as make build makes it.
func daemon(t *testing.T) string {
	t.Helper()
	binary := os.Getenv("BIN")
	if binary == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("BIN is not set")
		}
		t.Skip("SKIPPED: BIN names no binary of warmpath; make build, then BIN=$PWD/bin/warmpath")
	}
	return binary
}

// TestTheBinaryIsSmall finds a cause that adds megabytes: the binary has 36.3 MB. If any package calls a method by its name, as
// text/template does, the linker keeps every method, which is 12 MB more. The built-in modules without compression are 5 MB.
func TestTheBinaryIsSmall(t *testing.T) {
	info, err := os.Stat(daemon(t))
	if err != nil {
		t.Fatal(err)
	}
	const most = 38_000_000
	if info.Size() > most {
		t.Errorf("%d bytes; at most %d", info.Size(), most)
	}
}

// TestTheBillFitsItsSchema: that of the daemon's binary, BIN, as make release makes it.
func TestTheBillFitsItsSchema(t *testing.T) {
	binary := daemon(t)
	out := filepath.Join(t.TempDir(), "a.cdx.json")
	write := exec.Command("testdata/run", "release/sbom", "-version", "v1.2.3", "-o", out, binary)
	write.Dir = "../../.."
	if said, err := write.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	s := schema(t)
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Error(err)
	}
	wrong, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(string(text), `"type": "library"`, `"type": "lib"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if s.Validate(wrong) == nil {
		t.Error("the schema takes a type of component that there is not")
	}
	var b cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&b); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, c := range *b.Components {
		names[c.Name] = true
	}
	if b.Metadata.Component.Version != "v1.2.3" || !names["std"] || !names["github.com/tetratelabs/wazero"] {
		t.Errorf("%+v of %v", b.Metadata.Component, names)
	}
}
