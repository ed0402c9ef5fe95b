package host

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// tables makes a function of n br_table of k labels each: to k blocks, or all to one.
func tables(n, k int, one bool) string {
	var b strings.Builder
	b.WriteString("(func (param i32) ")
	for range n {
		if one {
			b.WriteString("block local.get 0 br_table" + strings.Repeat(" 0", k) + " end\n")
			continue
		}
		b.WriteString(strings.Repeat("block ", k) + "local.get 0 br_table")
		for i := range k {
			fmt.Fprintf(&b, " %d", i)
		}
		b.WriteString(strings.Repeat(" end", k) + "\n")
	}
	return b.String() + ")"
}

// TestCompileBombs: what would compile for long, up to minutes without the bounds, is refused before it is compiled,
// and the error names the function, the figure and the limit.
func TestCompileBombs(t *testing.T) {
	h := newHost(t, Config{})
	f := func(name, functions string, want ...string) {
		t.Helper()
		s, err := h.Load(ctx, name, assemble(t, `(module (memory (export "memory") 1)`+functions+")"), Options{})
		if err == nil {
			s.Close(ctx)
			t.Errorf("%s: loaded", name)
			return
		}
		for _, w := range append(want, `module "`+name+`" is refused: meter: function `, "long to compile: split") {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v; want %q in it", name, err, w)
			}
		}
	}
	f("200 tables of 4,000", tables(200, 4000, false), "function 0: it has 800", "the limit is 5000")
	f("40 tables to one block", tables(40, 4000, true), "function 0: it has 160", "the limit is 5000")
	f("a function each", strings.Repeat(tables(1, 4000, true), 40), "function 24:", "may take 60 s to compile; the limit is 60 s")
	f("locals", "(func (param i32) (local"+strings.Repeat(" i32", 800)+") "+strings.Repeat("local.get 0 if i32.const 7 local.set 9 end ", 3400)+")",
		"function 0: it may take 1", "the limit is 10 s")
	f("40,000 ifs", "(func (param i32) "+strings.Repeat("local.get 0 if end ", 40_000)+")", "the limit is 5000")
	f("40,000 loops", "(func "+strings.Repeat("loop end ", 40_000)+")", "the limit is 5000")
	f("straight", "(func (param i32) "+strings.Repeat("local.get 0 i32.const 1 i32.add local.set 0 ", 400_000)+")", "bytes; the limit is 1048576")
}

// TestCompilingHoldsNobodyUp: while a module compiles for seconds, others are loaded.
func TestCompilingHoldsNobodyUp(t *testing.T) {
	h := newHost(t, Config{Slots: 1})
	slow := assemble(t, `(module (memory (export "memory") 1)`+
		strings.Repeat("(func (param i32) "+strings.Repeat("local.get 0 if end ", 4400)+")", 2)+")")
	done := make(chan error, 1)
	go func() {
		_, err := h.Load(ctx, "slow", slow, Options{}) // and refused after that: it exports nothing
		done <- err
	}()
	for range 3 {
		load(t, h, wat(t, "tiny"), Options{})
	}
	select {
	case err := <-done:
		t.Errorf("the others were loaded after it: %v", err)
	default:
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), `no func`) {
		t.Errorf("the slow one: %v", err)
	}
}

// TestCompilationIsGivenUp: a module that is not done in its time is refused by name, at once, and others go on.
func TestCompilationIsGivenUp(t *testing.T) {
	h := newHost(t, Config{Slots: 1})
	slowFunctions := func(n int) []byte {
		return assemble(t, `(module (memory (export "memory") 1)`+
			strings.Repeat("(func (param i32) "+strings.Repeat("local.get 0 if end ", 4400)+")", n)+")")
	}
	slow := slowFunctions(2)
	h.codes.compiler.limit = time.Millisecond
	_, err := h.Load(ctx, "slow", slow, Options{})
	if err == nil || !strings.Contains(err.Error(), `module "slow"`) || !strings.Contains(err.Error(), "not done after 1ms of a processor; split") {
		t.Errorf("got %v; want it refused by name", err)
	}
	h.codes.compiler.limit = compileTime
	if _, again := h.Load(ctx, "slow", slow, Options{}); again == nil || again.Error() != err.Error() {
		t.Errorf("the same module once more: %v; want it refused at once", again)
	}
	load(t, h, wat(t, "tiny"), Options{})
	stopped, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if _, err := h.Load(stopped, "another", slowFunctions(3), Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v; want the caller's deadline", err)
	}
}

// TestGoodGuestOnABusyMachine: a Go guest is compiled while every processor is kept busy by two others: it is
// measured by what it uses itself.
func TestGoodGuestOnABusyMachine(t *testing.T) {
	var stop atomic.Bool
	defer stop.Store(true)
	for range 2 * runtime.GOMAXPROCS(0) {
		go func() {
			for !stop.Load() {
			}
		}()
	}
	h := newHost(t, Config{Slots: 1})
	s, err := h.Load(ctx, "guest", goGuest(t), Options{PickTime: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s.Close(ctx)
}
