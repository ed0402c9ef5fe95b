// Sbom writes a bill of materials of a Go binary in CycloneDX's JSON: the program, Go's standard library, and every
// module that is linked in, with its version and sum, as the linker has noted them.
//
//	testdata/run release/sbom -version v1.2.3 -o FILE.cdx.json BINARY
//
// The same binary gives the same bytes: there is no serial number and no time in it. The six fields of the format that
// are needed stand in bill; cyclonedx-go, the format's own library, would come into go.mod and so to those who import
// the SDK.
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

func main() {
	out := flag.String("o", "warmpath.cdx.json", "file to write")
	version := flag.String("version", "dev", "of the binary")
	flag.Parse()
	if err := write(*out, *version, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// bill is a CycloneDX document, https://cyclonedx.org/docs/1.5/json/.
type bill struct {
	Format   string `json:"bomFormat"`
	Spec     string `json:"specVersion"`
	Version  int    `json:"version"`
	Metadata struct {
		Component part `json:"component"`
	} `json:"metadata"`
	Components   []part  `json:"components"`
	Dependencies []needs `json:"dependencies"`
}

type part struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	URL     string `json:"purl"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type needs struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn"`
}

func write(out, version string, binaries []string) error {
	if len(binaries) != 1 {
		return errors.New("name one binary")
	}
	info, err := buildinfo.ReadFile(binaries[0])
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(billOf(info, version), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(text, '\n'), 0o644)
}

func billOf(info *debug.BuildInfo, version string) *bill {
	b := &bill{Format: "CycloneDX", Spec: "1.5", Version: 1}
	b.Metadata.Component = partOf("application", info.Main.Path, version, "")
	b.Components = append(b.Components, partOf("library", "std", strings.TrimPrefix(info.GoVersion, "go"), ""))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Components = append(b.Components, partOf("library", m.Path, m.Version, m.Sum))
	}
	n := needs{Ref: b.Metadata.Component.Ref}
	for _, p := range b.Components {
		n.On = append(n.On, p.Ref)
	}
	b.Dependencies = []needs{n}
	return b
}

// partOf names a module as package URLs do. sum is that of go.sum, whose h1: is a SHA-256 over the module's files.
func partOf(kind, path, version, sum string) part {
	url := "pkg:golang/" + path + "@" + version
	p := part{Type: kind, Ref: url, Name: path, Version: version, URL: url}
	if digest, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); err == nil && len(digest) > 0 {
		p.Hashes = []hash{{"SHA-256", hex.EncodeToString(digest)}}
	}
	return p
}
