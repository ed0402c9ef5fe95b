package operator

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/admin/readiness/readinesstest"
)

// TestVigil puts a pool into one state after another: each change is logged once, however often Look is called.
func TestVigil(t *testing.T) {
	var log bytes.Buffer
	v := NewVigil(slog.New(slog.NewTextHandler(&log, nil)))
	p := readinesstest.NewFleet(t, "a:starting b:starting prefiller")
	f := func(want ...string) {
		t.Helper()
		for range 3 {
			v.Look(p.Pool)
		}
		lines := strings.FieldsFunc(log.String(), func(r rune) bool { return r == '\n' })
		log.Reset()
		if len(lines) != len(want) {
			t.Fatalf("logged %q; want %q", lines, want)
		}
		for i := range want {
			if !strings.Contains(lines[i], want[i]) {
				t.Errorf("logged %q; want %q", lines[i], want[i])
			}
		}
	}
	f() // nothing is known yet
	p.Become(t, "a", "")
	f()
	p.Become(t, "b", "down")
	f()
	p.Become(t, "a", "down")
	f("level=ERROR msg=\"the pool has no worker that is up: its requests get 503\" " +
		"workers=\"[a: down: connection refused b: down: connection refused]\"")
	p.Become(t, "a", "")
	f("the pool has a worker again")
	p.Become(t, "a", "other")
	f("they_list=[other]")
	p.Become(t, "b", "m")
	f("a worker lists a model that the pool's patterns fit")
	p.Become(t, "a", "draining")
	f()
	p.Panic = true
	p.Become(t, "b", "down")
	f("its requests go to one that is not (panic = true)")
	p.Become(t, "a", "back")
	f("the pool has a worker again", "no worker lists a model")
}
