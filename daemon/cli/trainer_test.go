package cli

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// TestTrainer runs the trainer of docs/rl.md: it starts workers, registers them, gives them new weights and removes one.
func TestTrainer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs servers")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	port := porttest.Row(t, 5)
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", port+i) }
	ports := strings.NewReplacer("127.0.0.1:8080", at(0), "127.0.0.1:9090", at(1), "127.0.0.1:9001", at(2), "{9001 + i}",
		fmt.Sprintf("{%d + i}", port+2))
	dir := workplace(t)
	write(t, filepath.Join(dir, "admin.token"), "sesame-sesame")
	for _, m := range fence.FindAllStringSubmatch(read(t, filepath.Join("..", "..", "docs", "rl.md")), -1) {
		name := map[string]string{"toml": "warmpath.toml", "python": "trainer.py"}[m[1]]
		write(t, filepath.Join(dir, name), ports.Replace(m[2]))
	}
	serve := warmpath(t, dir, "serve --config warmpath.toml")
	defer serve.stop()
	serve.says("msg=serving", 1)
	trainer := exec.CommandContext(t.Context(), python, "trainer.py")
	trainer.Dir = dir
	out, err := trainer.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"version 1 at ['engine-0', 'engine-1', 'engine-2']", "version 2 at ", "left: ['engine-0', 'engine-1'] "} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
}
