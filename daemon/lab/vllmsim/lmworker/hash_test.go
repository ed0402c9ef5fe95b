package lmworker

import (
	"slices"
	"testing"
)

// TestRecordedKeys: the keys are those of real releases, for tokens 1, 2, 3 ... and PYTHONHASHSEED=0. The roots are 0
// without vLLM, and noneHash beside it.
func TestRecordedKeys(t *testing.T) {
	f := func(what string, root int64, extra uint64, size int, want ...int64) {
		t.Helper()
		var got []int64
		id := uint32(1)
		for range want {
			chunk := make([]uint32, size)
			for i := range chunk {
				chunk[i] = id
				id++
			}
			root = chunkKey(root, chunk, extra)
			got = append(got, root)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: keys %v, recorded %v", what, got, want)
		}
	}
	f("0.5.6", 0, hashOfEmptyTuple, 256, 1587027496190025459, 7423393386759859379)
	f("0.5.6, short chunks", 0, hashOfEmptyTuple, 16, 3677345026041683036, -8246605460123659238, 8377414923064427288)
	f("0.5.6 beside vLLM", noneHash, hashOfEmptyTuple, 256, 3970174878686283145, 2431545809314230542)
	f("0.3.9.post2", 0, hashOfNone, 256, -2192267233344342451, 1577186926397390831)
	f("0.3.9.post2, short chunks", 0, hashOfNone, 16, -2749621609143173571, -8970170596280498549, -7428615094586912602)
}
