package peers

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/trial"
)

// The memory holds what a plain list in order of use would.
func TestMemoryIsALeastRecentlyUsedList(t *testing.T) {
	for _, headsFirst := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(3, 9))
		m := memory{Memory: Memory{Tokens: 40 * block, HeadsFirst: headsFirst}}
		var list []uint64 // oldest first
		for n := range 3000 {
			c := chain(uint64(rng.IntN(12)), 1+rng.IntN(20), rng.IntN(5))
			want := 0
			for want < len(c) && slices.Contains(list, c[want]) {
				want++
			}
			if got := m.match(0, c); got != want {
				t.Fatalf("heads first %v, step %d: matched %d blocks; want %d", headsFirst, n, got, want)
			}
			m.touch(0, 0, c, prompt(0, c), 1)
			order := slices.Clone(c)
			if !headsFirst {
				slices.Reverse(order)
			}
			for _, h := range order {
				list = append(slices.DeleteFunc(list, func(x uint64) bool { return x == h }), h)
			}
			list = list[max(0, len(list)-40):]
			if r := &m.of[0]; len(r.at) != len(list) || len(r.nodes) > 70 {
				t.Fatalf("step %d: %d blocks in %d nodes; want %d", n, len(r.at), len(r.nodes), len(list))
			}
		}
	}
}

func TestMemoryBounds(t *testing.T) {
	f := func(m Memory, kv, want int) {
		t.Helper()
		if got := (&memory{Memory: m}).blocks(block, kv); got != want {
			t.Errorf("%+v with %d tokens of KV: %d blocks; want %d", m, kv, got, want)
		}
	}
	f(Memory{}, 5000, 0)
	f(Memory{Tokens: 700}, 5000, 7)
	f(Memory{KV: 2}, 5000, 100)
	f(Memory{KV: 2, Tokens: 700}, 5000, 7)
	f(Memory{KV: 2, Tokens: 700}, 0, 7)
	f(Memory{Tokens: 1}, 0, 1)
}

// A tree that is cut now and then holds more in between.
func TestMemoryThatIsCutNowAndThen(t *testing.T) {
	m := memory{Memory: Memory{Tokens: 5 * block, Every: 10 * time.Second}}
	at := func(now time.Duration, name uint64) {
		c := chain(name, 4, 0)
		m.touch(now, 0, c, &trial.Request{BlockTokens: block}, 0)
	}
	at(0, 1)
	at(time.Second, 2)
	at(2*time.Second, 3)
	if n := m.match(0, chain(1, 4, 0)); n != 4 {
		t.Errorf("before the cut %d blocks of the oldest", n)
	}
	at(11*time.Second, 4)
	if n, newest := m.match(0, chain(3, 4, 0)), m.match(0, chain(4, 4, 0)); n != 1 || newest != 4 {
		t.Errorf("after it %d blocks of the last but one and %d of the newest; want 1 and 4", n, newest)
	}
	m.lose(0)
	if n := m.match(0, chain(4, 4, 0)); n != 0 {
		t.Errorf("lost, %d blocks", n)
	}
}
