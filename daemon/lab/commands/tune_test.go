package commands

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	figures "github.com/warmpath/warmpath/daemon/lab/report"
)

// tune runs the command in this process.
func tune(t *testing.T, args ...string) (string, error) {
	c := labTuneCommand()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(io.Discard)
	c.SetArgs(args)
	c.SilenceUsage, c.SilenceErrors = true, true
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

// tune runs, ranks and writes a small grid.
func TestLabTune(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tune.json")
	out, err := tune(t, "A", "--requests", "30", "--seeds", "1", "--rule", "loadaware",
		"--strategy", "native:prefixaware", "--json", file)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"loadaware beta=0.3", "loadaware beta=1", "native:prefixaware"} {
		if !strings.Contains(out, want) {
			t.Errorf("the ranking lacks %q:\n%s", want, out)
		}
	}
	if n := strings.Count(out, "\n* "); n != 2 {
		t.Errorf("%d rows have a star; want one of each rule:\n%s", n, out)
	}
	b, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	r, err := figures.ReadJSON(b)
	if want := 6 + 1; err != nil || len(r.Runs) != want {
		t.Errorf("%d runs in the file, %v; want %d", len(r.Runs), err, want)
	}
}

func TestLabTuneRefuses(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		if out, err := tune(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v\n%s\nwant an error that says %q", args, err, out, want)
		}
	}
	f("no rule", "--rule", "fastest")
	f("no scenario", "--rule", "loadaware", "nowhere")
}
