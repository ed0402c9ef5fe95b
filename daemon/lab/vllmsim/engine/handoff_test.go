package engine

import (
	"testing"
	"time"
)

// handoffPrompt has 625 blocks, and one token behind them.
const handoffPrompt = 10_001

func handoffEngine(t *testing.T, cfg Config, q *Sequence) *Engine {
	t.Helper()
	e, err := New(cfg)
	if err == nil {
		err = e.Submit(0, q)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func handoffSequence(maxTokens int) Sequence {
	ids := make([]uint32, handoffPrompt)
	for i := range ids {
		ids[i] = uint32(i + 1)
	}
	q := NewSequence(ids, "", 1, BlockTokens)
	q.MaxTokens = maxTokens
	return q
}

func TestKeptBlocksStayHeldUntilRelease(t *testing.T) {
	q := handoffSequence(1)
	q.Keep = true
	e := handoffEngine(t, Config{KVTokens: 16_384}, &q)
	e.Advance(time.Hour)
	if st := e.Stats(); q.Finish() != FinishLength || st.BlocksPinned != 626 || st.BlocksHeld != 626 {
		t.Fatalf("finish %v, %d blocks pinned of %d held; want length and 626", q.Finish(), st.BlocksPinned, st.BlocksHeld)
	}
	if e.ResetCache(false, false) {
		t.Error("the cache was emptied under pinned blocks")
	}
	other := handoffSequence(1)
	other.hashes = nil // nothing of it is cached, and there is no room beside the pinned blocks
	if err := e.Submit(time.Hour, &other); err != nil {
		t.Fatal(err)
	}
	e.Advance(2 * time.Hour)
	if other.OutputTokens() != 0 {
		t.Error("a sequence was given pinned blocks")
	}
	if n := e.Release(&q); n != 626 || e.Release(&q) != 0 {
		t.Errorf("%d blocks released, then more; want 626, then none", n)
	}
	e.Cancel(&other)
	if st := e.Stats(); st.BlocksPinned != 0 || st.BlocksHeld != 0 {
		t.Errorf("%d blocks pinned, %d held after the release", st.BlocksPinned, st.BlocksHeld)
	}
}

func TestCancelledSequenceKeepsNothing(t *testing.T) {
	q := handoffSequence(1)
	q.Keep = true
	e := handoffEngine(t, Config{}, &q)
	e.Advance(time.Millisecond)
	e.Cancel(&q)
	if st := e.Stats(); st.BlocksPinned != 0 || st.BlocksHeld != 0 {
		t.Errorf("%d blocks pinned, %d held", st.BlocksPinned, st.BlocksHeld)
	}
}

func TestRemoteTokensAreLoadedNotComputed(t *testing.T) {
	q := handoffSequence(1)
	q.Remote = handoffPrompt
	e := handoffEngine(t, Config{RemoteSeconds: 1e-4}, &q)
	e.Advance(time.Hour)
	st := e.Stats()
	if st.ComputedTokens != 1 || st.RemoteTokens != 10_000 || q.CachedTokens() != 10_000 {
		t.Errorf("%d tokens computed, %d loaded, %d cached; want 1, 10000, 10000",
			st.ComputedTokens, st.RemoteTokens, q.CachedTokens())
	}
	if first := q.Times().First; first < time.Second || first > time.Second+100*time.Millisecond {
		t.Errorf("the first token after %v; want the transfer's second and one step", first)
	}
}
