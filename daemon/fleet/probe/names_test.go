package probe

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// TestParseSGLang: each process of an engine counts the same, and each priority again what the engine counts.
func TestParseSGLang(t *testing.T) {
	page, err := os.ReadFile("testdata/metrics-sglang.txt")
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseMetrics(page)
	want := worker.Metrics{Running: 24, Waiting: 3 + 1 + 2, Usage: .73, Capacity: 131072, Block: 64, Preempts: 4,
		Queries: 6000, Hits: 2000, Computed: 4000, SaysComputed: true, Prompts: 5000, Steps: 900,
		Prefill: 1.25, Prefills: 7, TokenTime: 18, TokenTimes: 900}
	if err != nil || got.Metrics != want || got.Engines != nil {
		t.Errorf("%+v, engines %+v, %v; want %+v", got.Metrics, got.Engines, err, want)
	}
}

// TestParseSGLangEngines: with --dp-size the engines have the label dp_rank. What the server counts for all of them, and
// the page size, has none.
func TestParseSGLangEngines(t *testing.T) {
	got, err := parseMetrics([]byte(`sglang:cache_config_info{num_pages="100",page_size="16"} 1.0
sglang:max_total_num_tokens{dp_rank="0",engine_type="unified",tp_rank="0",pp_rank="0"} 1600.0
sglang:max_total_num_tokens{dp_rank="1",engine_type="unified",tp_rank="2",pp_rank="0"} 1600.0
sglang:max_total_num_tokens{dp_rank="1",engine_type="unified",tp_rank="3",pp_rank="0"} 1600.0
sglang:num_running_reqs{dp_rank="1",engine_type="unified",tp_rank="2",pp_rank="0"} 5.0
sglang:num_running_reqs{dp_rank="1",engine_type="unified",tp_rank="3",pp_rank="0"} 5.0
sglang:num_running_reqs{dp_rank="0",engine_type="unified",tp_rank="0",pp_rank="0"} 2.0
sglang:prompt_tokens_total{model_name="m"} 70.0
`))
	want := []worker.Metrics{{Running: 2, Capacity: 1600, Block: 16}, {Running: 5, Capacity: 1600, Block: 16}}
	if err != nil || len(got.Engines) != 2 || got.Engines[0] != want[0] || got.Engines[1] != want[1] ||
		got.Metrics != (worker.Metrics{Running: 7, Capacity: 3200, Block: 16, Prompts: 70}) {
		t.Errorf("%+v, %v; want engines %+v and their sums", got, err, want)
	}
}

func TestParseTensorRTLLM(t *testing.T) {
	got, err := parseMetrics([]byte(strings.ReplaceAll(`trtllm_num_requests_running{L} 3.0
trtllm_num_requests_waiting{L} 4.0
trtllm_kv_cache_utilization{L} 0.25
trtllm_kv_cache_max_blocks{L} 1000.0
trtllm_kv_cache_tokens_per_block{L} 32.0
trtllm_prompt_tokens_total{L} 500.0
trtllm_prompt_cached_tokens_total{L} 128.0
trtllm_prompt_cache_hit_tokens_total{cache_level="0",cache_tier="gpu",L} 128.0
trtllm_request_prefill_time_seconds_sum{L} 2.5
trtllm_request_prefill_time_seconds_count{L} 5.0
trtllm_time_per_output_token_seconds_sum{L} 0.05
trtllm_time_per_output_token_seconds_count{L} 5.0
`, "L", `engine_type="undefined",model_name="m"`)))
	want := worker.Metrics{Running: 3, Waiting: 4, Usage: .25, Capacity: 32000, Block: 32, Queries: 500, Prompts: 500,
		Hits: 128, Prefill: 2.5, Prefills: 5, TokenTime: .05, TokenTimes: 5}
	if err != nil || got.Metrics != want || got.Engines != nil {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// TestUnknownPage: a page of another program's is an error, however much is on it.
func TestUnknownPage(t *testing.T) {
	for _, page := range []string{"", "[]", `[{"numActiveRequests": 3}]`, "process_start_time_seconds 1.7e+09\n",
		"node_load1 3\n", "lmcache:num_lookup_hits_total 3\n", "<html>", "vllm:num_other 3\nsglang_num_running_reqs 3\n"} {
		if _, err := parseMetrics([]byte(page)); !errors.Is(err, errUnknownPage) {
			t.Errorf("%q: %v; want an error", page, err)
		}
	}
}
