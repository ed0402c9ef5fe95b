package host

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/warmpath/warmpath/host/meter"
	"github.com/warmpath/warmpath/sdk/abi"
)

// code is a compiled module. All strategies with the same bytes and the same limits use one.
type code struct {
	of    codeKey
	users int // strategies; guarded by codes.mu

	mu       sync.Mutex // is held while the module is compiled
	rt       wazero.Runtime
	compiled wazero.CompiledModule
	layout   abi.Layout // of the module's version
	owns     bool       // it imports own or own_of
}

// codeKey is what the compiled code depends on.
type codeKey struct {
	sha256 string
	limits meter.Options
}

// codes are those in use. Safe for concurrent use.
type codes struct {
	compiler *compiler

	mu sync.Mutex // guards what follows
	of map[codeKey]*code
}

// take returns a module's code, which it compiles if no other strategy uses it. Each take needs a release.
func (c *codes) take(ctx context.Context, name string, wasm []byte, key codeKey) (*code, error) {
	c.mu.Lock()
	m := c.of[key]
	if m == nil {
		m = &code{of: key}
		c.of[key] = m
	}
	m.users++
	c.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.compiled != nil {
		return m, nil
	}
	err := m.compile(ctx, c.compiler, name, wasm)
	if err != nil {
		c.drop(m)
	}
	return m, err
}

// compile meters, compiles and verifies the module. The caller holds m.mu.
func (m *code) compile(ctx context.Context, by *compiler, name string, wasm []byte) error {
	metered, err := meter.Rewrite(wasm, m.of.limits)
	if err != nil {
		return fmt.Errorf("host: module %q is refused: %w", name, err)
	}
	rt, compiled, err := by.compile(ctx, metered)
	if err != nil {
		if dials(wasm) {
			err = fmt.Errorf("%w; leave out net/http: sockets do not work here", err)
		}
		return fmt.Errorf("host: compile module %q: %w", name, err)
	}
	m.layout, err = verify(name, compiled)
	if err != nil {
		_ = compiled.Close(ctx)
		return err
	}
	m.rt, m.compiled, m.owns = rt, compiled, slices.ContainsFunc(compiled.ImportedFunctions(), importsOwn)
	return nil
}

// drop forgets the code if nobody else uses it, and reports whether it has.
func (c *codes) drop(m *code) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.users--
	if m.users > 0 {
		return false
	}
	delete(c.of, m.of)
	return true
}

// release ends one use of the code, and frees it after the last.
func (c *codes) release(ctx context.Context, m *code) {
	if c.drop(m) {
		_ = m.compiled.Close(ctx)
	}
}

// verify compares a module's imports and exports with the contract, and returns the layout of its version.
func verify(name string, cm wazero.CompiledModule) (abi.Layout, error) {
	if err := verifyImports(name, cm); err != nil {
		return abi.Layout{}, err
	}
	if _, ok := cm.ExportedMemories()[abi.Memory]; !ok {
		return abi.Layout{}, fmt.Errorf("host: module %q exports no memory named %q; export it", name, abi.Memory)
	}
	have := cm.ExportedFunctions()
	if have["_start"] != nil && have["_initialize"] == nil {
		return abi.Layout{}, fmt.Errorf("host: module %q is a program (it exports _start), and a strategy is a library, "+
			"whose exports are called while it stays: build it with go build -buildmode=c-shared, clang -Wl,--no-entry, "+
			"or as a cdylib", name)
	}
	at := slices.IndexFunc(abi.Layouts, func(l abi.Layout) bool { return have[l.Marker] != nil })
	if at < 0 {
		return abi.Layout{}, fmt.Errorf("host: module %q exports no func[%s], nor that of an older minor version; "+
			"it is no strategy for this version of warmpath: build it against sdk of ABI 1.3, 1.2, 1.1 or 1.0", name, abi.Marker)
	}
	layout := abi.Layouts[at]
	for _, e := range abi.Exports {
		if e.Name == abi.Marker {
			e.Name = layout.Marker
		}
		if e.Minor > int(layout.Version&0xffff) {
			continue // the name means nothing to the module
		}
		want := signatureOf(e)
		f, ok := have[e.Name]
		switch {
		case ok && signature(f.ParamTypes(), f.ResultTypes()) == want:
		case ok:
			return layout, fmt.Errorf("host: module %q exports the wrong signature for func[%s]: %s; want %s",
				name, e.Name, signature(f.ParamTypes(), f.ResultTypes()), want)
		case !e.Optional:
			return layout, fmt.Errorf("host: module %q exports no func[%s]; want %s", name, e.Name, want)
		}
	}
	return layout, nil
}

func verifyImports(name string, cm wazero.CompiledModule) error {
	for _, f := range cm.ImportedFunctions() {
		mod, fn, _ := f.Import()
		want, ok := importable(mod, fn)
		if !ok && mod == "env" && fn == "abort" {
			return fmt.Errorf("host: module %q imports env.abort, which no strategy may use; build it with: "+
				"asc --use abort=", name)
		}
		if !ok && mod == wasiModule && strings.HasPrefix(fn, "sock_") {
			return fmt.Errorf("host: module %q imports %s.%s, which no strategy may use: sockets do not work here; "+
				"put what it needs into options, labels, headers or the store", name, mod, fn)
		}
		if !ok {
			return fmt.Errorf("host: module %q imports %s.%s, which no strategy may use; "+
				"want functions of %q or the few of WASI that a Go guest needs. "+
				"Does the strategy use files, sockets or another host's SDK?", name, mod, fn, abi.Module)
		}
		if got := signature(f.ParamTypes(), f.ResultTypes()); got != want {
			return fmt.Errorf("host: module %q imports %s.%s as %s; want %s. Build it against this version's SDK",
				name, mod, fn, got, want)
		}
	}
	return nil
}
