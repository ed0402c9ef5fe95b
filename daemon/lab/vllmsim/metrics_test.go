package vllmsim

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

var (
	typeLine   = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)
	sampleLine = regexp.MustCompile(`(?m)^([a-z_:]+)(?:\{(.*)\})? (\S+)$`)
	labelName  = regexp.MustCompile(`(\w+)="`)
)

// omitted are the metrics of vLLM 0.32.0 that no router reads, by prefix; every family has a _created twin besides.
var omitted = []string{
	"python_", "process_", "http_", "vllm:estimated_", "vllm:engine_sleep_state",
	"vllm:mm_cache_",
	"vllm:prompt_tokens_by_source_total", "vllm:prompt_tokens_cached_by_source_total", "vllm:admission_rejections_total",
	"vllm:request_prompt_tokens", "vllm:request_generation_tokens",
	"vllm:request_max_num_generation_tokens", "vllm:request_params_", "vllm:request_inference_time_seconds",
	"vllm:request_decode_time_seconds", "vllm:request_num_preemptions",
}

func families(text string) map[string]string {
	m := map[string]string{}
	for _, f := range typeLine.FindAllStringSubmatch(text, -1) {
		m[f[1]] = f[2]
	}
	return m
}

// series maps each sample's name to its label names, and for buckets lists their bounds.
func series(text string) (labels map[string]string, bounds map[string][]string) {
	labels, bounds = map[string]string{}, map[string][]string{}
	for _, f := range sampleLine.FindAllStringSubmatch(text, -1) {
		var names []string
		for _, l := range labelName.FindAllStringSubmatch(f[2], -1) {
			names = append(names, l[1])
		}
		slices.Sort(names)
		labels[f[1]] = strings.Join(names, " ")
		if _, le, ok := strings.Cut(f[2], `le="`); ok {
			le, _, _ = strings.Cut(le, `"`)
			bounds[f[1]] = append(bounds[f[1]], le)
		}
	}
	return labels, bounds
}

func TestMetricsMatchRecording(t *testing.T) {
	s := newTiny(t, Config{Speed: 1000, MaxModelLen: 3072})
	do(s, "POST", "/v1/completions", `{"prompt":"x"}`)
	got, want := do(s, "GET", "/metrics", "").Body.String(), string(recorded(t, "metrics.txt"))
	mine, real := families(got), families(want)
	for name, kind := range mine {
		if real[name] != kind {
			t.Errorf("%s is a %s, recorded %q", name, kind, real[name])
		}
	}
	for name := range real {
		left := strings.HasSuffix(name, "_created") ||
			slices.ContainsFunc(omitted, func(p string) bool { return strings.HasPrefix(name, p) })
		if _, ok := mine[name]; !ok && !left {
			t.Errorf("%s is missing", name)
		}
	}
	gotLabels, gotBounds := series(got)
	wantLabels, wantBounds := series(want)
	for name, l := range gotLabels {
		if name == "vllm:cache_config_info" {
			for _, one := range strings.Fields(l) {
				if !slices.Contains(strings.Fields(wantLabels[name]), one) {
					t.Errorf("%s: label %s is not in the recording", name, one)
				}
			}
			continue
		}
		if l != wantLabels[name] {
			t.Errorf("%s: labels %q, recorded %q", name, l, wantLabels[name])
		}
	}
	for name, b := range gotBounds {
		if !slices.Equal(b, wantBounds[name]) {
			t.Errorf("%s: bounds %v, recorded %v", name, b, wantBounds[name])
		}
	}
	for _, line := range []string{
		`vllm:prompt_tokens_total{engine="0",model_name="tiny"} 1.0`,
		`vllm:generation_tokens_total{engine="0",model_name="tiny"} 16.0`,
		`vllm:request_success_total{engine="0",finished_reason="length",model_name="tiny"} 1.0`,
		`vllm:time_to_first_token_seconds_count{engine="0",model_name="tiny"} 1.0`,
		`vllm:time_to_first_token_seconds_bucket{engine="0",le="0.02",model_name="tiny"} 1.0`,
		`vllm:request_prefill_kv_computed_tokens_sum{engine="0",model_name="tiny"} 1.0`,
		`vllm:request_prefill_time_seconds_count{engine="0",model_name="tiny"} 1.0`,
	} {
		if !strings.Contains(got, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
}

// What a worker reports of its prefill is what it did: the seconds follow its slowness, the tokens leave out what was
// cached, and a token's time is a decode step's.
func TestPrefillMetrics(t *testing.T) {
	model := engine.DefaultModel()
	for _, slowness := range []float64{1, 8} {
		s := newTiny(t, Config{Speed: 1000, Slowness: slowness})
		text := engine.TextOfTokens(1, 4000)
		for range 2 {
			do(s, "POST", "/v1/completions", `{"prompt":"`+text+`","max_tokens":11}`)
		}
		page := do(s, "GET", "/metrics", "").Body.String()
		value := func(name string) float64 {
			_, rest, _ := strings.Cut(page, "\n"+name+`{engine="0",model_name="tiny"} `)
			line, _, _ := strings.Cut(rest, "\n")
			v, err := strconv.ParseFloat(line, 64)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return v
		}
		f := func(name string, want float64) {
			t.Helper()
			if got := value(name); math.Abs(got-want) > 1e-6*want {
				t.Errorf("slowness %v: %s is %v; want %v", slowness, name, got, want)
			}
		}
		f("vllm:request_prefill_kv_computed_tokens_count", 2)
		f("vllm:request_prefill_kv_computed_tokens_sum", 4000+16) // the second time all but the last block is cached
		f("vllm:request_prefill_time_seconds_sum", slowness*(model.Prefill(4000, 0)+model.StepSeconds))
		f("vllm:request_time_per_output_token_seconds_sum", slowness*2*(model.StepSeconds+model.DecodeSeconds))
	}
}
