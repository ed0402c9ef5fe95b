package host

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
)

// deep is a module whose wp_pick recurses without an end. The frame of each call has n values that live across other calls: those
// of before all at once before it recurses, those of never in code that does not run.
func deep(t testing.TB, before, never int) []byte {
	t.Helper()
	values := func(n int) (push, sum string) {
		return strings.Repeat("memory.size ", n), strings.Repeat("i32.add ", n)
	}
	push, sum := values(before)
	cold, coldSum := values(never)
	wasm, err := wasmtest.Assemble(fmt.Sprintf(`(module (memory (export "memory") 1) (func (export "warmpath_abi_1_0"))
		(global $never (mut i32) (i32.const 0))
		(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
		(func $one (result i32) i32.const 1)
		(func $deep (result i32)
			global.get $never if
				loop %s call $one %s global.set $never end
			end
			%s call $deep i32.const 1 i32.add %s)
		(func (export "wp_pick") (result i64)
			i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
			call $deep i64.extend_i32_u))`, cold, coldSum, push, sum))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// TestStackIsBounded: whatever a recursion's frames are made of, the stack takes a few MB at most, and not the 80 that wazero would
// let it have. An instance that is trusted has the longest slices. Without the price of a function's bytes the frames that run
// nothing took 90 MB.
func TestStackIsBounded(t *testing.T) {
	h := newHost(t, Config{Slots: 1, QuarantineAfter: 1000})
	f := func(name string, wasm []byte) {
		t.Helper()
		s, err := h.Load(ctx, name, wasm, Options{Fuel: 1e9})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		defer s.Close(ctx)
		for range trusted {
			s.Pick(frame(2, 1))
		}
		in := s.instances.slots[0].in
		r := s.Pick(frame(8, 5))
		t.Logf("%s: %d KB of stack, %d fuel", name, in.picking.size()>>10, r.Fuel)
		if size := in.picking.size(); size > 4<<20 || r.Fallback != "memory" && r.Fallback != "time" || r.Row != 5 {
			t.Errorf("%s: %d KB of stack, %+v: %s; want the fallback within 4 MB", name, size>>10, r, s.Stats().LastError)
		}
		if e := s.Stats().LastError; r.Fallback == "memory" &&
			(!strings.Contains(e, "over 1024") || !strings.Contains(e, "raise memory_mb")) {
			t.Errorf("%s: %s: want the limit and the knob", name, e)
		}
	}
	f("narrow", deep(t, 0, 0))
	f("locals", wat(t, "stack"))
	f("wide", deep(t, 100, 0))
	f("wider", deep(t, 4000, 0))
	f("never", deep(t, 0, 100))
	f("never at all", deep(t, 0, 9000))
}

// TestStackLimitFollowsMemory: a strategy that recurses deep and well has more of it by memory_mb.
func TestStackLimitFollowsMemory(t *testing.T) {
	wasm, err := wasmtest.Assemble(`(module (memory (export "memory") 1) (func (export "warmpath_abi_1_0"))
		(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
		(func $down (param i32) (result i32)
			local.get 0 i32.eqz if i32.const 0 return end
			local.get 0 i32.const 1 i32.sub call $down i32.const 1 i32.add)
		(func (export "wp_pick") (result i64)
			i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
			i32.const 40000 call $down i32.const 40000 i32.sub i64.extend_i32_u))`)
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t, Config{Slots: 1})
	h.clock = func() time.Duration { return 1 } // as in TestFaultyPick
	f := func(mb int, want string) {
		t.Helper()
		s := load(t, h, wasm, Options{MemoryBytes: mb << 20})
		if r := s.Pick(frame(8, 5)); r.Fallback != want {
			t.Errorf("%d MB: %+v: %s; want fallback %q", mb, r, s.Stats().LastError, want)
		}
	}
	f(16, "memory")
	f(128, "")
}

// TestSizeOfAStack: the field that holds it is found in this wazero.
func TestSizeOfAStack(t *testing.T) {
	s := load(t, newHost(t, Config{Slots: 1}), wat(t, "tiny"), Options{})
	if size := s.instances.slots[0].in.picking.size(); size < 1<<10 || size > 64<<10 {
		t.Errorf("%d bytes; want the some 10 KB that a call begins with", size)
	}
	if size := stackOf(nil).size(); size != 0 {
		t.Errorf("%d bytes of no function; want 0", size)
	}
}
