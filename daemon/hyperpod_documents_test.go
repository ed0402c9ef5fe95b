package daemon

import (
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/logtest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/events"
)

// TestHyperPodsFields: docs/kv-cache.md says of each field of an InferenceEndpointConfig what does the same here.
func TestHyperPodsFields(t *testing.T) {
	fields, err := os.ReadFile("../testdata/hyperpod/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/kv-cache.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for field := range strings.Lines(string(fields)) {
		n++
		field = strings.TrimSpace(field)
		if !regexp.MustCompile("(?m)^\\|[^|]*`" + regexp.QuoteMeta(field) + "[`:]").Match(page) {
			t.Errorf("%s has no row", field)
		}
	}
	if n < 50 {
		t.Errorf("%d fields", n)
	}
}

// TestHyperPodsTroubleshooting: what its page has operators look for in logs and metrics is there, under its names.
func TestHyperPodsTroubleshooting(t *testing.T) {
	t.Parallel()
	config := published(events.Map)
	config.CPUTokens, config.KVTokens = 1<<20, 2048
	sim := sims(t, 2, config)
	var log logtest.Log
	toml := withServer(poolKeys(settings("kvaware", sim.URLs()...), "kv_events = \"auto\"\n"), `log_level = "debug"`)
	r := launch(t, toml, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	r.waitUp(2)
	r.awaitLive(2)
	patiently(t, "a request that is found by what workers report", func() bool {
		r.talk(6, "tide")
		return strings.Contains(log.String(), "found by kvaware router")
	})
	if !regexp.MustCompile(`level=INFO msg="Routing request to \S+ found by kvaware router"`).MatchString(log.String()) {
		t.Error("the log has no INFO line of a match")
	}
	for _, want := range []string{`level=DEBUG msg="Matched instance url None"`, `level=DEBUG msg="Matched instance url w`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %s", want)
		}
	}
	if n := strings.Count(log.String(), `level=INFO msg="Routing request`); n > 20 {
		t.Errorf("%d lines of matches", n)
	}
	patiently(t, "tokens from LMCache", func() bool {
		for _, name := range []string{"ebb", "flow", "neap", "spring", "slack"} { // two have room in each KV cache
			s := r.do("POST", "/v1/chat/completions", chatBody(false, []chatMessage{{"user", name + strings.Repeat(" rising water", 300)}}))
			if s.status != 200 {
				t.Fatalf("%d %s", s.status, s.body)
			}
		}
		return r.metric("lmcache:num_lookup_hits_total") > 0
	})
	for _, name := range []string{"num_vllm_hit_tokens_total", "num_lookup_tokens_total", "request_cache_hit_rate_sum",
		"request_cache_hit_rate_count"} {
		if r.metric("lmcache:"+name) <= 0 {
			t.Errorf("there is no lmcache:%s", name)
		}
	}
}
