package daemon

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/warmpath/warmpath/daemon/admin/decisions"
)

// TestPairsOfAStrategy: the gallery's pairs names who answers and who computes the prompt, as a module, before simulated
// workers with roles. A short prompt goes to two if it says so, and a long one to one. Decisions name the pair.
func TestPairsOfAStrategy(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pairs.wasm")
	c := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w -buildid=", "-o", file,
		"../docs/strategies/pairs")
	c.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, x := range []struct {
		handover     float64
		tokens, legs int
	}{{-100, 50, 10}, {100, 3000, 0}} {
		table := fmt.Sprintf("[strategies.pairs]\npath = %q\noptions = { handover = %.1f }\n", file, x.handover)
		f := startRolesWith(t, 2, 2, rolesOptions{strategy: "pairs", table: table})
		for i := range 10 {
			if err := f.ask(t.Context(), fmt.Sprint("prompt ", i), x.tokens, i%2 == 0); err != nil {
				t.Fatal(err)
			}
		}
		legs := 0
		for _, w := range f.prefill {
			legs += int(w.Stats().Finished)
		}
		if legs != x.legs || f.pinned() != 0 {
			t.Errorf("handover %v: %d prompts at prefillers, %d blocks pinned; want %d", x.handover, legs, f.pinned(), x.legs)
		}
		var kept []decisions.Decision
		f.decided("/api/v1/decisions?limit=20", &kept)
		for _, d := range kept {
			named := d.Split != nil && d.Split.Named && d.Split.Prefiller == d.PairName() && d.PairName() != d.Worker
			if d.PairName() == "" || (x.legs > 0) != named || x.legs == 0 && (d.PairName() != d.Worker || d.Split != nil) {
				t.Errorf("handover %v: by %s, pair %q, %+v", x.handover, d.Worker, d.PairName(), d.Split)
			}
		}
		if len(kept) != 10 {
			t.Errorf("%d decisions", len(kept))
		}
	}
}
