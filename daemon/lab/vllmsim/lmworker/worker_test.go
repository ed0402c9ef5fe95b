package lmworker

import (
	"slices"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// TestSaltsShareAKey: two chains of the same tokens have one key, which is admitted with the first and evicted with the
// last of them.
func TestSaltsShareAKey(t *testing.T) {
	w, err := New(Config{Pull: "127.0.0.1:1", Reply: "127.0.0.1:1", Instance: "x"}) // nobody is there
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	tokens := make([]uint32, 2*ChunkTokens)
	stored := func(hashes ...uint64) engine.Change {
		return engine.Change{Medium: engine.OnCPU, Hashes: hashes, Tokens: tokens[:len(hashes)*ChunkTokens]}
	}
	removed := func(hash uint64) engine.Change {
		return engine.Change{Kind: engine.Removed, Medium: engine.OnCPU, Hashes: []uint64{hash}}
	}
	first := chunkKey(noneHash, tokens[:ChunkTokens], hashOfEmptyTuple)
	second := chunkKey(first, tokens[:ChunkTokens], hashOfEmptyTuple)
	f := func(what string, c engine.Change, want ...op) {
		t.Helper()
		w.Publish([]engine.Change{c})
		if got, _ := w.take(10); !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	f("one salt", stored(11, 12), op{key: first}, op{key: second})
	f("the other salt", stored(21))
	f("a block of the GPU", engine.Change{Hashes: []uint64{5}, Tokens: tokens[:16]})
	behind := stored(13)
	behind.Parent, behind.HasParent = 99, true
	f("a chunk behind one that nobody knows", behind)
	f("the first salt goes", removed(11))
	f("the other goes too", removed(21), op{evict: true, key: first})
	f("it never was there", removed(77))
	f("a reset of the GPU", engine.Change{Kind: engine.Cleared})
	f("a reset of all", engine.Change{Kind: engine.Cleared, Tiers: true}, op{evict: true, key: second})
	if _, seq := w.take(1); seq != 4 {
		t.Errorf("the next number is %d after 4 operations", seq)
	}
}
