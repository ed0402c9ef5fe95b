package worker

import (
	"math"
	"os"
	"strings"
	"testing"
)

func TestParseRecordedPages(t *testing.T) {
	f := func(file string, want metrics) {
		t.Helper()
		page, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		want.engines = 1
		if got := parseMetrics(page); got != want {
			t.Errorf("%s: %+v; want %+v", file, got, want)
		}
	}
	f("metrics-0.32.0.txt", metrics{capacity: 23 * 128, block: 128, process: 1.79524799931e+09, saysComputed: true})
	f("metrics-0.11.1.txt", metrics{capacity: 127 * 16, block: 16, process: 1.79524968851e+09, queries: 3697, hits: 192,
		prefill: 19.75551417600036, prefills: 46, prompts: 3750, tokenTime: 2.13049174800035, tokenTimes: 46})
}

func TestParseMetrics(t *testing.T) {
	f := func(page string, want metrics) {
		t.Helper()
		if got := parseMetrics([]byte(page)); got != want {
			t.Errorf("%q: %+v; want %+v", page, got, want)
		}
	}
	f("", metrics{})
	f("vllm:num_requests_running 3\nvllm:num_requests_waiting{} 4 1700000000000\r\n", metrics{running: 3, waiting: 4})
	// Two engines: counts add up, usage is their mean, capacity is theirs together.
	f(`vllm:num_requests_running{engine="0"} 3
vllm:num_requests_running{engine="1"} 4
vllm:kv_cache_usage_perc{engine="0"} 0.5
vllm:kv_cache_usage_perc{engine="1"} 1
vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="100"} 1.0
vllm:cache_config_info{block_size="16",engine="1",num_gpu_blocks="100"} 1.0
`, metrics{running: 7, usage: .75, engines: 2, capacity: 2 * 99 * 16, block: 16})
	f(`vllm:gpu_cache_usage_perc{model_name="a b} \"c\" {"} 0.25`, metrics{usage: .25, engines: 1})
	f(`vllm:cache_config_info{block_size="16",num_gpu_blocks="None"} 1`, metrics{block: 16})
	f(`vllm:cache_config_info{kv_cache_size_tokens="3072",block_size="128",num_gpu_blocks="25"} 1`, metrics{capacity: 3072 - 128, block: 128})
	f(`vllm:cache_config_info{block_size="2000000000",num_gpu_blocks="2000000000"} 1`, metrics{capacity: math.MaxInt32, block: 2000000000})
	f("# vllm:num_requests_running 3\nvllm:num_requests_running_total 3\n", metrics{})
	f("vllm:num_requests_running NaN\nvllm:num_requests_waiting -1\nprocess_start_time_seconds +Inf\n", metrics{})
	f("vllm:num_requests_running{a=\"\\\nvllm:num_requests_waiting 2", metrics{waiting: 2})
	f("vllm:num_requests_running\nvllm:num_requests_running \nvllm:num_requests_running{", metrics{})
}

func FuzzParseMetrics(f *testing.F) {
	for _, file := range []string{"metrics-0.32.0.txt", "metrics-0.11.1.txt"} {
		page, err := os.ReadFile("testdata/" + file)
		if err != nil {
			f.Fatal(err)
		}
		for _, line := range strings.Split(string(page), "\n") {
			if strings.HasPrefix(line, "vllm:") && !strings.Contains(line, "_bucket") {
				f.Add(line)
			}
		}
	}
	f.Add(`vllm:cache_config_info{block_size="16\"`)
	f.Fuzz(func(t *testing.T, page string) {
		m := parseMetrics([]byte(page))
		for _, v := range []float64{float64(m.running), float64(m.waiting), m.usage, float64(m.capacity), m.queries, m.hits, m.process} {
			if !(v >= 0 && v <= 1e18) {
				t.Fatalf("%+v", m)
			}
		}
		if m.usage > 1 || m.capacity > math.MaxInt32 {
			t.Fatalf("%+v", m)
		}
		// A page before it changes nothing of what is read, but by adding.
		if n := parseMetrics([]byte("vllm:num_requests_running 1\n" + page)); n.running != m.running+1 {
			t.Fatalf("running %d after one more; was %d", n.running, m.running)
		}
	})
}

func TestParseModels(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		l, entries, err := parseModels([]byte(body))
		got := "error"
		if err == nil {
			got = strings.Join(l.ids, " ")
			if len(entries) != len(l.ids) {
				t.Errorf("%s: %d entries for %d ids", body, len(entries), len(l.ids))
			}
		}
		if got != want {
			t.Errorf("%s: %q; want %q", body, got, want)
		}
	}
	f(`{"object":"list","data":[{"id":"tiny","x":1},{"id":"lora-a","parent":"tiny"}]}`, "tiny lora-a")
	f(`{"data":[{"id":"a"},{"id":"a"},{"id":""},{"id":3},7]}`, "a")
	f(`{"data":[]}`, "")
	f(`{}`, "error")
	f(`{"data":{}}`, "error")
	f(`<html>`, "error")
}
