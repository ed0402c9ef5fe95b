package engine

import (
	"math"
	"slices"
	"testing"
	"time"
)

// TestChunksAddUp: a prompt costs the same however it is cut.
func TestChunksAddUp(t *testing.T) {
	m := DefaultModel()
	const n = 65536
	whole := m.Prefill(n, 0)
	for _, chunk := range []int{1 << 4, 1 << 10, 8192, 1 << 15} {
		sum := 0.0
		for known := 0; known < n; known += chunk {
			sum += m.Prefill(chunk, known)
		}
		if math.Abs(sum-whole) > 1e-9*whole {
			t.Errorf("in chunks of %d it is %v s, whole %v", chunk, sum, whole)
		}
	}
	if linear := n * m.PrefillSeconds; math.Abs(whole-2*linear) > 1e-9 {
		t.Errorf("%d tokens take %v s, want twice the %v without attention", n, whole, linear)
	}
}

func TestStepTime(t *testing.T) {
	f := func(m Model, prefill float64, decodes int, want time.Duration) {
		t.Helper()
		if got := m.Step(prefill, decodes, 0); (got - want).Abs() > time.Microsecond {
			t.Errorf("%v s of prefill and %d decodes: %v, want %v", prefill, decodes, got, want)
		}
	}
	m := DefaultModel()
	f(m, 0, 1, 12100*time.Microsecond)
	f(m, 0, 64, 18400*time.Microsecond)
	f(m, 0.001, 0, 12*time.Millisecond) // under cover of the weights
	f(m, 0.1, 10, 101*time.Millisecond)
	m.Slowness = 8
	f(m, 0.1, 10, 808*time.Millisecond)
	m.Slowness, m.DecodeContextSeconds = 1, 1e-7
	if got, want := m.Step(0, 2, 100_000), 22200*time.Microsecond; (got - want).Abs() > time.Microsecond {
		t.Errorf("two decodes of 100,000 tokens together: %v, want %v", got, want)
	}
}

func TestHistogram(t *testing.T) {
	h := Histogram{Bounds: []float64{1, 2, 5}}
	for _, v := range []float64{0, 1, 1.5, 2, 3, 5, 6, 100} {
		h.observe(v)
	}
	if got, want := h.Buckets[:4], []int64{2, 2, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("buckets %v, want %v", got, want)
	}
	if h.Count != 8 || h.Sum != 118.5 {
		t.Errorf("count %d, sum %v", h.Count, h.Sum)
	}
	f := func(limit int, want ...float64) {
		t.Helper()
		if got := tokenBounds(limit); !slices.Equal(got, want) {
			t.Errorf("bounds up to %d: %v, want %v", limit, got, want)
		}
	}
	f(0)
	f(1, 1)
	f(49, 1, 2, 5, 10, 20)
	f(50, 1, 2, 5, 10, 20, 50)
	for _, bounds := range [][]float64{ttftBounds, interTokenBounds, latencyBounds, tokenBounds(1 << 20)} {
		if len(bounds) >= len(h.Buckets) || !slices.IsSorted(bounds) {
			t.Errorf("%d bounds do not fit, or are not sorted: %v", len(bounds), bounds)
		}
	}
}

// TestHashesArePrefixes: two prompts have as many equal hashes as they have equal leading blocks.
func TestHashesArePrefixes(t *testing.T) {
	ids := AppendTokens(nil, TextOfTokens(1, 200))
	whole, tail := hashBlocks(rootHash(""), ids, 16)
	if len(whole) != 12 || !slices.Equal(tail, ids[192:]) {
		t.Fatalf("%d hashes and %d tokens behind them", len(whole), len(tail))
	}
	for at := range ids {
		other := slices.Clone(ids)
		other[at] ^= 1
		hashes, _ := hashBlocks(rootHash(""), other, 16)
		same := 0
		for same < len(whole) && hashes[same] == whole[same] {
			same++
		}
		if same != at/16 {
			t.Fatalf("with token %d changed %d blocks are the same, want %d", at, same, at/16)
		}
		for i := same; i < len(whole); i++ {
			if hashes[i] == whole[i] {
				t.Fatalf("with token %d changed block %d has its old hash", at, i)
			}
		}
	}
	salted, _ := hashBlocks(rootHash("x"), ids, 16)
	if slices.ContainsFunc(salted, func(h uint64) bool { return slices.Contains(whole, h) }) {
		t.Error("a salted prompt shares a block")
	}
}
