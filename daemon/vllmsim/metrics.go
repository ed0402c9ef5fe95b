package vllmsim

import (
	"fmt"
	"strconv"
	"time"

	"github.com/warmpath/warmpath/daemon/vllmsim/engine"
)

// exposeMetrics returns the page of /metrics of a worker that was born at an instant and runs so many requests beside
// the engine's.
func exposeMetrics(cfg *Config, st engine.Stats, born time.Time, paced int) []byte {
	x := &exposition{labels: `engine="0",model_name=` + strconv.Quote(cfg.Models[0])}
	x.family("process_start_time_seconds", "gauge", "Start time of the process since unix epoch in seconds.")
	fmt.Fprintf(x, "process_start_time_seconds %s\n", pyFloat(float64(born.UnixNano())/1e9))
	exposeGauges(x, &st, paced)
	exposeCounters(x, &st)
	exposeHistograms(x, &st)
	x.family("vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig")
	blocks := st.Blocks + 1 // the null block
	x.sample("vllm:cache_config_info", fmt.Sprintf(`block_size="%d",cache_dtype="auto",enable_prefix_caching="True",`+
		`engine="0",gpu_memory_utilization="0.92",kv_cache_size_tokens="%d",num_cpu_blocks="None",num_gpu_blocks="%d",`+
		`num_gpu_blocks_override="None",prefix_caching_hash_algo="sha256",sliding_window="None"`,
		cfg.BlockTokens, blocks*cfg.BlockTokens, blocks), 1)
	return x.Bytes()
}

func exposeGauges(x *exposition, st *engine.Stats, paced int) {
	const byReason = "vllm:num_requests_waiting_by_reason"
	x.gauge("vllm:num_requests_running", "Number of requests in model execution batches.", float64(st.Running+paced))
	x.gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.", float64(st.Waiting))
	x.family(byReason, "gauge", "Number of waiting requests by reason.")
	x.sample(byReason, x.labels+`,reason="capacity"`, float64(st.Waiting))
	x.sample(byReason, x.labels+`,reason="deferred"`, 0)
	x.gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", st.KVUsage())
}

func exposeCounters(x *exposition, st *engine.Stats) {
	x.counter("vllm:prefix_cache_queries_total", "Prefix cache queries, in terms of number of queried tokens.",
		st.QueriedTokens)
	x.counter("vllm:prefix_cache_hits_total", "Prefix cache hits, in terms of number of cached tokens.", st.CachedTokens)
	x.counter("vllm:num_preemptions_total", "Cumulative number of preemption from the engine.", st.Preemptions)
	x.counter("vllm:prompt_tokens_total", "Number of prefill tokens processed.", st.PromptTokens)
	x.counter("vllm:prompt_tokens_cached_total", "Number of cached prompt tokens (local + external).", st.CachedTokens)
	x.counter("vllm:generation_tokens_total", "Number of generation tokens processed.", st.GeneratedTokens)
	x.family("vllm:request_success_total", "counter", "Count of successfully processed requests.")
	ofEngine, ofModel := x.halves()
	for f := engine.FinishStop; f <= engine.FinishAbort; f++ {
		labels := ofEngine + `,finished_reason="` + f.String() + `",` + ofModel
		x.sample("vllm:request_success_total", labels, float64(st.Finished[f]))
	}
}

// exposeHistograms writes simulated seconds, also where a worker runs faster than real time.
func exposeHistograms(x *exposition, st *engine.Stats) {
	x.histogram("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.", &st.TTFT)
	x.histogram("vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", &st.InterToken)
	x.histogram("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", &st.Latency)
	x.histogram("vllm:request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", &st.Queue)
	x.histogram("vllm:request_time_per_output_token_seconds",
		"Histogram of time_per_output_token_seconds per request.", &st.PerToken)
	x.histogram("vllm:request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request.", &st.Prefill)
	x.histogram("vllm:request_prefill_kv_computed_tokens",
		"Histogram of new KV tokens computed during prefill (excluding cached tokens).", &st.PrefillTokens)
}
