package vllmsim

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// exposition writes Prometheus text with vLLM's labels.
type exposition struct {
	bytes.Buffer
	labels string // engine and model_name
}

func (x *exposition) family(name, kind, help string) {
	fmt.Fprintf(x, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func (x *exposition) sample(name, labels string, v float64) {
	fmt.Fprintf(x, "%s{%s} %s\n", name, labels, pyFloat(v))
}

func (x *exposition) gauge(name, help string, v float64) {
	x.family(name, "gauge", help)
	x.sample(name, x.labels, v)
}

func (x *exposition) counter(name, help string, v int64) {
	x.family(name, "counter", help)
	x.sample(name, x.labels, float64(v))
}

func (x *exposition) histogram(name, help string, h *histogram) {
	x.family(name, "histogram", help)
	engine, model, _ := strings.Cut(x.labels, ",")
	sum := int64(0)
	for i := range len(h.bounds) + 1 {
		le := "+Inf"
		if i < len(h.bounds) {
			le = pyFloat(h.bounds[i])
		}
		sum += h.buckets[i]
		x.sample(name+"_bucket", engine+`,le="`+le+`",`+model, float64(sum))
	}
	x.sample(name+"_count", x.labels, float64(h.count))
	x.sample(name+"_sum", x.labels, h.sum)
}

// pyFloat writes a number as Python's repr of a float does.
func pyFloat(v float64) string {
	s := strconv.FormatFloat(v, 'g', -1, 64)
	if !strings.ContainsAny(s, ".eIN") {
		s += ".0"
	}
	return s
}

// usage is vllm:kv_cache_usage_perc: the part of the usable blocks that requests hold, 0 to 1.
func (p *blockPool) usage() float64 { return 1 - float64(p.free)/float64(p.usable()) }

func (s *Server) handleMetrics(w http.ResponseWriter, _ *http.Request) {
	x := &exposition{labels: `engine="0",model_name=` + strconv.Quote(s.cfg.Models[0])}
	x.family("process_start_time_seconds", "gauge", "Start time of the process since unix epoch in seconds.")
	fmt.Fprintf(x, "process_start_time_seconds %s\n", pyFloat(float64(s.born.Load())/1e9))
	s.engine.Load().expose(x, int(s.paced.Load()))
	w.Header().Set("Content-Type", "text/plain; version=1.0.0; charset=utf-8")
	w.Write(x.Bytes())
}

func (e *engine) expose(x *exposition, paced int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.advance()
	}
	c := &e.counts
	x.gauge("vllm:num_requests_running", "Number of requests in model execution batches.", float64(len(e.running)+paced))
	x.gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.", float64(len(e.waiting)))
	x.family("vllm:num_requests_waiting_by_reason", "gauge", "Number of waiting requests by reason.")
	x.sample("vllm:num_requests_waiting_by_reason", x.labels+`,reason="capacity"`, float64(len(e.waiting)))
	x.sample("vllm:num_requests_waiting_by_reason", x.labels+`,reason="deferred"`, 0)
	x.gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", e.pool.usage())
	x.counter("vllm:prefix_cache_queries_total", "Prefix cache queries, in terms of number of queried tokens.", c.Queries)
	x.counter("vllm:prefix_cache_hits_total", "Prefix cache hits, in terms of number of cached tokens.", c.CachedTokens)
	x.counter("vllm:num_preemptions_total", "Cumulative number of preemption from the engine.", c.Preemptions)
	x.counter("vllm:prompt_tokens_total", "Number of prefill tokens processed.", c.Prompt)
	x.counter("vllm:prompt_tokens_cached_total", "Number of cached prompt tokens (local + external).", c.CachedTokens)
	x.counter("vllm:generation_tokens_total", "Number of generation tokens processed.", c.Generated)
	x.family("vllm:request_success_total", "counter", "Count of successfully processed requests.")
	engine, model, _ := strings.Cut(x.labels, ",")
	for i := finishStop; i <= finishAbort; i++ {
		x.sample("vllm:request_success_total", engine+`,finished_reason="`+finishNames[i]+`",`+model, float64(c.Finished[i]))
	}
	x.histogram("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.", &e.ttft)
	x.histogram("vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", &e.interToken)
	x.histogram("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", &e.latency)
	x.histogram("vllm:request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", &e.queueTime)
	x.histogram("vllm:request_time_per_output_token_seconds", "Histogram of time_per_output_token_seconds per request.", &e.tokenTime)
	x.histogram("vllm:request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request.", &e.prefillTime)
	x.histogram("vllm:request_prefill_kv_computed_tokens",
		"Histogram of new KV tokens computed during prefill (excluding cached tokens).", &e.computed)
	x.family("vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig")
	x.sample("vllm:cache_config_info", fmt.Sprintf(`block_size="%d",cache_dtype="auto",enable_prefix_caching="True",engine="0",`+
		`gpu_memory_utilization="0.92",kv_cache_size_tokens="%d",num_cpu_blocks="None",num_gpu_blocks="%d",num_gpu_blocks_override="None",`+
		`prefix_caching_hash_algo="sha256",sliding_window="None"`,
		e.cfg.BlockTokens, len(e.pool.blocks)*e.cfg.BlockTokens, len(e.pool.blocks)), 1)
}
