package probe_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// engines is a page of metrics of so many data-parallel engines.
func engines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "vllm:num_requests_running{engine=\"%d\",model_name=\"tiny\"} %d\n", i, i)
		fmt.Fprintf(&b, "vllm:cache_config_info{block_size=\"16\",engine=\"%d\",num_gpu_blocks=\"101\"} 1.0\n", i)
	}
	return b.String()
}

// ids lists the workers that are up.
func (f *fleet) ids() string {
	var up []string
	for _, s := range f.Stats(time.Now()) {
		if s.Up {
			up = append(up, s.ID)
		}
	}
	return strings.Join(up, " ")
}

// TestEnginesAreCounted: before a worker is up and by each page of its metrics, which is read once for all engines.
func TestEnginesAreCounted(t *testing.T) {
	playWith(t, 1, worker.Config{}, func(f *fleet) {
		if got := f.ids(); got != "w0" {
			t.Fatalf("a worker that does not name its engines: %s", got)
		}
		f.set("w0", 503)
		time.Sleep(3 * time.Second)
		f.tell(engines(4), "")
		before := f.count("w0/metrics")
		f.set("w0", 200)
		for f.ids() == "" { // the first to be used are the ranks
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
		}
		if got := f.ids(); got != "w0#0 w0#1 w0#2 w0#3" || f.count("w0/metrics") < before+1 {
			t.Errorf("up with %s after %d reads of metrics", got, f.count("w0/metrics")-before)
		}
		time.Sleep(6 * time.Second)
		before, checks := f.count("w0/metrics"), f.count("w0/health")
		time.Sleep(20 * time.Second)
		if reads := f.count("w0/metrics") - before; reads < 3 || reads > 5 {
			t.Errorf("%d reads of metrics in 20 s; want 4: one for all engines", reads)
		}
		if checks = f.count("w0/health") - checks; checks < 9 || checks > 11 {
			t.Errorf("%d health checks in 20 s; want 10", checks)
		}
		for i, s := range f.Stats(time.Now()) {
			if s.Running != i || s.Capacity != 1600 {
				t.Errorf("%s: %+v; want the figures of its engine", s.ID, s)
			}
		}
		f.tell(engines(6), "")
		time.Sleep(6 * time.Second)
		if got := f.ids(); got != "w0#0 w0#1 w0#2 w0#3 w0#4 w0#5" {
			t.Errorf("with more engines: %s", got)
		}
		f.tell(engines(2), "")
		time.Sleep(12 * time.Second)
		if got := f.ids(); got != "w0#0 w0#1" {
			t.Errorf("with fewer engines: %s", got)
		}
	})
}

// TestEnginesBySources: a worker without metrics of its engines may list where they publish their KV events. One that
// hangs at either question is up all the same.
func TestEnginesBySources(t *testing.T) {
	f := func(what, pages, sources string, hang bool, within time.Duration, want string) {
		t.Helper()
		playWith(t, 1, worker.Config{}, func(f *fleet) {
			f.set("w0", 503)
			time.Sleep(3 * time.Second)
			f.tell(pages, sources)
			if hang {
				f.set("w0/metrics", nil)
				f.set("w0/kv_event_sources", nil)
			}
			began := time.Now()
			f.set("w0", 200)
			for f.ids() == "" {
				time.Sleep(10 * time.Millisecond)
				synctest.Wait()
			}
			if got := f.ids(); got != want || time.Since(began) > within {
				t.Errorf("%s: %s, after %v; want %s", what, got, time.Since(began), want)
			}
		})
	}
	both := `{"0":{"topic":"a"},"1":{"topic":"b"}}`
	f("sources alone", "", both, false, time.Second, "w0#0 w0#1")
	f("metrics and sources", engines(3), both, false, time.Second, "w0#0 w0#1 w0#2")
	f("neither", "", `{"detail":"Not Found"}`, false, time.Second, "w0")
	f("one engine", engines(1), both, false, time.Second, "w0")
	f("hangs", engines(3), both, true, 2*time.Second, "w0")
}

// TestConfiguredEnginesAreNotAskedFor: data_parallel sets how many there are.
func TestConfiguredEnginesAreNotAskedFor(t *testing.T) {
	c := worker.Config{Workers: []worker.Spec{{ID: "x", URL: "http://x", DataParallel: 2}}}
	playWith(t, 0, c, func(f *fleet) {
		f.tell("", `{"0":{},"1":{},"2":{}}`)
		f.set("x/metrics", nil)
		f.set("x", 200)
		time.Sleep(4 * time.Second) // the first check met no answer
		if got := f.ids(); got != "x#0 x#1" || f.count("x/kv_event_sources") != 0 {
			t.Errorf("%s, sources asked %d times", got, f.count("x/kv_event_sources"))
		}
	})
}
