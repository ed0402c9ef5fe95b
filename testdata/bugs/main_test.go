package bugs

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// record names the column of findings.md that is to be written.
var record = flag.String("record", "", "write what was measured into findings.md: before or after")

// built is the daemon that all cases start.
var built string

func TestMain(m *testing.M) {
	flag.Parse()
	// The cases wait for clocks, not for processors: all at once cost no more than one after another.
	if err := flag.Set("test.parallel", "48"); err != nil {
		panic(err)
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "warmpath-bugs")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if built, err = builtIn(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// builtIn returns the daemon of BIN, or builds one.
func builtIn(dir string) (string, error) {
	if named := os.Getenv("BIN"); named != "" {
		return filepath.Abs(named)
	}
	bin := filepath.Join(dir, "warmpath")
	build := exec.Command("go", "build", "-tags", "grpcnotrace", "-buildvcs=false", "-o", bin, "../../daemon/warmpath")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
}
