package daemon

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/account"
)

// gatedPair is a router before a prefiller whose prompts wait for a gate, and a decoder that answers at once.
type gatedPair struct {
	*running
	gate            chan struct{} // a prompt takes one
	done            chan struct{} // closed at the end
	now, computed   atomic.Int64  // prompts at the prefiller, and those that it has computed
	decoded, aborts atomic.Int64
}

func newGatedPair(t *testing.T, connector, keys, pool string) *gatedPair {
	t.Helper()
	p := &gatedPair{gate: make(chan struct{}, 1000), done: make(chan struct{})}
	prefiller := fakeWorker(t, func(rw http.ResponseWriter, req *http.Request) {
		_, _ = io.ReadAll(req.Body)
		p.now.Add(1)
		defer p.now.Add(-1)
		select {
		case <-p.gate:
		case <-req.Context().Done():
			p.aborts.Add(1)
			return
		}
		p.computed.Add(1)
		rw.Header().Set("Content-Type", "application/json")
		io.WriteString(rw, `{"id":"x","choices":[{"index":0,"text":"a","finish_reason":"length"}],"kv_transfer_params":{"remote_block_ids":[1],"remote_engine_id":"e"}}`)
	})
	decoder := fakeWorker(t, func(rw http.ResponseWriter, req *http.Request) {
		_, _ = io.ReadAll(req.Body)
		if connector == "sglang" { // it waits for its prefiller
			select {
			case <-p.done:
			case <-req.Context().Done():
				return
			}
		}
		p.decoded.Add(1)
		rw.Header().Set("Content-Type", "application/json")
		io.WriteString(rw, `{"id":"x","choices":[{"index":0,"text":"a","finish_reason":"stop"}]}`)
	})
	toml := fmt.Sprintf(`%s[server]
listen = "127.0.0.1:0"
admin = "127.0.0.1:0"
[[pools]]
%s
[pools.disaggregation]
connector = %q
threshold = 100
rule = "threshold"
[[pools.workers]]
url = %q
id = "p"
role = "prefill"
[[pools.workers]]
url = %q
id = "d"
role = "decode"
`, keys, pool, connector, prefiller.URL, decoder.URL)
	p.running = start(t, toml, 2)
	t.Cleanup(func() {
		close(p.gate)
		close(p.done)
		eventually(t, "nothing is held", func() bool { return p.front.Stats().Held == account.Sums{} })
	})
	return p
}

func longPrompt(i int) string {
	return fmt.Sprintf(`{"model":"sim","prompt":"%d %s"}`, i, strings.Repeat("some word ", 400))
}

// leaveAfter sends a request as a key, and leaves once the condition holds.
func (p *gatedPair) leaveAfter(t *testing.T, i int, about string, cond func() bool) {
	t.Helper()
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+p.Addr()+"/v1/completions", strings.NewReader(longPrompt(i)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "team-secret")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if resp, err := testClient.Do(req); err == nil {
			resp.Body.Close()
		}
	}()
	eventually(t, about, cond)
	leave()
	<-ended
	eventually(t, "the client has left", func() bool { return p.front.Stats().InFlight == 0 })
}

// TestPrefillsCountForTheirKey: a client that leaves while its prompt is computed keeps its key's place until the
// prefiller has ended. With a connector whose prefillers may be interrupted the prompt is ended at once.
func TestPrefillsCountForTheirKey(t *testing.T) {
	t.Parallel()
	for _, connector := range []string{"nixl", "lmcache"} {
		countsForItsKey(t, connector)
	}
	p := newGatedPair(t, "sglang", limited(t, "team", "max_in_flight = 2"), "")
	for i := range 4 {
		p.leaveAfter(t, i, "the prompt is at the prefiller", func() bool { return p.now.Load() == 1 })
		eventually(t, "it is ended there", func() bool { return p.aborts.Load() == int64(i+1) })
	}
	if n := p.computed.Load(); n != 0 {
		t.Errorf("%d prompts were computed of clients that had left", n)
	}
}

func countsForItsKey(t *testing.T, connector string) {
	t.Helper()
	p := newGatedPair(t, connector, limited(t, "team", "max_in_flight = 2"), "")
	for i := range 2 {
		p.leaveAfter(t, i, "the prompt is at the prefiller", func() bool { return p.now.Load() == int64(i+1) })
	}
	for i := range 3 {
		s := p.as("team", "POST", "/v1/completions", longPrompt(10+i))
		if s.status != 429 || !strings.Contains(s.body, "max_in_flight") {
			t.Errorf("a request beside two prompts of clients that left: %d %s", s.status, s.body)
		}
	}
	if n := p.now.Load(); n != 2 {
		t.Errorf("%d prompts at the prefiller of a key for two requests", n)
	}
	p.gate <- struct{}{}
	eventually(t, "a place is free", func() bool { return p.front.Stats().Held.Open == 1 })
	if connector == "nixl" {
		eventually(t, "what was computed is freed", func() bool { return p.decoded.Load() == 1 })
	}
}

// TestPromptsThatNobodyWaitsForAreNotSent: a prompt that waits for a prefiller in the router's queue is not sent once its
// client has left.
func TestPromptsThatNobodyWaitsForAreNotSent(t *testing.T) {
	t.Parallel()
	for _, connector := range []string{"nixl", "lmcache"} {
		p := newGatedPair(t, connector, limited(t, "team", ""), "max_in_flight = 1")
		first := make(chan seen, 1)
		go func() { first <- p.as("team", "POST", "/v1/completions", longPrompt(0)) }()
		eventually(t, "the prefiller is busy", func() bool { return p.now.Load() == 1 })
		ctx, leave := context.WithCancel(context.Background())
		for i := range 5 {
			go func() {
				req, _ := http.NewRequestWithContext(ctx, "POST", "http://"+p.Addr()+"/v1/completions", strings.NewReader(longPrompt(1+i)))
				req.Header.Set("X-Api-Key", "team-secret")
				if resp, err := testClient.Do(req); err == nil {
					resp.Body.Close()
				}
			}()
		}
		eventually(t, "five wait", func() bool { return p.front.Stats().Held.Held[account.Queue] == 5 })
		leave()
		eventually(t, "they are gone", func() bool { return p.front.Stats().Held.Open == 1 })
		p.gate <- struct{}{}
		if s := <-first; s.status != 200 {
			t.Errorf("%s: %d %s", connector, s.status, s.body)
		}
		if n := p.computed.Load(); n != 1 {
			t.Errorf("%s: %d prompts were computed; want the first one's", connector, n)
		}
	}
}

// TestAPlaceIsTakenByWhoIsThere: while prompts are computed elsewhere, the decoder's places are others'. Once they are
// computed they come first.
func TestAPlaceIsTakenByWhoIsThere(t *testing.T) {
	t.Parallel()
	for _, bound := range []string{"max_in_flight = 2", "max_kv_use = 0.9"} {
		p := newGatedPair(t, "nixl", limited(t, "team", ""), bound)
		long := make(chan seen, 2)
		for i := range 2 {
			go func() { long <- p.as("team", "POST", "/v1/completions", longPrompt(i)) }()
		}
		eventually(t, "both prompts are at the prefiller", func() bool { return p.now.Load() == 2 })
		began := time.Now()
		if s := p.as("team", "POST", "/v1/completions", `{"model":"sim","prompt":"short"}`); s.status != 200 {
			t.Errorf("%s: a short request: %d %s", bound, s.status, s.body)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: a short request waited %v", bound, took)
		}
		p.gate <- struct{}{}
		p.gate <- struct{}{}
		for range 2 {
			if s := <-long; s.status != 200 {
				t.Errorf("%s: a long request: %d %s", bound, s.status, s.body)
			}
		}
		if n := p.computed.Load(); n != 2 {
			t.Errorf("%s: %d prompts were computed", bound, n)
		}
	}
}
