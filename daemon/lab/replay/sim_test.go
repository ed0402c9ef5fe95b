package replay

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

func TestBytesPerTokenIsTheSimulatedWorkers(t *testing.T) {
	c := testConfig(t, Config{})
	if c.BytesPerToken != engine.BytesPerToken {
		t.Errorf("default is %d bytes per token, the simulated worker's %d", c.BytesPerToken, engine.BytesPerToken)
	}
	for _, r := range readTestTrace(t, 0) {
		if n := engine.CountTokens(promptText(t, c, &r)); n != r.InputTokens {
			t.Errorf("prompt has %d tokens, the trace says %d", n, r.InputTokens)
		}
	}
}

// Against the simulated worker itself: its counts are the trace's, and its
// hits are those of a cache that forgets nothing.
func TestSimulatedWorkerCountsTheSame(t *testing.T) {
	w, err := vllmsim.New(vllmsim.Config{Models: []string{"A"}, KVTokens: 4 << 20, Speed: 100000})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	c := testConfig(t, Config{URL: w.URL()})
	trip := newTransport(1)
	defer trip.CloseIdleConnections()
	s := newSender(c, trip, "A")

	held := map[uint64]bool{}
	total := 0
	for i, r := range readTestTrace(t, 0) {
		r.OutputTokens = 3
		want := 0
		for k, id := range r.Blocks {
			if !held[id] {
				break
			}
			want = min(k+1, (r.InputTokens-1)/BlockTokens) * BlockTokens
		}
		for _, id := range r.Blocks[:r.InputTokens/BlockTokens] {
			held[id] = true
		}
		got := s.send(t.Context(), &r, func() {})
		if got.err != nil {
			t.Fatalf("request %d: %v", i, got.err)
		}
		if got.usage == nil || got.usage.Prompt != r.InputTokens || got.usage.cached() != want || got.ttft <= 0 ||
			got.total < got.ttft {
			t.Fatalf("request %d of %d tokens: got %+v, usage %+v; want %d cached", i, r.InputTokens, got, got.usage, want)
		}
		total += want
	}
	if total == 0 {
		t.Fatal("the slice shares nothing: the test shows nothing")
	}
}

// Two names of one worker are one cache: the second run finds none of the first.
func TestModelsDoNotWarmEachOther(t *testing.T) {
	w, err := vllmsim.New(vllmsim.Config{Models: []string{"A", "B"}, KVTokens: 4 << 20, Speed: 100000})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	c := Config{URL: w.URL(), Models: []string{"A", "B", "A"}, File: traceFile, Speed: 1e6, MaxInFlight: 1, Limit: 20}
	report, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	a, b, again := report.Results[0].BlockHitRate, report.Results[1].BlockHitRate, report.Results[2].BlockHitRate
	if a != b || a > .2 || again < .9 {
		t.Errorf("hit rates A %v, B %v, A again %v; want B as cold as A, and A warm", a, b, again)
	}
}
