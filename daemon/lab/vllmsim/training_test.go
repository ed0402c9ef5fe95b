package vllmsim

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// train sends one of a trainer's calls, and returns the answer.
func train(t *testing.T, s *Server, method, path, body string) string {
	t.Helper()
	w := do(s, method, path, body)
	if w.Code != 200 {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return strings.TrimSpace(w.Body.String())
}

// syncTo plays an update of the weights to a version.
func syncTo(t *testing.T, s *Server, version string) {
	t.Helper()
	train(t, s, "POST", "/start_weight_update", "")
	train(t, s, "POST", "/update_weights", `{"update_info":{"names":[]}}`)
	train(t, s, "POST", "/finish_weight_update", `{"weight_version":"`+version+`"}`)
}

// TestModesOfPauses: what each mode does to an open answer, to one that comes meanwhile, and to the cache.
func TestModesOfPauses(t *testing.T) {
	long := `{"max_tokens":400,"ignore_eos":true,"prompt":"` + engine.TextOfTokens(1, 1000) + `"}`
	f := func(query, end string, cached int) {
		t.Helper()
		s := start(t, Config{Speed: 20, DevMode: true})
		type result struct {
			a   answer
			err error
		}
		ask := func() chan result {
			done := make(chan result, 1)
			go func() {
				var r result
				ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
				defer stop()
				resp, err := post(ctx, s.URL()+"/v1/completions", long)
				if r.err = err; err == nil {
					defer resp.Body.Close()
					b, _ := io.ReadAll(resp.Body)
					r.err = json.Unmarshal(b, &r.a)
				}
				done <- r
			}()
			return done
		}
		open := ask()
		for s.Stats().Generated == 0 {
			time.Sleep(time.Millisecond)
		}
		if got := train(t, s, "POST", "/pause"+query, ""); got != `{"status":"paused"}` {
			t.Errorf("%s: %s", query, got)
		}
		if got := train(t, s, "GET", "/is_paused", ""); got != `{"is_paused":true}` {
			t.Errorf("%s: %s", query, got)
		}
		held := ask()
		for s.Stats().Waiting == 0 {
			time.Sleep(time.Millisecond)
		}
		before := s.Stats().Generated
		time.Sleep(20 * time.Millisecond)
		if got := s.Stats().Generated; got != before {
			t.Errorf("%s: %d tokens in a pause", query, got-before)
		}
		train(t, s, "POST", "/resume", "")
		first, second := <-open, <-held
		if first.err != nil || len(first.a.Choices) == 0 || first.a.Choices[0].Finish != end {
			t.Errorf("%s: the open answer: %+v", query, first)
		}
		if second.err != nil || second.a.Usage.Details.Cached != cached || second.a.Usage.Reply != 400 {
			t.Errorf("%s: the held one: %+v", query, second)
		}
	}
	f("", "abort", 0)
	f("?mode=abort&clear_cache=false", "abort", 992)
	f("?mode=wait", "length", 0)
	f("?wait_for_inflight_requests=true&clear_cache=false", "length", 992)
	f("?mode=keep&clear_cache=false", "length", 992)
	f("?mode=keep", "length", 992) // of the open answer's prompt, which is computed again
	s := newTiny(t, Config{Speed: 1000, DevMode: true})
	body := `{"max_tokens":2,"prompt":"` + engine.TextOfTokens(1, 1000) + `"}`
	answerOf(t, s, "/v1/completions", body)
	for query, cached := range map[string]int{"?mode=keep&clear_cache=false": 992, "?mode=keep": 0} {
		train(t, s, "POST", "/pause"+query, "")
		train(t, s, "POST", "/resume", "")
		if got := answerOf(t, s, "/v1/completions", body).Usage.Details.Cached; got != cached {
			t.Errorf("%s, nothing runs: %d tokens cached; want %d", query, got, cached)
		}
	}
	if w := do(s, "POST", "/pause?mode=freeze", ""); w.Code != 400 || s.Stats().Waiting > 0 {
		t.Errorf("an unknown mode: %d", w.Code)
	}
	if w := do(newTiny(t, Config{}), "POST", "/pause", ""); w.Code != 404 {
		t.Errorf("without the development mode: %d", w.Code)
	}
}

// TestBlocksRememberTheirWeights: a prompt that was cached before an update, and was not reset, is told from one that
// was. The answer says which weights have computed it.
func TestBlocksRememberTheirWeights(t *testing.T) {
	s := newTiny(t, Config{Speed: 1000, DevMode: true})
	ask := func(want string) {
		t.Helper()
		w := do(s, "POST", "/v1/completions", `{"max_tokens":2,"prompt":"`+engine.TextOfTokens(1, 1000)+`"}`)
		if !strings.Contains(w.Body.String(), `"system_fingerprint":"`+systemFingerprint+want+`"`) {
			t.Errorf("want %q: %s", want, w.Body)
		}
	}
	info := func(want string) {
		t.Helper()
		if got := train(t, s, "GET", "/weight_info", ""); got != `{"weight_version":`+want+`}` {
			t.Errorf("%s; want %s", got, want)
		}
	}
	info("null")
	ask("")
	ask("")
	syncTo(t, s, "12")
	info(`"12"`)
	ask("-weights-12-stale-992")
	train(t, s, "POST", "/reset_prefix_cache", "")
	ask("-weights-12")
	ask("-weights-12")
	train(t, s, "POST", "/pause?mode=wait", "")
	syncTo(t, s, `1\"3`)
	train(t, s, "POST", "/resume", "")
	ask(`-weights-1\"3`)
	train(t, s, "POST", "/update_weight_version", `{"new_version":"14"}`)
	ask("-weights-14")
	train(t, s, "POST", "/collective_rpc", `{"method":"reload_weights"}`)
	ask("-weights-14-stale-992")
	if st := s.Stats(); st.StaleRequests != 2 || st.StaleTokens != 2*992 || st.WeightVersion != "14" {
		t.Errorf("%+v", st)
	}
	if page := do(s, "GET", "/metrics", "").Body.String(); !strings.Contains(page,
		"\nsim:stale_requests_total{engine=\"0\",model_name=\"tiny\"} 2.0\n") {
		t.Error("no count of stale requests on /metrics")
	}
	for path, body := range map[string]string{"/update_weights": `{}`, "/init_weight_transfer_engine": `{"init_info":null}`,
		"/collective_rpc": `{}`, "/update_weight_version": `{}`, "/finish_weight_update": `{`} {
		if w := do(s, "POST", path, body); w.Code != 400 {
			t.Errorf("%s %s: %d %s", path, body, w.Code, w.Body)
		}
	}
}

// TestWeightsOfTiers: what a tier has kept over an update is of the weights that have computed it, and stays so when it
// has been loaded.
func TestWeightsOfTiers(t *testing.T) {
	s := newTiny(t, Config{Speed: 1000, DevMode: true, CPUTokens: 100_000})
	ask := func() {
		t.Helper()
		answerOf(t, s, "/v1/completions", `{"max_tokens":2,"prompt":"`+engine.TextOfTokens(1, 1000)+`"}`)
	}
	ask()
	train(t, s, "POST", "/pause", "")
	syncTo(t, s, "1")
	train(t, s, "POST", "/resume", "")
	for want := range int64(2) {
		ask()
		if st := s.Stats(); st.StaleTokens != (want+1)*992 {
			t.Errorf("%d stale tokens, %d from the tier", st.StaleTokens, st.CPUTokens)
		}
	}
	train(t, s, "POST", "/reset_prefix_cache?reset_external=true", "")
	ask()
	if st := s.Stats(); st.StaleTokens != 2*992 {
		t.Errorf("%d stale tokens", st.StaleTokens)
	}
}

// TestAnAnswerOfTwoWeights: one that mode keep has held over an update says so.
func TestAnAnswerOfTwoWeights(t *testing.T) {
	s := start(t, Config{Speed: 20, DevMode: true})
	syncTo(t, s, "1")
	r, err := post(t.Context(), s.URL()+"/v1/completions",
		`{"max_tokens":400,"stream":true,"stream_options":{"include_usage":true},"prompt":"x"}`)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	for s.Stats().Generated == 0 {
		time.Sleep(time.Millisecond)
	}
	train(t, s, "POST", "/pause?mode=keep", "")
	began := time.Now()
	train(t, s, "POST", "/update_weights", `{"update_info":{"seconds":2}}`)
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("2 s of update took %v at 20 times real time", took)
	}
	train(t, s, "POST", "/finish_weight_update", `{"weight_version":"2"}`)
	train(t, s, "POST", "/resume", "")
	text, _ := io.ReadAll(r.Body)
	if want := `"system_fingerprint":"` + systemFingerprint + `-weights-1-2"`; !strings.Contains(string(text), want) {
		t.Errorf("no %s in %s", want, text[max(0, len(text)-600):])
	}
}

// TestSleep: its levels, and tags that wake a part.
func TestSleep(t *testing.T) {
	s := newTiny(t, Config{Speed: 1000, DevMode: true})
	body := `{"max_tokens":2,"prompt":"` + engine.TextOfTokens(1, 1000) + `"}`
	answerOf(t, s, "/v1/completions", body)
	state := func(name string) bool {
		page := do(s, "GET", "/metrics", "").Body.String()
		return strings.Contains(page, fmt.Sprintf("vllm:engine_sleep_state{engine=\"0\",sleep_state=%q,model_name=\"tiny\"} 1.0\n", name))
	}
	is := func(what, name string, paused bool) {
		t.Helper()
		if got := train(t, s, "GET", "/is_sleeping", ""); !state(name) || got != fmt.Sprintf(`{"is_sleeping":%v}`, paused) {
			t.Errorf("%s: not %s, or %s", what, name, got)
		}
	}
	is("at first", "awake", false)
	train(t, s, "POST", "/sleep?level=0", "")
	for _, name := range []string{"awake", "weights_offloaded", "discard_all"} { // vllm/v1/metrics/loggers.py, 0.32.0
		if state(name) {
			t.Errorf("level 0: the page says %s", name)
		}
	}
	train(t, s, "POST", "/wake_up?tags=scheduling", "")
	if got := answerOf(t, s, "/v1/completions", body).Usage.Details.Cached; got != 992 {
		t.Errorf("level 0: %d tokens cached", got)
	}
	train(t, s, "POST", "/sleep", "")
	is("level 1", "weights_offloaded", true)
	train(t, s, "POST", "/wake_up?tags=weights", "")
	is("a part is awake", "weights_offloaded", true)
	train(t, s, "POST", "/wake_up?tags=kv_cache", "")
	is("all is awake", "awake", false)
	if got := answerOf(t, s, "/v1/completions", body).Usage.Details.Cached; got != 0 {
		t.Errorf("level 1: %d tokens cached", got)
	}
	train(t, s, "POST", "/sleep?level=2&mode=keep", "")
	is("level 2", "discard_all", true)
	train(t, s, "POST", "/wake_up", "")
	is("awake again", "awake", false)
	if w := do(s, "POST", "/sleep?level=7", ""); w.Code != 400 {
		t.Errorf("level 7: %d", w.Code)
	}
}
