package probe

import (
	"bytes"
	"math"
	"strconv"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// reading takes one series of a page.
type reading func(s *sums, rest []byte)

// readings has the series that are read. Their names begin with that of the engine, so that the page itself shows which
// one wrote it. They are those of
//
//	vLLM 0.9 to 0.32, vllm/v1/metrics/loggers.py; the label engine tells its data-parallel engines apart
//	SGLang 0.5.10 to 0.5.20, python/sglang/srt/observability/metrics_collector.py; dp_rank does
//	TensorRT-LLM 1.2 and later, tensorrt_llm/metrics/collector.py; there is one for all of them
//
// Times are in seconds and shares from 0 to 1 in all three. docs/workers.md lists what each of them lacks.
var readings = map[string]reading{
	"process_start_time_seconds": func(s *sums, rest []byte) { s.Process = number(rest) },

	"vllm:num_requests_running":                        running,
	"vllm:num_requests_waiting":                        waiting,
	"vllm:kv_cache_usage_perc":                         usage,
	"vllm:gpu_cache_usage_perc":                        usage, // until late 2025
	"vllm:cache_config_info":                           cacheConfig,
	"vllm:prefix_cache_queries_total":                  queries,
	"vllm:prefix_cache_hits_total":                     hits,
	"vllm:external_prefix_cache_hits_total":            plus(func(s *sums) *float64 { return &s.ExternalHits }),
	"vllm:num_preemptions_total":                       preempts,
	"vllm:request_prefill_time_seconds_sum":            prefill,
	"vllm:request_prefill_time_seconds_count":          prefills,
	"vllm:request_prefill_kv_computed_tokens_sum":      computed,
	"vllm:request_prompt_tokens_sum":                   prompts,
	"vllm:request_time_per_output_token_seconds_sum":   tokenTime,
	"vllm:request_time_per_output_token_seconds_count": tokenTimes,
	"vllm:iteration_tokens_total_count":                steps,
	"vllm:engine_sleep_state":                          sleepState,
	"vllm:lora_requests_info":                          adapters,

	"sglang:num_running_reqs":                    running,
	"sglang:num_queue_reqs":                      waiting,
	"sglang:num_grammar_queue_reqs":              waiting, // until their grammar is compiled
	"sglang:num_prefill_bootstrap_queue_reqs":    waiting, // in these three for the other server of a pair
	"sglang:num_decode_prealloc_queue_reqs":      waiting,
	"sglang:num_decode_transfer_queue_reqs":      waiting,
	"sglang:token_usage":                         usage,
	"sglang:max_total_num_tokens":                plus(func(s *sums) *float64 { return &s.tokens }),
	"sglang:cache_config_info":                   cachePage,
	"sglang:num_retracted_requests_total":        preempts,
	"sglang:realtime_tokens_total":               realtime,
	"sglang:prompt_tokens_total":                 prompts,
	"sglang:per_stage_req_latency_seconds_sum":   only("stage", "prefill_forward", prefill),
	"sglang:per_stage_req_latency_seconds_count": only("stage", "prefill_forward", prefills),
	"sglang:inter_token_latency_seconds_sum":     tokenTime,
	"sglang:inter_token_latency_seconds_count":   tokenTimes,

	"trtllm_num_requests_running":                running,
	"trtllm_num_requests_waiting":                waiting,
	"trtllm_kv_cache_utilization":                usage,
	"trtllm_kv_cache_max_blocks":                 plus(func(s *sums) *float64 { return &s.blocks }),
	"trtllm_kv_cache_tokens_per_block":           block,
	"trtllm_prompt_tokens_total":                 trtPrompts,
	"trtllm_prompt_cached_tokens_total":          hits,
	"trtllm_request_prefill_time_seconds_sum":    prefill,
	"trtllm_request_prefill_time_seconds_count":  prefills,
	"trtllm_time_per_output_token_seconds_sum":   tokenTime,
	"trtllm_time_per_output_token_seconds_count": tokenTimes,

	"lmcache:num_vllm_hit_tokens_total":    ofLMCache(func(l *worker.LMCache) *float64 { return &l.EngineHits }),
	"lmcache:num_lookup_tokens_total":      ofLMCache(func(l *worker.LMCache) *float64 { return &l.Lookups }),
	"lmcache:num_lookup_hits_total":        ofLMCache(func(l *worker.LMCache) *float64 { return &l.LookupHits }),
	"lmcache:request_cache_hit_rate_sum":   ofLMCache(func(l *worker.LMCache) *float64 { return &l.RateSum }),
	"lmcache:request_cache_hit_rate_count": ofLMCache(func(l *worker.LMCache) *float64 { return &l.RateCount }),
}

var (
	queries    = plus(func(s *sums) *float64 { return &s.Queries })
	hits       = plus(func(s *sums) *float64 { return &s.Hits })
	preempts   = plus(func(s *sums) *float64 { return &s.Preempts })
	prefill    = plus(func(s *sums) *float64 { return &s.Prefill })
	prefills   = plus(func(s *sums) *float64 { return &s.Prefills })
	prompts    = plus(func(s *sums) *float64 { return &s.Prompts })
	tokenTime  = plus(func(s *sums) *float64 { return &s.TokenTime })
	tokenTimes = plus(func(s *sums) *float64 { return &s.TokenTimes })
	steps      = plus(func(s *sums) *float64 { return &s.Steps })
)

// plus adds the value to a sum.
func plus(to func(*sums) *float64) reading {
	return func(s *sums, rest []byte) { *to(s) += number(rest) }
}

// only takes series with that label.
func only(name, value string, take reading) reading {
	return func(s *sums, rest []byte) {
		if string(labelOf(rest, name)) == value {
			take(s, rest)
		}
	}
}

// ofLMCache adds the value to one of LMCache's sums.
func ofLMCache(to func(*worker.LMCache) *float64) reading {
	return func(s *sums, rest []byte) {
		if s.LMCache == nil {
			s.LMCache = new(worker.LMCache)
		}
		*to(s.LMCache) += number(rest)
	}
}

// trtPrompts reads the tokens of prompts, all of which TensorRT-LLM looks up.
func trtPrompts(s *sums, rest []byte) {
	prompts(s, rest)
	queries(s, rest)
}

func running(s *sums, rest []byte) { s.Running += int(number(rest)) }
func waiting(s *sums, rest []byte) { s.Waiting += int(number(rest)) }

// sleepState reads the states of vLLM's sleep: awake, and of two levels which is on. At level 0, which stops the
// scheduler alone, none of the three is.
func sleepState(s *sums, rest []byte) {
	switch on := number(rest) > 0; string(labelOf(rest, "sleep_state")) {
	case "awake":
		s.Asleep = s.Asleep || !on
	case "weights_offloaded", "discard_all":
		s.levels, s.deep = true, s.deep || on
	}
}

func usage(s *sums, rest []byte) {
	s.Usage += min(1, number(rest))
	s.usages++
}

func computed(s *sums, rest []byte) {
	s.Computed += number(rest)
	s.SaysComputed = true
}

func block(s *sums, rest []byte) { s.Block = max(s.Block, int(min(math.MaxInt32, number(rest)))) }

// realtime reads SGLang's count of tokens. It is written after each prefill and after 40 decode steps, where the other
// engines count a request at its end.
func realtime(s *sums, rest []byte) {
	switch string(labelOf(rest, "mode")) {
	case "prefill_compute":
		computed(s, rest)
		queries(s, rest)
	case "prefill_cache":
		hits(s, rest)
		queries(s, rest)
	case "decode":
		steps(s, rest)
	}
}

// cachePage reads the tokens of a block of SGLang's KV cache. It is the same for all engines, and has no label of one.
func cachePage(s *sums, rest []byte) {
	n, _ := strconv.Atoi(string(labelOf(rest, "page_size")))
	s.Block = max(s.Block, min(math.MaxInt32, n))
}

// cacheConfig reads the tokens of one vLLM engine's KV cache, and the tokens of a block. kv_cache_size_tokens counts
// where there is one (0.32; the engine's own figure, right for hybrid models too), else block_size times
// num_gpu_blocks. It subtracts one block: the count includes vLLM's null block, which never holds anything.
func cacheConfig(s *sums, rest []byte) {
	var size, block, blocks int
	skipLabels(rest, func(name, value []byte) {
		n, err := strconv.Atoi(string(value)) // "None" is 0
		if err != nil || n < 0 || n > math.MaxInt32 {
			return
		}
		switch string(name) {
		case "kv_cache_size_tokens":
			size = n
		case "block_size":
			block = n
		case "num_gpu_blocks":
			blocks = n
		}
	})
	if size == 0 {
		size = block * blocks
	}
	s.tokens += min(math.MaxInt32, float64(max(0, size-block)))
	s.Block = max(s.Block, block)
}

// adapters reads a series of lora_requests_info: its value is the time at which it was true. vLLM leaves the old ones
// on its page, so that the newest counts.
func adapters(s *sums, rest []byte) {
	at := number(rest)
	if s.Adapters != nil && s.Adapters.At >= at {
		return
	}
	a := worker.Adapters{At: at}
	skipLabels(rest, func(name, value []byte) {
		switch string(name) {
		case "max_lora":
			a.Max, _ = strconv.Atoi(string(value))
			a.Max = min(max(0, a.Max), math.MaxInt32)
		case "running_lora_adapters":
			a.Running = adapterNames(value)
		case "waiting_lora_adapters":
			a.Waiting = adapterNames(value)
		}
	})
	s.Adapters = &a
}

// maxAdapters bounds the names that are read of a label.
const maxAdapters = 256

// adapterNames returns the names of a list with commas.
func adapterNames(list []byte) (names []string) {
	for name := range bytes.SplitSeq(list, []byte(",")) {
		name = bytes.TrimSpace(name)
		if len(name) > 0 && len(names) < maxAdapters {
			names = append(names, string(name))
		}
	}
	return names
}
