package probe

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// metricsPage is a page of metrics in the making.
type metricsPage struct {
	all     sums
	engines []engine // in the order in which the page names them
	crowded bool     // it names more than maxEngines
}

// engine is a page's figures of one engine.
type engine struct {
	sums
	number int
}

// sums adds up series.
type sums struct {
	worker.Metrics
	usages int // added up in Usage
}

// maxEngines bounds the engines of a worker. Those of a page that names more are not believed.
const maxEngines = 256

// parseMetrics reads a page in Prometheus' text format. It never fails: lines that it does not know or cannot read are
// skipped, as each vLLM release adds some. The label engine has the number of a data-parallel engine. Engines behind a
// port need not begin with 0: with --data-parallel-hybrid-lb they have the numbers of the whole deployment.
func parseMetrics(text []byte) worker.Page {
	var p metricsPage
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		if i := bytes.IndexAny(line, "{ "); i > 0 && line[0] != '#' {
			p.add(line[:i], line[i:])
		}
	}
	return p.finish()
}

// add takes up one line, cut behind the metric's name.
func (p *metricsPage) add(name, rest []byte) {
	if !p.all.add(name, rest) {
		return
	}
	if number, ok := engineNumber(rest); ok {
		p.engine(number).add(name, rest)
	}
}

// engine returns the sums of the engine of that number.
func (p *metricsPage) engine(number int) *sums {
	for i := range p.engines {
		if p.engines[i].number == number {
			return &p.engines[i].sums
		}
	}
	if len(p.engines) == maxEngines {
		p.crowded = true
		return new(sums)
	}
	p.engines = append(p.engines, engine{number: number})
	return &p.engines[len(p.engines)-1].sums
}

// finish returns what was read.
func (p *metricsPage) finish() worker.Page {
	out := worker.Page{Metrics: p.all.finish()}
	if p.crowded || len(p.engines) == 0 {
		return out
	}
	slices.SortFunc(p.engines, func(a, b engine) int { return cmp.Compare(a.number, b.number) })
	out.Engines = make([]worker.Metrics, len(p.engines))
	for i := range p.engines {
		out.Engines[i] = p.engines[i].finish()
	}
	return out
}

// finish returns the sums.
func (s *sums) finish() worker.Metrics {
	if s.usages > 0 {
		s.Usage /= float64(s.usages)
	}
	return s.Metrics
}

// add adds one series, and reports whether its name matters.
func (s *sums) add(name, rest []byte) bool {
	switch string(name) {
	case "vllm:num_requests_running":
		s.Running += int(number(rest))
	case "vllm:num_requests_waiting":
		s.Waiting += int(number(rest))
	case "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc": // the second until late 2025
		s.Usage += min(1, number(rest))
		s.usages++
	case "vllm:prefix_cache_queries_total":
		s.Queries += number(rest)
	case "vllm:prefix_cache_hits_total":
		s.Hits += number(rest)
	case "vllm:num_preemptions_total":
		s.Preempts += number(rest)
	case "vllm:cache_config_info":
		tokens, block := cacheSize(rest)
		s.Capacity = min(math.MaxInt32, s.Capacity+tokens)
		s.Block = max(s.Block, block)
	case "vllm:external_prefix_cache_hits_total":
		s.ExternalHits += number(rest)
	case "vllm:request_prefill_time_seconds_sum":
		s.Prefill += number(rest)
	case "vllm:request_prefill_time_seconds_count":
		s.Prefills += number(rest)
	case "vllm:request_prefill_kv_computed_tokens_sum":
		s.Computed += number(rest)
		s.SaysComputed = true
	case "vllm:request_prompt_tokens_sum":
		s.Prompts += number(rest)
	case "vllm:request_time_per_output_token_seconds_sum":
		s.TokenTime += number(rest)
	case "vllm:request_time_per_output_token_seconds_count":
		s.TokenTimes += number(rest)
	case "vllm:iteration_tokens_total_count":
		s.Steps += number(rest)
	case "vllm:engine_sleep_state":
		s.Asleep = s.Asleep || isAwakeState(rest) && number(rest) == 0
	case "process_start_time_seconds":
		s.Process = number(rest)
	default:
		return s.addAdapters(name, rest) || s.addLMCache(name, rest)
	}
	return true
}

// addLMCache reads a series of LMCache's. It returns false for another metric.
func (s *sums) addLMCache(name, rest []byte) bool {
	if !bytes.HasPrefix(name, []byte("lmcache:")) {
		return false
	}
	l := s.LMCache
	if l == nil {
		l = new(worker.LMCache)
	}
	switch string(name) {
	case "lmcache:num_vllm_hit_tokens_total":
		l.EngineHits += number(rest)
	case "lmcache:num_lookup_tokens_total":
		l.Lookups += number(rest)
	case "lmcache:num_lookup_hits_total":
		l.LookupHits += number(rest)
	case "lmcache:request_cache_hit_rate_sum":
		l.RateSum += number(rest)
	case "lmcache:request_cache_hit_rate_count":
		l.RateCount += number(rest)
	default:
		return false
	}
	s.LMCache = l
	return true
}

// addAdapters reads a series of lora_requests_info: its value is the time at which it was true. vLLM leaves the old
// ones on its page, so that the newest counts. It returns false for another metric.
func (s *sums) addAdapters(name, rest []byte) bool {
	if string(name) != "vllm:lora_requests_info" {
		return false
	}
	at := number(rest)
	if s.Adapters != nil && s.Adapters.At >= at {
		return true
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
	return true
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

// isAwakeState reports whether a series of the engine's sleep state is the one for awake: 1 or 0. The others name how
// deep it sleeps.
func isAwakeState(rest []byte) (is bool) {
	skipLabels(rest, func(name, value []byte) {
		is = is || string(name) == "sleep_state" && string(value) == "awake"
	})
	return is
}

// engineNumber returns the value of the label engine; false without such a label, or if it is not a number.
func engineNumber(rest []byte) (n int, ok bool) {
	var value []byte
	if skipLabels(rest, func(name, v []byte) {
		if string(name) == "engine" {
			value = v
		}
	}) == nil {
		return 0, false
	}
	n, err := strconv.Atoi(string(value))
	return n, err == nil && n >= 0
}

// number returns the value after the labels, and 0 for a value that is missing, negative or absurd.
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
// block_size times num_gpu_blocks. It subtracts one block: the count includes vLLM's null block, which never holds
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
