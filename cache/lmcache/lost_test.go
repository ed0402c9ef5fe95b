package lmcache

import (
	"fmt"
	"testing"

	"github.com/warmpath/warmpath/cache/kvstore/chunks"
)

// TestForget: Forget takes what a store behind the servers has lost out of what each of them, and all together,
// reported of that store: at its rank and under its salt, and nowhere else.
func TestForget(t *testing.T) {
	k, _ := start(t, Config{ChunkSize: 16})
	hashes := sums(upTo(33), 16)
	part := func(n, rank int, salt string) objectKey {
		return objectKey{Hash: hashes[n], Model: "m", Rank: 2<<24 | uint32(rank)<<16 | 2<<8 | uint32(rank), Salt: salt}
	}
	m := &mp{t: t, k: k, id: "node", incarnation: 1}
	other := &mp{t: t, k: k, id: "other", incarnation: 1}
	parts := []objectKey{part(0, 0, ""), part(0, 1, ""), part(1, 0, ""), part(0, 0, "tenant")}
	m.event("store", "l1", false, parts...)
	m.event("store", "l2", false, parts...)
	other.event("store", "l2", true, parts...)
	f := func(what string, want ...int) {
		t.Helper()
		var got []int
		for _, p := range parts {
			key, err := p.key()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, len(k.fleet.placements(p.spread(key), p.rank())))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: the parts are at %v places; want %v", what, got, want)
		}
	}
	lost := func(p objectKey, adapters ...string) chunks.Lost {
		return chunks.Lost{Adapters: adapters, Model: p.Model, Hash: p.Hash, Rank: p.Rank, Salt: p.Salt}
	}
	f("before", 3, 3, 3, 3)
	k.Forget([]chunks.Lost{lost(part(0, 0, ""), "a", "c"), lost(part(1, 1, ""), "b"), {Adapters: []string{"b"}, Hash: "no hash"}})
	f("another store, another part, none", 3, 3, 3, 3)
	k.Forget([]chunks.Lost{lost(part(0, 0, ""), "a", "b")})
	f("one part", 1, 3, 3, 3)
	k.Forget([]chunks.Lost{lost(part(0, 0, "tenant"), "b")})
	f("a salt's", 1, 3, 3, 1)
	k.ForgetAll([]string{"a"})
	f("all of another store", 1, 3, 3, 1)
	k.ForgetAll([]string{"b"})
	f("all", 1, 1, 1, 1)
	other.event("store", "l2", true, parts...)
	f("put again", 2, 2, 2, 2)
	if n := k.Stats().Counts; n.StoreLost != 4 || n.StoreCleared != 2 {
		t.Errorf("%d parts, %d times all; want 4, 2", n.StoreLost, n.StoreCleared)
	}
}
