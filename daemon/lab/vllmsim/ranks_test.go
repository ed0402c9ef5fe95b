package vllmsim

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// TestRanksKeepTheirCaches: a prompt is cached on the rank that it was pinned to and on no other, and each rank has
// metrics, stats and events of its own.
func TestRanksKeepTheirCaches(t *testing.T) {
	s := newTiny(t, Config{DataParallel: 4, Speed: 1000, KVEvents: KVEvents{Endpoint: "tcp://127.0.0.1:0"}})
	body := `{"max_tokens":2,"prompt":"` + engine.TextOfTokens(1, 1000) + `"}`
	cached := func(rank int) int {
		t.Helper()
		return answerOf(t, s, "/v1/completions", body, rankHeader, fmt.Sprint(rank)).Usage.Details.Cached
	}
	for _, c := range []struct{ rank, want int }{{2, 0}, {2, 992}, {1, 0}, {1, 992}, {2, 992}} {
		if got := cached(c.rank); got != c.want {
			t.Errorf("rank %d: %d tokens cached, want %d", c.rank, got, c.want)
		}
	}
	for _, rank := range []string{"4", "-1"} {
		w := do(s, "POST", "/v1/completions", body, rankHeader, rank)
		if w.Code != 400 || !strings.Contains(w.Body.String(), "data_parallel_rank "+rank+" is out of range [0, 4).") {
			t.Errorf("rank %s: %d %s", rank, w.Code, w.Body)
		}
	}
	page := do(s, "GET", "/metrics", "").Body.String()
	for _, line := range []string{
		`vllm:prefix_cache_hits_total{engine="2",model_name="tiny"} 1984.0`,
		`vllm:prefix_cache_hits_total{engine="1",model_name="tiny"} 992.0`,
		`vllm:prefix_cache_hits_total{engine="3",model_name="tiny"} 0.0`,
		`vllm:num_requests_running{engine="0",model_name="tiny"} 0.0`,
	} {
		if !strings.Contains(page, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if n := strings.Count(page, "\nvllm:cache_config_info{"); n != 4 {
		t.Errorf("cache_config_info of %d ranks", n)
	}
	if st := s.Stats(); st.CachedTokens != 3*992 || len(st.Ranks) != 4 || st.Ranks[2].CachedTokens != 2*992 {
		t.Errorf("stats %+v", st)
	}
	seen := map[string]bool{}
	for rank, source := range sources(t, s) {
		if !source.Enabled || seen[source.Endpoint] {
			t.Errorf("rank %s: %+v", rank, source)
		}
		seen[source.Endpoint] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d sources", len(seen))
	}
}

// TestLeastLoadedRank: requests without a rank go where the fewest are.
func TestLeastLoadedRank(t *testing.T) {
	s := newTiny(t, Config{DataParallel: 4})
	var over sync.WaitGroup
	for i := range 8 {
		over.Go(func() { do(s, "POST", "/v1/completions", fmt.Sprintf(`{"max_tokens":40,"prompt":"%d"}`, i)) })
	}
	over.Wait()
	for rank, st := range s.Stats().Ranks {
		if st.Finished != 2 {
			t.Errorf("rank %d served %d of 8 requests at once, want 2", rank, st.Finished)
		}
	}
}

// TestSharedTier: what one worker has computed another loads, counted as cached in usage and as external in metrics.
func TestSharedTier(t *testing.T) {
	cfg := Config{Speed: 1000}
	cfg.Shared = NewTier(100000, cfg)
	a, b := newTiny(t, cfg), newTiny(t, cfg)
	body := `{"max_tokens":2,"prompt":"` + engine.TextOfTokens(1, 1000) + `"}`
	for i, s := range []*Server{a, b} {
		if got := answerOf(t, s, "/v1/completions", body).Usage.Details.Cached; got != 992*i {
			t.Errorf("worker %d: %d tokens cached", i, got)
		}
	}
	page := do(b, "GET", "/metrics", "").Body.String()
	for _, line := range []string{
		`vllm:prefix_cache_hits_total{engine="0",model_name="tiny"} 0.0`,
		`vllm:external_prefix_cache_queries_total{engine="0",model_name="tiny"} 1000.0`,
		`vllm:external_prefix_cache_hits_total{engine="0",model_name="tiny"} 992.0`,
		`vllm:prompt_tokens_cached_total{engine="0",model_name="tiny"} 992.0`,
	} {
		if !strings.Contains(page, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
}
