// Package plugins holds the built-in strategies: each is a folder with the strategy as an importable package, and
// its module/main.go, from which make builds the wasm that is embedded here.
//
// The built-ins run through the same sandbox as everybody's strategies: they prove that the contract suffices, and a
// fault in one is answered by the host's fallback. The native forms serve as the oracle in tests and benchmarks.
//
// The folder builtin holds a placeholder, so that a plain go build works in a fresh checkout; such a binary names what
// is missing when a pool wants a strategy. The modules are byte-reproducible and never committed.
package plugins

import (
	"embed"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/warmpath/warmpath/plugins/kvaware"
	"github.com/warmpath/warmpath/plugins/prefixaware"
	"github.com/warmpath/warmpath/plugins/roundrobin"
	"github.com/warmpath/warmpath/plugins/session"
	"github.com/warmpath/warmpath/sdk"
)

//go:embed all:builtin
var modules embed.FS

// builtins lists the built-in strategies, the default first. It is the only list of them: make reads the rows for what
// it builds, and conf gets the names from the daemon. Another strategy takes a row here, its package, and its
// module/main.go.
var builtins = []struct {
	name string
	make func() sdk.Strategy
}{
	{"prefixaware", prefixaware.New},
	{"kvaware", kvaware.New},
	{"session", session.New},
	{"roundrobin", roundrobin.New},
}

// Names lists the built-in strategies, the default first.
func Names() []string {
	names := make([]string, len(builtins))
	for i := range builtins {
		names[i] = builtins[i].name
	}
	return names
}

// Builtin returns the wasm of a built-in strategy.
func Builtin(name string) ([]byte, error) {
	if index(name) < 0 {
		return nil, fmt.Errorf("plugins: no strategy %q is built in; there are %s", name, strings.Join(Names(), ", "))
	}
	packed, err := modules.Open("builtin/" + name + ".wasm.zst")
	if err != nil {
		return nil, fmt.Errorf("plugins: strategy %q is not in this binary; run make modules, then build again", name)
	}
	defer packed.Close()
	wasm, err := unpack(packed)
	if err != nil {
		return nil, fmt.Errorf("plugins: strategy %q in this binary is damaged; run make modules, then build again: %w",
			name, err)
	}
	return wasm, nil
}

// unpack takes some 10 ms for a module. Packed, the four take 2 MB of the binary in place of 8.
func unpack(packed io.Reader) ([]byte, error) {
	r, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// Native returns a built-in strategy as Go code outside the sandbox, nil if there is none of that name.
func Native(name string) sdk.Strategy {
	if i := index(name); i >= 0 {
		return builtins[i].make()
	}
	return nil
}

// index returns the row of a built-in strategy, -1 if there is none of that name.
func index(name string) int {
	for i := range builtins {
		if builtins[i].name == name {
			return i
		}
	}
	return -1
}

// ReasonText returns in words what a strategy's reason code means. The built-ins share their codes; those of another
// module are its own, and are shown as numbers.
func ReasonText(strategy string, code uint16) string {
	if index(strategy) < 0 && code != uint16(sdk.ReasonNone) {
		return fmt.Sprintf("reason %d", code)
	}
	return sdk.Reason(code).String()
}

// MaxModule is the most bytes that a module's file may have: no more is read than the sandbox would take.
const MaxModule = 64 << 20

// Read reads a strategy's wasm: the file at path, or the built-in of that name if there is no path.
func Read(name, path string) ([]byte, error) {
	if path == "" {
		return Builtin(name) // its error names the remedy
	}
	unread := func(err error) error {
		return fmt.Errorf("strategy %q cannot be read; put the module there or correct strategies.%s.path: %w",
			name, name, err)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, unread(err)
	case !info.Mode().IsRegular(): // to open a FIFO waits for ever, and every later reload would wait with it
		return nil, unread(fmt.Errorf("%s is not a regular file", path))
	case info.Size() > MaxModule:
		return nil, fmt.Errorf("strategy %q: %s has %d bytes; the limit is %d: build it without what it "+
			"does not need, as debug information and other custom sections", name, path, info.Size(), MaxModule)
	}
	wasm, err := os.ReadFile(path)
	if err != nil {
		return nil, unread(err)
	}
	return wasm, nil
}
