package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/served"
	"github.com/warmpath/warmpath/daemon/lab/setup"
	"github.com/warmpath/warmpath/daemon/lab/traffic"
	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/daemon/lab/world"
)

// wishing returns a module that sends all requests to the first worker and calls cache, with what, row and amount, for
// those of more than 200 blocks.
func wishing(t *testing.T, what, row, amount int) string {
	t.Helper()
	wasm, err := wasmtest.Assemble(fmt.Sprintf(`(module
		(import "warmpath_v1" "cache" (func $cache (param i32 i32 i32 i32 i32) (result i32)))
		(memory (export "memory") 1)
		(func (export "warmpath_abi_1_3"))
		(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
		(func (export "wp_pick") (result i64)
			i32.const 1068 i32.load i32.const 200 i32.gt_u
			if
				i32.const %d i32.const %d i32.const %d i32.const 0 i32.const 0 call $cache drop
			end
			i64.const 0))`, what, row, amount))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mine.wasm")
	if err := os.WriteFile(file, wasm, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// pausing is a conversation of 10,000 tokens that pauses for a minute while 60 others, of 1,000 tokens each, take all of
// its worker's KV.
func pausing() (l traffic.Load) {
	long := traffic.Part{ID: 1, Tokens: 10_000}
	l.Chats = []traffic.Chat{{Session: 1, Start: settled, Turns: []traffic.Turn{
		{Parts: []traffic.Part{long}, Answer: 2, Output: 10},
		{Parts: []traffic.Part{long, {ID: 2, Tokens: 10, Answer: true}, {ID: 3, Tokens: 90}}, After: []int{0}, Answer: 4,
			Output: 10, Gap: time.Minute}}}}
	for i := range 60 {
		n := uint64(100 + 2*i)
		l.Chats = append(l.Chats, traffic.Chat{Session: n, Start: settled + time.Duration(i+2)*900*time.Millisecond,
			Turns: []traffic.Turn{{Parts: []traffic.Part{{ID: n, Tokens: 1000}}, Answer: n + 1, Output: 10}}})
	}
	return l
}

// TestWishesInTheLab: the lab does what a strategy asks to be done with caches. A conversation that is kept finds its
// prompt after a pause in which the others would have pushed it out; a worker that has prefetched or copied a prompt has
// computed it for no client. What is lost is not computed again for nobody.
func TestWishesInTheLab(t *testing.T) {
	kv := 40_000
	f := func(name string, what, row, amount, cached, moved int) {
		t.Helper()
		sc, err := setup.Read("A")
		if err != nil {
			t.Fatal(err)
		}
		sc.Workers, sc.Engine.KVTokens = 2, kv
		found, err := Find(wishing(t, what, row, amount))
		if err != nil {
			t.Fatal(err)
		}
		c, err := sc.World(pausing())
		if err != nil {
			t.Fatal(err)
		}
		c.Seed = 1
		if c.Engine, err = c.Engine.Complete(); err != nil {
			t.Fatal(err)
		}
		loader, err := served.NewLoader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer loader.Close(t.Context())
		r, err := world.Run(t.Context(), c, func(number int) (world.Router, error) {
			return found[0].router(t.Context(), loader, sc, &c, member{number: number})
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		last := 0
		for i := range r.Outcomes {
			if o := &r.Outcomes[i]; o.Status != trial.Answered {
				t.Errorf("%s: %+v", name, o)
			} else if o.Turn == 1 {
				last = o.Cached
			}
		}
		if last/1000 != cached || int(r.MoveTokens)/1000 != moved {
			t.Errorf("%s: %d tokens of the second turn are cached, workers computed %d tokens in %d requests for no client; "+
				"want %d and %d thousand", name, last, r.MoveTokens, r.Moves, cached, moved)
		}
	}
	f("no wish", 9, 0, 0, 0, 0)
	f("keep", 0, 0, 90_000, 10, 0)
	f("keep for too short a time", 0, 0, 5000, 0, 0)
	f("drop", 1, 0, 0, 0, 0)
	f("prefetch elsewhere", 2, 1, 5000, 0, 10)
	f("prefetch where it was", 2, 0, 50_000, 10, 10)
	f("copy of its half", 3, 1, 160, 0, 5)
	kv = 20_000
	f("keep what is lost before it is sent again", 0, 0, 90_000, 0, 0)
}
