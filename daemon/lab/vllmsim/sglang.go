package vllmsim

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// EngineSGLang is the value of Config.Engine for a server of SGLang 0.5.20 with --enable-metrics.
const EngineSGLang = "sglang"

// sglangAPI answers what SGLang's server has beside OpenAI's endpoints.
type sglangAPI struct{ cfg *Config }

func (a sglangAPI) routes(m router, health http.HandlerFunc) {
	m.on("/health_generate", "GET", health)
	for _, path := range []string{"/get_model_info", "/model_info"} {
		m.on(path, "GET", func(w http.ResponseWriter, _ *http.Request) {
			writeJSON(w, http.StatusOK, map[string]any{"model_path": a.cfg.Models[0], "tokenizer_path": a.cfg.Models[0],
				"is_generation": true, "weight_version": "default"})
		})
	}
	for _, path := range []string{"/get_server_info", "/server_info"} {
		m.on(path, "GET", func(w http.ResponseWriter, _ *http.Request) {
			writeJSON(w, http.StatusOK, map[string]any{"model_path": a.cfg.Models[0], "served_model_name": a.cfg.Models[0],
				"disaggregation_mode": "null", "dp_size": a.cfg.DataParallel, "page_size": a.cfg.BlockTokens,
				"version": "0.5.20"})
		})
	}
}

// exposeSGLang returns SGLang's page of /metrics. With several engines each has the label dp_rank, but for what the
// server counts for all of them.
func exposeSGLang(cfg *Config, engines []engine.Stats, paced int) []byte {
	var b bytes.Buffer
	engines[0].Running += paced
	server := fmt.Sprintf("model_name=%q", cfg.Models[0])
	family := func(name, kind string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, name, name, kind) }
	each := func(name, more string, value func(*engine.Stats) float64) {
		for i := range engines {
			rank := ""
			if cfg.DataParallel > 1 {
				rank = `dp_rank="` + strconv.Itoa(i) + `",`
			}
			fmt.Fprintf(&b, `%s{%sengine_type="unified",%smoe_ep_rank="0",%s,pp_rank="0",tp_rank="0"} %s`+"\n", name, rank,
				more, server, pyFloat(value(&engines[i])))
		}
	}
	all := func(name, more string, value func(*engine.Stats) float64) {
		sum := 0.
		for i := range engines {
			sum += value(&engines[i])
		}
		fmt.Fprintf(&b, "%s{%s%s} %s\n", name, more, server, pyFloat(sum))
	}
	family("sglang:cache_config_info", "gauge")
	fmt.Fprintf(&b, `sglang:cache_config_info{num_pages="%d",page_size="%d"} 1.0`+"\n", engines[0].Blocks,
		cfg.BlockTokens)
	for _, g := range []struct {
		name  string
		value func(*engine.Stats) float64
	}{
		{"num_running_reqs", func(st *engine.Stats) float64 { return float64(st.Running) }},
		{"num_queue_reqs", func(st *engine.Stats) float64 { return float64(st.Waiting + st.Loading) }},
		{"token_usage", (*engine.Stats).KVUsage},
		{"max_total_num_tokens", func(st *engine.Stats) float64 { return float64(st.Blocks * cfg.BlockTokens) }},
	} {
		family("sglang:"+g.name, "gauge")
		each("sglang:"+g.name, "", g.value)
	}
	family("sglang:num_retracted_requests_total", "counter")
	each("sglang:num_retracted_requests_total", "", func(st *engine.Stats) float64 { return float64(st.Preemptions) })
	family("sglang:realtime_tokens_total", "counter")
	for _, m := range []struct {
		mode  string
		value func(*engine.Stats) float64
	}{
		{"prefill_compute", func(st *engine.Stats) float64 { return float64(st.ComputedTokens) }},
		{"prefill_cache", func(st *engine.Stats) float64 { return float64(st.CachedTokens) }},
		{"decode", func(st *engine.Stats) float64 { return float64(st.GeneratedTokens) }},
	} {
		each("sglang:realtime_tokens_total", `mode="`+m.mode+`",`, m.value)
	}
	const stage, between = "sglang:per_stage_req_latency_seconds", "sglang:inter_token_latency_seconds"
	family(stage, "histogram")
	each(stage+"_sum", `stage="prefill_forward",`, func(st *engine.Stats) float64 { return st.Forward.Sum })
	each(stage+"_count", `stage="prefill_forward",`, func(st *engine.Stats) float64 { return float64(st.Forward.Count) })
	for _, c := range []struct {
		name, more string
		value      func(*engine.Stats) int64
	}{
		{"sglang:prompt_tokens_total", "", func(st *engine.Stats) int64 { return st.PromptTokens }},
		{"sglang:generation_tokens_total", "", func(st *engine.Stats) int64 { return st.GeneratedTokens }},
		{"sglang:cached_tokens_total", `cache_source="device",`, func(st *engine.Stats) int64 { return st.CachedTokens }},
	} {
		family(c.name, "counter")
		all(c.name, c.more, func(st *engine.Stats) float64 { return float64(c.value(st)) })
	}
	family(between, "histogram")
	all(between+"_sum", "", func(st *engine.Stats) float64 { return st.InterToken.Sum })
	all(between+"_count", "", func(st *engine.Stats) float64 { return float64(st.InterToken.Count) })
	return b.Bytes()
}

// sglangUsage ends a usage object of a server without --enable-cache-report.
const sglangUsage = `,"prompt_tokens_details":null,"reasoning_tokens":0}`

// tokenSGLang writes new tokens of a choice. Unlike vLLM's, the last event has no text: it has finish_reason and what
// matched.
func (f *chatForm) tokenSGLang(v *sse, p piece) {
	event := func(delta, end string) {
		b := strconv.AppendInt(append(append(v.buf[:0], f.head...), `{"index":`...), int64(p.choice), 10)
		b = append(append(b, delta...), `,"logprobs":null,"finish_reason":`...)
		v.end(append(append(b, end...), `}]`...))
	}
	const going = `null,"matched_stop":null`
	if p.first && f.chat {
		event(`,"delta":{"reasoning_content":null,"role":"assistant","content":""}`, going)
	}
	if p.to > p.from {
		event(string(f.appendDelta(nil, p)), going)
	}
	if p.end != engine.Unfinished {
		none := `,"text":""`
		if f.chat {
			none = `,"delta":{"reasoning_content":null,"content":null}`
		}
		event(none, `"`+f.finishReason(p.end)+`","matched_stop":null`)
	}
}

// bodySGLang appends the body of a plain answer.
func (f *chatForm) bodySGLang(b []byte) []byte {
	object := "text_completion"
	if f.chat {
		object = "chat.completion"
	}
	b = f.appendHead(b, object)
	for i, c := range f.choices {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"index":`...), int64(i), 10)
		n := c.tokens()
		switch {
		case f.tool != "":
			b = append(b, `,"message":{"role":"assistant","content":null,"reasoning_content":null,"tool_calls":[{"id":`...)
			b = append(appendQuoted(b, f.callID(i)), `,"index":0,"type":"function","function":{"name":`...)
			b = append(appendQuoted(b, f.tool), `,"arguments":"`...)
			b = append(c.appendText(b, 0, n), `"}}]}`...)
		case f.chat:
			b = c.appendText(append(b, `,"message":{"role":"assistant","content":"`...), 0, n)
			b = append(b, `","reasoning_content":null,"tool_calls":null}`...)
		default:
			b = append(c.appendText(append(b, `,"text":"`...), 0, n), '"')
		}
		b = append(append(b, `,"logprobs":null,"finish_reason":"`...), f.finishReason(c.finish())...)
		b = append(b, `","matched_stop":null}`...)
	}
	b = append(f.appendCounts(append(b, `],`...)), sglangUsage...)
	return append(b, `,"metadata":{"weight_version":"default"}}`...)
}
