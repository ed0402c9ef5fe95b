package bugs

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/warmpath/warmpath/testdata/rig"
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
		if built, err = rig.Build(context.Background(), dir, os.Getenv("BIN")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}
