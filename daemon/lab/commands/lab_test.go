package commands

import (
	"os"
	"path/filepath"
	"testing"
)

// Scenarios of one name are told apart: else the figures of one would stand in the table of the other.
func TestScenariosOfOneName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "A.toml")
	if err := os.WriteFile(path, []byte("like = \"A\"\nworkers = 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := labFlags{strategies: []string{"native:roundrobin"}, seeds: "1"}
	c, err := f.config([]string{"A", path, "B"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"A", path, "B"} {
		if got := c.Scenarios[i].Name; got != want {
			t.Errorf("scenario %d is %q; want %q", i, got, want)
		}
	}
}
