package probe

import (
	"bytes"
	"math"
	"strconv"
)

// page is a page of metrics in the making.
type page struct {
	Metrics
	engines int // whose usage was added up
}

// parseMetrics reads a page in Prometheus' text format. It never fails: lines that it does not know or cannot read are
// skipped, as each vLLM release adds some.
func parseMetrics(text []byte) Metrics {
	var p page
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		if i := bytes.IndexAny(line, "{ "); i > 0 && line[0] != '#' {
			p.add(line[:i], line[i:])
		}
	}
	if p.engines > 0 {
		p.Usage /= float64(p.engines)
	}
	return p.Metrics
}

// add takes up one line, cut behind the metric's name.
func (p *page) add(name, rest []byte) {
	switch string(name) {
	case "vllm:num_requests_running":
		p.Running += int(number(rest))
	case "vllm:num_requests_waiting":
		p.Waiting += int(number(rest))
	case "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc": // the second until late 2025
		p.Usage += min(1, number(rest))
		p.engines++
	case "vllm:prefix_cache_queries_total":
		p.Queries += number(rest)
	case "vllm:prefix_cache_hits_total":
		p.Hits += number(rest)
	case "vllm:cache_config_info":
		tokens, block := cacheSize(rest)
		p.Capacity = min(math.MaxInt32, p.Capacity+tokens)
		p.Block = max(p.Block, block)
	case "vllm:external_prefix_cache_hits_total":
		p.ExternalHits += number(rest)
	case "vllm:request_prefill_time_seconds_sum":
		p.Prefill += number(rest)
	case "vllm:request_prefill_time_seconds_count":
		p.Prefills += number(rest)
	case "vllm:request_prefill_kv_computed_tokens_sum":
		p.Computed += number(rest)
		p.SaysComputed = true
	case "vllm:request_prompt_tokens_sum":
		p.Prompts += number(rest)
	case "vllm:request_time_per_output_token_seconds_sum":
		p.TokenTime += number(rest)
	case "vllm:request_time_per_output_token_seconds_count":
		p.TokenTimes += number(rest)
	case "process_start_time_seconds":
		p.Process = number(rest)
	}
}

// number returns the value behind the labels, and 0 for what is none, negative or absurd.
func number(rest []byte) float64 {
	if rest[0] == '{' {
		rest = skipLabels(rest, nil)
		if rest == nil {
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

// cacheSize returns the tokens of one engine's KV cache by its cache_config_info, and the tokens of a block.
// kv_cache_size_tokens counts where there is one (0.32; the engine's own figure, right for hybrid models too), else
// block_size times num_gpu_blocks. One block is taken off: vLLM's null block stands in the count and never holds
// anything.
func cacheSize(rest []byte) (tokens, block int) {
	var size, blocks int
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
	return min(math.MaxInt32, max(0, size-block)), block
}

// skipLabels calls each for the labels at the start of rest and returns what follows them, nil if they do not end.
// Values stay escaped: those that matter are numbers.
func skipLabels(rest []byte, each func(name, value []byte)) []byte {
	if len(rest) == 0 || rest[0] != '{' {
		return nil
	}
	for rest = rest[1:]; ; {
		rest = bytes.TrimLeft(rest, " ,")
		if len(rest) > 0 && rest[0] == '}' {
			return rest[1:]
		}
		name, tail, ok := bytes.Cut(rest, []byte("="))
		tail = bytes.TrimLeft(tail, " ")
		if !ok || len(tail) == 0 || tail[0] != '"' {
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
