package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/warmpath/warmpath/plugins"
)

// TestPluginCheckShowsCandidates: a module that wants candidates alone is measured with the rows that it would see.
func TestPluginCheckShowsCandidates(t *testing.T) {
	t.Parallel()
	for name, rows := range map[string][3]int{"prefixaware": {32, 40, 50}, "session": {32, 40, 50}} {
		wasm, err := plugins.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "m.wasm")
		if err := os.WriteFile(file, wasm, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := checkPlugin(t.Context(), file, pluginWish{workers: []int{32, 40, 1000}, most: 100})
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range r.Fleets {
			if f.Rows != rows[i] {
				t.Errorf("%s: %d rows of %d workers, want %d", name, f.Rows, f.Workers, rows[i])
			}
		}
	}
}
