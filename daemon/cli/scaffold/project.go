package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
)

//go:generate ../../../testdata/run contract -root ../../..

//go:embed template contract
var templates embed.FS

// Languages are those that a project can be written in, the default first.
var Languages = []string{"go", "c", "assemblyscript", "rust", "zig"}

// Skeletons are the strategies that a project can begin with, the default first.
var Skeletons = []string{"cost", "bandit"}

// contracts are where a project has the contract with the host.
var contracts = map[string][]string{"c": {"warmpath.h"}, "assemblyscript": {"assembly/warmpath.ts", "warmpath.mjs"},
	"rust": {"src/warmpath.rs"}, "zig": {"warmpath.zig"}}

// ErrExists means that the project's folder is there already.
var ErrExists = errors.New("scaffold: the folder exists; choose another name, or remove it")

// names are the names that a project may have. The configuration allows dots and capitals in a strategy's name too, but
// this one also names a Go module, a package of npm and a crate.
var names = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,30}$`)

// New writes the project of a strategy into the folder dir/name, which must not exist, and returns the folder's path.
// It leaves nothing of a project that it cannot write completely.
func New(dir, name, language, skeleton, version string) (string, error) {
	if !names.MatchString(name) {
		return "", fmt.Errorf("scaffold: %.40q is no name of a project: a small letter, then up to 30 small letters, "+
			"digits, dashes and underscores; the configuration may give the strategy another name", name)
	}
	if !slices.Contains(Languages, language) {
		return "", fmt.Errorf("scaffold: there is no project in %.40q; choose one of %s", language,
			strings.Join(Languages, ", "))
	}
	if !slices.Contains(Skeletons, skeleton) {
		return "", fmt.Errorf("scaffold: no project begins as %.40q; choose one of %s", skeleton,
			strings.Join(Skeletons, ", "))
	}
	to := filepath.Join(dir, name)
	if err := os.Mkdir(to, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("%w: %s", ErrExists, to)
		}
		return "", fmt.Errorf("scaffold: the project's folder cannot be made: %w", err)
	}
	p := project{Name: name, Language: language, Skeleton: skeleton, Version: version}
	if err := p.write(to); err != nil {
		return "", errors.Join(err, os.RemoveAll(to))
	}
	return to, nil
}

// project has the fields that the templates use, such as {{.Name}}.
type project struct {
	Name, Language, Skeleton, Version string
}

func (p *project) write(to string) error {
	about, err1 := templates.ReadFile("template/about/" + p.Language + ".md")
	what, err2 := templates.ReadFile("template/what/" + p.Skeleton + ".md")
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("scaffold: %w", err)
	}
	fields := strings.NewReplacer("{{.About}}", strings.ReplaceAll(string(about), "{{.Version}}", p.Version),
		"{{.What}}", string(what), "{{.Name}}", p.Name, "{{.Version}}", p.Version, "{{.Module}}", moduleVersion(p.Version),
		"{{.ABI}}", fmt.Sprintf("%d.%d", abi.Version>>16, abi.Version&0xffff))
	from := []string{"template/all", "template/" + p.Language}
	if p.Skeleton != Skeletons[0] {
		from = append(from, "template/"+p.Skeleton+"/"+p.Language) // over the files of the default
	}
	for _, from := range from {
		if err := fill(from, to, fields); err != nil {
			return err
		}
	}
	if p.Language == "go" {
		return copySDK(filepath.Join(to, "warmpath"))
	}
	for _, at := range contracts[p.Language] {
		text, err := templates.ReadFile("contract/" + path.Base(at))
		if err != nil {
			return fmt.Errorf("scaffold: %w", err)
		}
		if err := put(filepath.Join(to, filepath.FromSlash(at)), text); err != nil {
			return err
		}
	}
	return nil
}

// released matches the version of a release.
var released = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

// moduleVersion returns the version of warmpath that go.mod requires. Only a release can be downloaded, by an author
// that removes the copy of the SDK.
func moduleVersion(version string) string {
	if released.MatchString(version) {
		return version
	}
	return "v0.0.0"
}

// fill writes each file below from with its fields replaced, and with its name without .tmpl. It does not use
// text/template: with that in the binary the linker keeps every exported method of every type.
func fill(from, to string, fields *strings.Replacer) error {
	return fs.WalkDir(templates, from, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := templates.ReadFile(at)
		if err != nil {
			return fmt.Errorf("scaffold: %w", err)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(at, from+"/"), ".tmpl")
		return put(filepath.Join(to, filepath.FromSlash(name)), []byte(fields.Replace(string(b))))
	})
}

// copySDK writes the SDK as a module of its own, with its examples and without its tests.
func copySDK(to string) error {
	const gomod = "module github.com/warmpath/warmpath\n\ngo 1.26.0\n"
	if err := put(filepath.Join(to, "go.mod"), []byte(gomod)); err != nil {
		return err
	}
	return fs.WalkDir(sdk.Source, ".", func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Base(at) == "source.go" {
			return err
		}
		b, err := sdk.Source.ReadFile(at)
		if err != nil {
			return fmt.Errorf("scaffold: %w", err)
		}
		return put(filepath.Join(to, "sdk", filepath.FromSlash(at)), b)
	})
}

func put(file string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("scaffold: %w", err)
	}
	if err := os.WriteFile(file, b, 0o644); err != nil {
		return fmt.Errorf("scaffold: the project cannot be written: %w", err)
	}
	return nil
}
