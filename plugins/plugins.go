// Package plugins holds the four standard strategies: each is a folder with the strategy as an importable package, and
// its module/main.go, from which make builds the wasm that is embedded here.
//
// The built-ins run through the same sandbox as everybody's strategies: they prove that the contract suffices, and a
// fault in one is answered by the host's fallback. The native forms serve as the oracle in tests and benchmarks.
//
// The folder builtin holds a placeholder, so that a plain go build works in a fresh checkout; such a binary says what
// is missing when a pool wants a strategy. The modules are byte-reproducible and never committed.
package plugins

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/warmpath/warmpath/plugins/kvaware"
	"github.com/warmpath/warmpath/plugins/prefixaware"
	"github.com/warmpath/warmpath/plugins/roundrobin"
	"github.com/warmpath/warmpath/plugins/session"
	"github.com/warmpath/warmpath/sdk"
)

//go:embed all:builtin
var modules embed.FS

var names = []string{"prefixaware", "kvaware", "session", "roundrobin"}

// Names lists the built-in strategies, the default first.
func Names() []string { return append([]string(nil), names...) }

// Builtin returns the wasm of a built-in strategy.
func Builtin(name string) ([]byte, error) {
	if Native(name) == nil {
		return nil, fmt.Errorf("plugins: no strategy %q is built in; there are %s", name, strings.Join(names, ", "))
	}
	wasm, err := modules.ReadFile("builtin/" + name + ".wasm")
	if err != nil {
		return nil, fmt.Errorf("plugins: strategy %q is not in this binary; run make modules, then build again", name)
	}
	return wasm, nil
}

// Native returns a built-in strategy as Go code outside the sandbox, nil if there is none of that name.
func Native(name string) sdk.Strategy {
	switch name {
	case "prefixaware":
		return prefixaware.New()
	case "kvaware":
		return kvaware.New()
	case "session":
		return session.New()
	case "roundrobin":
		return roundrobin.New()
	}
	return nil
}

// ReasonText says in words what a strategy's reason code means. The codes are shared by the built-ins; those of another
// module are its own, and are told by number.
func ReasonText(strategy string, code uint16) string {
	if !slices.Contains(names, strategy) {
		return fmt.Sprintf("reason %d", code)
	}
	return sdk.Reason(code).String()
}
