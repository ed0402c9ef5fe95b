package meter

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
)

// shapes of functions that take long to compile for their size, each by another way.
func slowFunctions() map[string]string {
	repeat := strings.Repeat
	locals := func(n, forks int, body string, args int) string {
		var b strings.Builder
		b.WriteString("(func (param i32) (local" + repeat(" i32", n) + ") ")
		for i := range forks {
			fmt.Fprintf(&b, body, []any{1 + i%n, 1 + (i+1)%n}[:args]...)
		}
		for i := range n {
			fmt.Fprintf(&b, "local.get %d i32.const 0 i32.store ", 1+i)
		}
		return b.String() + ")"
	}
	const loop = "loop local.get %d i32.const 7 i32.add local.tee %d br_if 0 end "
	const fork = "local.get 0 if i32.const 7 local.set %d end "
	return map[string]string{
		"ifs":         "(func (param i32) " + repeat("local.get 0 if end ", 2400) + ")",
		"straight":    "(func (param i32) " + repeat("local.get 0 i32.const 1 i32.add local.set 0 ", 140_000) + ")",
		"loads":       "(func (param i32) " + repeat("local.get 0 i32.load local.set 0 ", 35_000) + ")",
		"few, loops":  locals(30, 700, loop, 2),
		"many, loops": locals(400, 400, loop, 2),
		"few, ifs":    locals(100, 1500, fork, 1),
		"many, ifs":   locals(800, 800, fork, 1),
		"calls":       "(func $e) (func $f (param i32) " + repeat("local.get 0 call $f ", 50_000) + ")",
		"parameters": "(func (param i32) " + repeat("local.get 0 ", 100) +
			repeat("local.get 0 if (param"+repeat(" i32", 100)+") (result"+repeat(" i32", 100)+") end ", 1500) + repeat("drop ", 100) + ")",
	}
}

// TestCompileWork: what the meter estimates is at least what wazero takes of a processor, whatever makes the function
// slow: so a module that passes is compiled within maxWork. go test -v prints both.
func TestCompileWork(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("it takes seconds, and the race detector's own time is no module's")
	}
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(features))
	defer rt.Close(ctx)
	refill(t, rt)
	for name, functions := range slowFunctions() {
		wasm := assemble(t, "(module (memory 1)"+functions+")")
		metered, work, err := rewrite(wasm, Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		least := time.Hour
		for range 12 { // a busy machine makes all but a few slow
			before := processorTime(t)
			cm, err := rt.CompileModule(ctx, metered)
			least = min(least, processorTime(t)-before)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			_ = cm.Close(ctx)
			if least <= time.Duration(work)+50*time.Millisecond {
				break
			}
		}
		t.Logf("%-12s %8v of %8v", name, least.Round(time.Millisecond), time.Duration(work).Round(time.Millisecond))
		if least > time.Duration(work)+50*time.Millisecond {
			t.Errorf("%s takes %v to compile; estimated are %v", name, least, time.Duration(work))
		}
	}
}

// processorTime returns what this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
