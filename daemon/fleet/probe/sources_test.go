package probe

import (
	"fmt"
	"strings"
	"testing"
)

// sources is the answer of vLLM 0.32.0 to /kv_event_sources, once for each rank.
func sources(ranks ...string) string {
	var all []string
	for _, r := range ranks {
		all = append(all, fmt.Sprintf(`%q:{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"ipc://kv-events.sock",`+
			`"replay_endpoint":"tcp://127.0.0.1:5561","buffer_steps":10000,"hwm":100000,"max_queue_size":100000,`+
			`"topic":"kv@w1@tiny"}`, r))
	}
	return "{" + strings.Join(all, ",") + "}"
}

func TestCountSources(t *testing.T) {
	f := func(text string, want int) {
		t.Helper()
		if got := countSources([]byte(text)); got != want {
			t.Errorf("%.80q: %d; want %d", text, got, want)
		}
	}
	f(sources("0"), 1)
	f(sources("0", "1", "2", "3"), 4)
	f(sources("4", "5"), 2) // the numbers are those of the whole deployment
	f("{}", 0)              // it publishes none
	f("", 0)
	f("null", 0)
	f("[]", 0)
	f(`{"detail":"Not Found"}`, 0)
	f(`{"-1":{}}`, 0)
	var many []string
	for i := range maxEngines + 1 {
		many = append(many, fmt.Sprint(i))
	}
	f(sources(many...), 0)
}

func FuzzCountSources(f *testing.F) {
	f.Add(sources("0", "1"))
	f.Add(`{"detail":"Not Found"}`)
	f.Fuzz(func(t *testing.T, text string) {
		if n := countSources([]byte(text)); n < 0 || n > maxEngines {
			t.Fatalf("%d engines", n)
		}
	})
}
