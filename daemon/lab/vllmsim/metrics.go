package vllmsim

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// exposeMetrics returns the page of /metrics of a worker with these engines. born is its start, and paced is the number
// of requests that run outside of them.
func exposeMetrics(cfg *Config, engines []engine.Stats, born time.Time, paced int) []byte {
	x := &exposition{model: `model_name=` + strconv.Quote(cfg.Models[0]), engines: engines}
	x.family("process_start_time_seconds", "gauge", "Start time of the process since unix epoch in seconds.")
	fmt.Fprintf(x, "process_start_time_seconds %s\n", pyFloat(float64(born.UnixNano())/1e9))
	engines[0].Running += paced
	exposeGauges(x)
	exposeCounters(x)
	exposeHistograms(x)
	x.family("vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig")
	x.each(func(i int, st *engine.Stats) {
		blocks := st.Blocks + 1 // the null block
		fmt.Fprintf(x, `vllm:cache_config_info{block_size="%d",cache_dtype="auto",enable_prefix_caching="True",`+
			`engine="%d",gpu_memory_utilization="0.92",kv_cache_size_tokens="%d",num_cpu_blocks="None",num_gpu_blocks="%d",`+
			`num_gpu_blocks_override="None",prefix_caching_hash_algo="sha256",sliding_window="None"} 1.0`+"\n",
			cfg.BlockTokens, i, blocks*cfg.BlockTokens, blocks)
	})
	return x.Bytes()
}

func exposeGauges(x *exposition) {
	const byReason = "vllm:num_requests_waiting_by_reason"
	x.gauge("vllm:num_requests_running", "Number of requests in model execution batches.",
		func(st *engine.Stats) float64 { return float64(st.Running) })
	x.gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.",
		func(st *engine.Stats) float64 { return float64(st.Waiting + st.Loading) })
	x.family(byReason, "gauge", "Number of waiting requests by reason.")
	x.each(func(i int, st *engine.Stats) {
		fmt.Fprintf(x, "%s{engine=\"%d\",%s,reason=\"capacity\"} %s\n", byReason, i, x.model, pyFloat(float64(st.Waiting)))
		fmt.Fprintf(x, "%s{engine=\"%d\",%s,reason=\"deferred\"} %s\n", byReason, i, x.model, pyFloat(float64(st.Loading)))
	})
	x.gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", (*engine.Stats).KVUsage)
}

// external returns the tokens that came from tiers or from another worker.
func external(st *engine.Stats) int64 { return st.CPUTokens + st.SharedTokens + st.RemoteTokens }

func exposeCounters(x *exposition) {
	x.counter("vllm:prefix_cache_queries_total", "Prefix cache queries, in terms of number of queried tokens.",
		func(st *engine.Stats) int64 { return st.QueriedTokens })
	x.counter("vllm:prefix_cache_hits_total", "Prefix cache hits, in terms of number of cached tokens.",
		func(st *engine.Stats) int64 { return st.CachedTokens - external(st) })
	x.counter("vllm:external_prefix_cache_queries_total", "External prefix cache queries from KV connector "+
		"cross-instance cache sharing, in terms of number of queried tokens.",
		func(st *engine.Stats) int64 { return st.ExternalQueries })
	x.counter("vllm:external_prefix_cache_hits_total", "External prefix cache hits from KV connector "+
		"cross-instance cache sharing, in terms of number of cached tokens.", external)
	x.counter("vllm:num_preemptions_total", "Cumulative number of preemption from the engine.",
		func(st *engine.Stats) int64 { return st.Preemptions })
	x.counter("vllm:prompt_tokens_total", "Number of prefill tokens processed.",
		func(st *engine.Stats) int64 { return st.PromptTokens })
	x.counter("vllm:prompt_tokens_cached_total", "Number of cached prompt tokens (local + external).",
		func(st *engine.Stats) int64 { return st.CachedTokens })
	x.counter("vllm:generation_tokens_total", "Number of generation tokens processed.",
		func(st *engine.Stats) int64 { return st.GeneratedTokens })
	if slices.ContainsFunc(x.engines, func(st engine.Stats) bool { return st.ExternalQueries > 0 }) {
		exposeLMCache(x)
	}
	x.family("vllm:request_success_total", "counter", "Count of successfully processed requests.")
	x.each(func(i int, st *engine.Stats) {
		for f := engine.FinishStop; f <= engine.FinishAbort; f++ {
			x.sample("vllm:request_success_total", i, `finished_reason="`+f.String()+`",`, float64(st.Finished[f]))
		}
	})
}

// exposeLMCache writes what an LMCache in the engine counts: its tiers are the engine's.
func exposeLMCache(x *exposition) {
	x.counter("lmcache:num_vllm_hit_tokens_total", "Number of hit tokens in vllm",
		func(st *engine.Stats) int64 { return st.CachedTokens - external(st) })
	x.counter("lmcache:num_lookup_tokens_total", "Total number of tokens requested in lookup from lmcache",
		func(st *engine.Stats) int64 { return st.ExternalQueries })
	x.counter("lmcache:num_lookup_hits_total", "Total number of tokens hit in lookup from lmcache", external)
	x.histogram("lmcache:request_cache_hit_rate", "Request cache hit rate",
		func(st *engine.Stats) *engine.Histogram { return &st.TierHits })
}

// exposeHistograms writes simulated seconds, also where a worker runs faster than real time.
func exposeHistograms(x *exposition) {
	x.histogram("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.",
		func(st *engine.Stats) *engine.Histogram { return &st.TTFT })
	x.histogram("vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.",
		func(st *engine.Stats) *engine.Histogram { return &st.InterToken })
	x.histogram("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.",
		func(st *engine.Stats) *engine.Histogram { return &st.Latency })
	x.histogram("vllm:request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.",
		func(st *engine.Stats) *engine.Histogram { return &st.Queue })
	x.histogram("vllm:request_time_per_output_token_seconds",
		"Histogram of time_per_output_token_seconds per request.",
		func(st *engine.Stats) *engine.Histogram { return &st.PerToken })
	x.histogram("vllm:request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request.",
		func(st *engine.Stats) *engine.Histogram { return &st.Prefill })
	x.histogram("vllm:request_prefill_kv_computed_tokens",
		"Histogram of new KV tokens computed during prefill (excluding cached tokens).",
		func(st *engine.Stats) *engine.Histogram { return &st.PrefillTokens })
	x.histogram("vllm:iteration_tokens_total", "Histogram of number of tokens per engine_step.",
		func(st *engine.Stats) *engine.Histogram { return &st.StepTokens })
}
