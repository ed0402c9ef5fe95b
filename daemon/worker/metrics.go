package worker

import (
	"bytes"
	"math"
	"strconv"
)

// metrics is what is read from a page of vLLM's metrics: sums over its data-parallel engines, usage their mean.
type metrics struct {
	running, waiting int
	usage            float64 // 0..1
	capacity         int     // tokens of KV cache that can hold prompts; 0 = not said
	block            int     // tokens of a block of it; 0 = not said
	queries, hits    float64 // prefix cache, tokens since the process began
	process          float64 // when the process began, Unix seconds; 0 = not said

	// Of requests that have ended, sums since the process began. See told.go.
	prefill, prefills     float64 // seconds of prefill, requests
	computed, prompts     float64 // prompt tokens not cached (0.19 and later), all prompt tokens
	saysComputed          bool
	externalHits          float64 // as hits, from a connector
	tokenTime, tokenTimes float64 // each one's mean seconds a token, requests

	engines int // of usage
}

// parseMetrics reads a page in Prometheus' text format. It never fails: lines that it does not know or cannot read are
// skipped, as each vLLM release adds some.
func parseMetrics(page []byte) metrics {
	var m metrics
	for len(page) > 0 {
		var line []byte
		line, page, _ = bytes.Cut(page, []byte("\n"))
		if i := bytes.IndexAny(line, "{ "); i > 0 && line[0] != '#' {
			m.line(line[:i], line[i:])
		}
	}
	if m.engines > 0 {
		m.usage /= float64(m.engines)
	}
	return m
}

func (m *metrics) line(name, rest []byte) {
	switch string(name) {
	case "vllm:num_requests_running":
		m.running += int(number(rest))
	case "vllm:num_requests_waiting":
		m.waiting += int(number(rest))
	case "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc": // the second until late 2025
		m.usage += min(1, number(rest))
		m.engines++
	case "vllm:prefix_cache_queries_total":
		m.queries += number(rest)
	case "vllm:prefix_cache_hits_total":
		m.hits += number(rest)
	case "vllm:cache_config_info":
		tokens, block := capacity(rest)
		m.capacity = min(math.MaxInt32, m.capacity+tokens)
		m.block = max(m.block, block)
	case "vllm:external_prefix_cache_hits_total":
		m.externalHits += number(rest)
	case "vllm:request_prefill_time_seconds_sum":
		m.prefill += number(rest)
	case "vllm:request_prefill_time_seconds_count":
		m.prefills += number(rest)
	case "vllm:request_prefill_kv_computed_tokens_sum":
		m.computed += number(rest)
		m.saysComputed = true
	case "vllm:request_prompt_tokens_sum":
		m.prompts += number(rest)
	case "vllm:request_time_per_output_token_seconds_sum":
		m.tokenTime += number(rest)
	case "vllm:request_time_per_output_token_seconds_count":
		m.tokenTimes += number(rest)
	case "process_start_time_seconds":
		m.process = number(rest)
	}
}

// number is the value after the labels; what is none, negative or absurd counts as 0.
func number(rest []byte) float64 {
	if rest[0] == '{' {
		if rest = labels(rest, nil); rest == nil {
			return 0
		}
	}
	rest = bytes.TrimLeft(rest, " \t")
	if i := bytes.IndexAny(rest, " \t\r"); i >= 0 { // a timestamp follows
		rest = rest[:i]
	}
	v, err := strconv.ParseFloat(string(rest), 64)
	if err != nil || !(v >= 0 && v < 1e15) {
		return 0
	}
	return v
}

// capacity is the tokens of KV cache that one engine's cache_config_info tells: kv_cache_size_tokens where there is one
// (0.32; the engine's own figure, right for hybrid models too), else block_size times num_gpu_blocks; and the tokens of a block.
// One block is taken off: vLLM's null block, which stands in the count and never holds anything.
func capacity(rest []byte) (tokens, block int) {
	var size, blocks int
	labels(rest, func(name, value []byte) {
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
	return min(math.MaxInt32, max(0, size-block)), block
}

// labels calls each for the labels at the start of rest and gives what follows them, nil if they do not end. Values stay
// escaped: those that matter are numbers.
func labels(rest []byte, each func(name, value []byte)) []byte {
	if len(rest) == 0 || rest[0] != '{' {
		return nil
	}
	for rest = rest[1:]; ; {
		rest = bytes.TrimLeft(rest, " ,")
		if len(rest) > 0 && rest[0] == '}' {
			return rest[1:]
		}
		name, tail, ok := bytes.Cut(rest, []byte("="))
		if tail = bytes.TrimLeft(tail, " "); !ok || len(tail) == 0 || tail[0] != '"' {
			return nil
		}
		end := 1
		for end < len(tail) && tail[end] != '"' {
			if tail[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(tail) {
			return nil
		}
		if each != nil {
			each(bytes.TrimSpace(name), tail[1:end])
		}
		rest = tail[end+1:]
	}
}
