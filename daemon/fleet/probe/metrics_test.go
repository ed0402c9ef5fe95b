package probe

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

func TestParseRecordedPages(t *testing.T) {
	f := func(file string, want worker.Metrics) {
		t.Helper()
		page, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseMetrics(page)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if got.Metrics != want {
			t.Errorf("%s: %+v; want %+v", file, got, want)
		}
		want.Process = 0 // of no engine
		if len(got.Engines) != 1 || got.Engines[0] != want {
			t.Errorf("%s: engines %+v; want one, which is the page", file, got.Engines)
		}
	}
	f("metrics-0.32.0.txt", worker.Metrics{Capacity: 23 * 128, Block: 128, Process: 1.79524799931e+09, SaysComputed: true})
	f("metrics-0.11.1.txt", worker.Metrics{Capacity: 127 * 16, Block: 16, Process: 1.79524968851e+09, Queries: 3697, Hits: 192,
		Prefill: 19.75551417600036, Prefills: 46, Prompts: 3750, TokenTime: 2.13049174800035, TokenTimes: 46, Steps: 71})
}

// TestPageTooLong: a page of which only a part can be read is no page.
func TestPageTooLong(t *testing.T) {
	size := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "vllm:num_requests_running 3\n", strings.Repeat("#", size-29), "\n")
	}))
	defer s.Close()
	for _, c := range []struct {
		size int
		want string
	}{{maxMetrics, ""}, {maxMetrics + 1, "/metrics: the page is longer than 8 MiB"}} {
		size = c.size
		p, err := newAsker(Config{}, rate.NewLimiter(rate.Inf, 0)).metrics(t.Context(), s.URL+"/metrics", 5*time.Second)
		if got := fmt.Sprint(err); err == nil && (c.want != "" || p.Running != 3) || err != nil && got != c.want {
			t.Errorf("a page of %d bytes: %+v, %v; want the error %q", c.size, p, err, c.want)
		}
	}
}

func TestParseMetrics(t *testing.T) {
	f := func(page string, want worker.Metrics) {
		t.Helper()
		if got, _ := parseMetrics([]byte(page)); got.Metrics != want {
			t.Errorf("%q: %+v; want %+v", page, got, want)
		}
	}
	f("", worker.Metrics{})
	f("vllm:num_requests_running 3\nvllm:num_requests_waiting{} 4 1700000000000\r\n", worker.Metrics{Running: 3, Waiting: 4})
	// Two engines: counts add up, usage is their mean, capacity is theirs together.
	f(`vllm:num_requests_running{engine="0"} 3
vllm:num_requests_running{engine="1"} 4
vllm:kv_cache_usage_perc{engine="0"} 0.5
vllm:kv_cache_usage_perc{engine="1"} 1
vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="100"} 1.0
vllm:cache_config_info{block_size="16",engine="1",num_gpu_blocks="100"} 1.0
`, worker.Metrics{Running: 7, Usage: .75, Capacity: 2 * 99 * 16, Block: 16})
	f("vllm:num_preemptions_total{engine=\"0\"} 3\nvllm:num_preemptions_total{engine=\"1\"} 4\n", worker.Metrics{Preempts: 7})
	f(`vllm:gpu_cache_usage_perc{model_name="a b} \"c\" {"} 0.25`, worker.Metrics{Usage: .25})
	f(`vllm:cache_config_info{block_size="16",num_gpu_blocks="None"} 1`, worker.Metrics{Block: 16})
	f(`vllm:cache_config_info{kv_cache_size_tokens="3072",block_size="128",num_gpu_blocks="25"} 1`,
		worker.Metrics{Capacity: 3072 - 128, Block: 128})
	f(`vllm:cache_config_info{block_size="2000000000",num_gpu_blocks="2000000000"} 1`,
		worker.Metrics{Capacity: math.MaxInt32, Block: 2000000000})
	f("# vllm:num_requests_running 3\nvllm:num_requests_running_total 3\n", worker.Metrics{})
	f("vllm:num_requests_running NaN\nvllm:num_requests_waiting -1\nprocess_start_time_seconds +Inf\n", worker.Metrics{})
	f("vllm:num_requests_running{a=\"\\\nvllm:num_requests_waiting 2", worker.Metrics{Waiting: 2})
	f("lmcache:num_other_total 3\nlmcache:num_lookup_tokens 3\n", worker.Metrics{})
	f("vllm:num_requests_running\nvllm:num_requests_running \nvllm:num_requests_running{", worker.Metrics{})
}

// TestParseLMCache: its counts are those of all engines of a worker.
func TestParseLMCache(t *testing.T) {
	page, _ := parseMetrics([]byte(`lmcache:num_vllm_hit_tokens_total{engine="0"} 10
lmcache:num_vllm_hit_tokens_total{engine="1"} 20
lmcache:num_lookup_tokens_total{engine="0"} 100
lmcache:num_lookup_hits_total{engine="0"} 60
lmcache:request_cache_hit_rate_bucket{engine="0",le="0.5"} 1
lmcache:request_cache_hit_rate_sum{engine="0"} 1.5
lmcache:request_cache_hit_rate_count{engine="0"} 2
`))
	got := page.LMCache
	if want := (worker.LMCache{EngineHits: 30, Lookups: 100, LookupHits: 60, RateSum: 1.5, RateCount: 2}); got == nil || *got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
}

// TestParseEngines: each engine has its own figures, in order of their numbers.
func TestParseEngines(t *testing.T) {
	f := func(page string, want ...worker.Metrics) {
		t.Helper()
		if got, _ := parseMetrics([]byte(page)); !slices.Equal(got.Engines, want) {
			t.Errorf("%q: engines %+v; want %+v", page, got.Engines, want)
		}
	}
	f("")
	f("vllm:num_requests_running 3\n")
	f("vllm:num_requests_running{model_name=\"a\"} 3\n")
	f("vllm:num_requests_running{engine=\"\"} 3\nvllm:num_requests_waiting{engine=\"x\"} 3\n")
	f("vllm:num_requests_running{engine=\"-1\"} 3\nvllm:num_requests_waiting{engine=\"1\" 3\n")
	f("vllm:other{engine=\"7\"} 3\n") // a name that does not matter shows nothing of what runs
	f(`vllm:num_requests_running{engine="10",model_name="m"} 3
vllm:num_requests_running{engine="9",model_name="m"} 4
vllm:kv_cache_usage_perc{engine="9",model_name="m"} 0.5
vllm:kv_cache_usage_perc{engine="10",model_name="m"} 1
vllm:request_prefill_time_seconds_sum{engine="10",model_name="m"} 2.5
vllm:cache_config_info{block_size="16",engine="9",num_gpu_blocks="100"} 1.0
vllm:cache_config_info{block_size="32",engine="10",num_gpu_blocks="50"} 1.0
process_start_time_seconds 5
`, worker.Metrics{Running: 4, Usage: .5, Capacity: 99 * 16, Block: 16},
		worker.Metrics{Running: 3, Usage: 1, Capacity: 49 * 32, Block: 32, Prefill: 2.5})
	var many strings.Builder
	for i := range maxEngines + 1 {
		fmt.Fprintf(&many, "vllm:num_requests_running{engine=\"%d\"} 1\n", i)
	}
	f(many.String())
	if got, _ := parseMetrics([]byte(many.String())); got.Running != maxEngines+1 {
		t.Errorf("a page of %d engines has %d running requests", maxEngines+1, got.Running)
	}
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
		m, _ := parseMetrics([]byte(page))
		figures := []float64{float64(m.Running), float64(m.Waiting), m.Usage, float64(m.Capacity), m.Queries,
			m.Hits, m.Process}
		for _, v := range figures {
			if !(v >= 0 && v <= 1e18) {
				t.Fatalf("%+v", m)
			}
		}
		if m.Usage > 1 || m.Capacity > math.MaxInt32 || len(m.Engines) > maxEngines {
			t.Fatalf("%+v", m)
		}
		// A page before it changes nothing of what is read, but by adding.
		if n, _ := parseMetrics([]byte("vllm:num_requests_running 1\n" + page)); n.Running != m.Running+1 {
			t.Fatalf("running %d after one more; was %d", n.Running, m.Running)
		}
	})
}

// TestParseAdapters: the newest series of lora_requests_info counts, and names stand between commas.
func TestParseAdapters(t *testing.T) {
	f := func(page string, want worker.Adapters) {
		t.Helper()
		var got worker.Adapters
		if p, _ := parseMetrics([]byte(page)); p.Adapters != nil {
			got = *p.Adapters
		}
		if got.At != want.At || got.Max != want.Max || !slices.Equal(got.Running, want.Running) ||
			!slices.Equal(got.Waiting, want.Waiting) {
			t.Errorf("%q: %+v; want %+v", page, got, want)
		}
	}
	f("vllm:num_requests_running 3\n", worker.Adapters{})
	f(`vllm:lora_requests_info{max_lora="4",running_lora_adapters="a,b",waiting_lora_adapters=""} 1.7e+09
vllm:lora_requests_info{max_lora="4",running_lora_adapters="c",waiting_lora_adapters="d, e,"} 1.7000001e+09
vllm:lora_requests_info{max_lora="4",running_lora_adapters="",waiting_lora_adapters=""} 1.6e+09
`, worker.Adapters{At: 1.7000001e9, Max: 4, Running: []string{"c"}, Waiting: []string{"d", "e"}})
	f(`vllm:lora_requests_info{max_lora="-1",running_lora_adapters="",waiting_lora_adapters=""} 1`, worker.Adapters{At: 1})
	f(`vllm:lora_requests_info{max_lora="x"} NaN`, worker.Adapters{})
}

// TestSleepLevels: an engine that is not awake sleeps, but at level 0 it is paused and keeps its cache. A page that does not say
// how deep it sleeps is one of an engine that sleeps.
func TestSleepLevels(t *testing.T) {
	f := func(states string, asleep, paused bool) {
		t.Helper()
		text := "vllm:num_requests_running{} 0\n"
		for i, name := range []string{"awake", "weights_offloaded", "discard_all"} {
			if i < len(states) {
				text += fmt.Sprintf("vllm:engine_sleep_state{engine=\"0\",sleep_state=%q} %c.0\n", name, states[i])
			}
		}
		p, err := parseMetrics([]byte(text))
		if m := p.Metrics; err != nil || m.Asleep != asleep || m.Paused != paused || m.Keeps != paused {
			t.Errorf("%s: %+v, %v; want asleep %v, paused %v", states, m, err, asleep, paused)
		}
	}
	f("100", false, false)
	f("010", true, false)
	f("001", true, false)
	f("000", false, true)
	f("0", true, false)
	f("1", false, false)
}

// TestRest: the questions to idle workers are spread, those to others keep to their interval.
func TestRest(t *testing.T) {
	f := func(idle, least, most time.Duration) {
		t.Helper()
		sum := time.Duration(0)
		for range 1000 {
			d := rest(time.Second, idle)
			if d < least || d > most {
				t.Fatalf("idle for %v: a pause of %v; want %v to %v", idle, d, least, most)
			}
			sum += d
		}
		if mean, want := sum/1000, (least+most)/2; mean < want*9/10 || mean > want*11/10 {
			t.Errorf("idle for %v: pauses of %v; want %v", idle, mean, want)
		}
	}
	f(0, 900*time.Millisecond, 1100*time.Millisecond)
	f(time.Second, 900*time.Millisecond, 1100*time.Millisecond)
	f(3*time.Second, time.Second, 5*time.Second)
	f(20*time.Second, visitAfter, 35*time.Second)
}
