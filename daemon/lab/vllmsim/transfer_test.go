package vllmsim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// transferPrompt has 1,001 tokens: 63 blocks, of which 62 are full.
var transferPrompt = "[" + strings.Repeat("1000,", 1000) + "1000]"

const askPrefill = `{"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,` +
	`"remote_block_ids":null,"remote_host":null,"remote_port":null}`

// transferAnswer is what a completion says of a pair.
type transferAnswer struct {
	Params *transferParams `json:"kv_transfer_params"`
	Usage  struct {
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

// transferLeg sends one leg and returns its status and body.
func transferLeg(t *testing.T, s *Server, maxTokens int, params, more string) (int, []byte) {
	t.Helper()
	body := `{"prompt":` + transferPrompt + `,"max_tokens":` + strconv.Itoa(maxTokens) + more +
		`,"kv_transfer_params":` + params + `}`
	resp, err := post(context.Background(), s.URL()+"/v1/completions", body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, raw
}

// prefilled runs the first leg and returns the parameters of the second.
func prefilled(t *testing.T, s *Server) transferParams {
	t.Helper()
	status, raw := transferLeg(t, s, 1, askPrefill, "")
	var a transferAnswer
	if err := json.Unmarshal(raw, &a); err != nil || status != 200 || a.Params == nil {
		t.Fatalf("got %d and %v: %s", status, err, raw)
	}
	if n := s.Stats().BlocksPinned; len(a.Params.Blocks) != 1 || len(a.Params.Blocks[0]) != 63 || n != 63 {
		t.Fatalf("the answer names %d blocks and %d are pinned, want 63", len(a.Params.Blocks), n)
	}
	return *a.Params
}

// transferPair starts a prefill worker and a decode worker.
func transferPair(t *testing.T, pinLife time.Duration) (prefill, decode *Server) {
	cfg := Config{Connector: ConnectorNIXL, Role: RolePrefill, PinLife: pinLife, Speed: 20}
	prefill = start(t, cfg)
	cfg.Role = RoleDecode
	return prefill, start(t, cfg)
}

// untilUnpinned waits until a worker keeps nothing.
func untilUnpinned(t *testing.T, s *Server) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); s.Stats().BlocksPinned > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d blocks are still pinned", s.Stats().BlocksPinned)
		}
	}
}

// A prefill names its KV as vLLM's NixlConnector does, in the same order.
func TestTransferParamsAsRecorded(t *testing.T) {
	text, err := os.ReadFile("../../request/pair/testdata/nixl-completion-prefill.json")
	if err != nil {
		t.Fatal(err)
	}
	var real struct {
		Params json.RawMessage `json:"kv_transfer_params"`
	}
	var p transferParams
	if json.Unmarshal(text, &real) != nil || json.Unmarshal(real.Params, &p) != nil {
		t.Fatalf("%s", text)
	}
	if again, _ := json.Marshal(p); string(again) != string(real.Params) {
		t.Errorf("a simulated worker would name\n%s\n%s", again, real.Params)
	}
	got := prefilled(t, start(t, Config{Connector: ConnectorNIXL, Speed: 20}))
	if got.Tokens != 1001 || got.Cached != 0 || got.Mode != p.Mode || got.DCPSize != 1 || got.PPSize != 1 || got.Expiry != nil {
		t.Errorf("%+v", got)
	}
}

// Parameters that come twice are the last ones: a router writes its own behind those of a client.
func TestLastTransferParams(t *testing.T) {
	s := start(t, Config{Connector: ConnectorNIXL, Role: RolePrefill, Speed: 20})
	status, raw := transferLeg(t, s, 1, askPrefill, `,"kv_transfer_params":{"remote_engine_id":"x","remote_port":9}`)
	if status != 200 || s.Stats().BlocksPinned == 0 {
		t.Errorf("%d %s", status, raw)
	}
}

func TestPairPullsAndFrees(t *testing.T) {
	for _, stream := range []string{"", `,"stream":true`} {
		p, d := transferPair(t, 0)
		params, _ := json.Marshal(prefilled(t, p))
		status, raw := transferLeg(t, d, 32, string(params), stream)
		if status != 200 {
			t.Fatalf("the decode worker answers %d: %s", status, raw)
		}
		untilUnpinned(t, p)
		var a transferAnswer
		if stream == "" && (json.Unmarshal(raw, &a) != nil || a.Usage.Details.Cached != 992 || a.Params != nil) {
			t.Errorf("want 992 cached tokens and no parameters: %s", raw)
		}
		if st := d.Stats(); st.RemoteTokens != 992 || st.ComputedTokens != 9 {
			t.Errorf("the decode worker has pulled %d tokens and computed %d, want 992 and 9",
				st.RemoteTokens, st.ComputedTokens)
		}
		if n := p.Stats().BlocksStranded; n != 0 {
			t.Errorf("%d blocks are stranded", n)
		}
	}
}

// Blocks are kept for a lease, and for two thirds of one from each question after them; as older releases keep them, for
// a fixed time.
func TestLeaseOfBlocks(t *testing.T) {
	f := func(cfg Config, ask time.Duration, kept, gone time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			cfg.Connector, cfg.Speed = ConnectorNIXL, 20
			s, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			w := do(s, "POST", "/v1/completions", `{"prompt":`+transferPrompt+`,"max_tokens":1,"kv_transfer_params":`+askPrefill+`}`)
			var a transferAnswer
			if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || a.Params == nil {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			began := time.Now()
			if ask > 0 {
				time.Sleep(ask)
				params, _ := json.Marshal(a.Params)
				if w := do(s, "POST", heldPath, string(params)); w.Code != 200 {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			}
			time.Sleep(time.Until(began.Add(kept)))
			if n := s.Stats().BlocksPinned; n != 63 {
				t.Errorf("%+v: %d blocks are kept after %v; want 63", cfg, n, kept)
			}
			time.Sleep(time.Until(began.Add(gone)))
			if st := s.Stats(); st.BlocksPinned != 0 || st.PinsExpired != 1 || st.BlocksStranded != 63 {
				t.Errorf("%+v: after %v %+v", cfg, gone, st)
			}
		})
	}
	f(Config{}, 0, 29*time.Second, 31*time.Second)
	f(Config{}, 5*time.Second, 29*time.Second, 31*time.Second) // no sooner than without
	f(Config{}, 25*time.Second, 44*time.Second, 46*time.Second)
	f(Config{PinFixed: true}, 25*time.Second, 479*time.Second, 481*time.Second)
	f(Config{PinFixed: true}, 470*time.Second, 479*time.Second, 481*time.Second)
	f(Config{PinLife: 3 * time.Second}, 2*time.Second, 3900*time.Millisecond, 4100*time.Millisecond)
}

// A decode worker asks after the blocks for as long as a request waits there, and says when it is gone.
func TestLeaseIsRenewed(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		var asked, pulled atomic.Int32
		prefill := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			map[string]*atomic.Int32{heldPath: &asked, pulledPath: &pulled}[r.URL.Path].Add(1)
		}))
		defer prefill.Close()
		d := start(t, Config{Connector: ConnectorNIXL, PinLife: 60 * time.Millisecond, PinFixed: fixed, MaxSeqs: 1})
		var blocks []string
		for i := range 63 {
			blocks = append(blocks, strconv.Itoa(i))
		}
		host, port, _ := strings.Cut(strings.TrimPrefix(prefill.URL, "http://"), ":")
		params := fmt.Sprintf(`{"do_remote_prefill":true,"do_remote_decode":false,"remote_engine_id":"e","remote_request_id":"r",`+
			`"remote_host":%q,"remote_port":%s,"remote_block_ids":[[%s]]}`, host, port, strings.Join(blocks, ","))
		ctx, cancel := context.WithCancel(context.Background())
		var all sync.WaitGroup
		send := func(body string) {
			all.Go(func() {
				if resp, err := post(ctx, d.URL()+"/v1/completions", body); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			})
		}
		send(`{"prompt":"x","max_tokens":100000,"ignore_eos":true,"stream":true}`)
		waittest.Until(t, "the worker is full", func() bool { return d.Stats().Running == 1 })
		send(`{"prompt":` + transferPrompt + `,"max_tokens":2,"kv_transfer_params":` + params + `}`)
		waittest.Until(t, "the second waits", func() bool { return d.Stats().Waiting == 1 })
		if fixed {
			time.Sleep(50 * time.Millisecond)
			if n := asked.Load(); n != 1 {
				t.Errorf("asked %d times; want once, when it came", n)
			}
		} else {
			waittest.Until(t, "the lease is renewed", func() bool { return asked.Load() > 5 })
		}
		cancel()
		all.Wait()
		waittest.Until(t, "the blocks are let go", func() bool { return pulled.Load() == 1 })
	}
}

func TestUnpulledBlocksAreStranded(t *testing.T) {
	p := start(t, Config{Connector: ConnectorNIXL, PinLife: time.Second, Speed: 20})
	prefilled(t, p)
	untilUnpinned(t, p)
	for end := time.Now().Add(30 * time.Second); p.Stats().PinsExpired != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d prompts have expired, want 1", p.Stats().PinsExpired)
		}
	}
	text := do(p, "GET", "/metrics", "").Body.Bytes()
	for _, line := range []string{
		`vllm:nixl_num_kv_expired_reqs_total{engine="0",model_name="sim"} 1.0`,
		`sim:kv_blocks_stranded_total{engine="0",model_name="sim"} 63.0`,
		`sim:kv_blocks_pinned{engine="0",model_name="sim"} 0.0`,
	} {
		if !bytes.Contains(text, []byte(line)) {
			t.Errorf("/metrics lacks %s", line)
		}
	}
}

// A decode worker whose client leaves still has the prefill worker free the blocks.
func TestLeavingClientFreesThePrefill(t *testing.T) {
	p, d := transferPair(t, 0)
	params, _ := json.Marshal(prefilled(t, p))
	d.process.Load().infer.ranks.freeze(true) // no token comes
	ctx, leave := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		resp, err := post(ctx, d.URL()+"/v1/completions",
			`{"prompt":`+transferPrompt+`,"max_tokens":32,"kv_transfer_params":`+string(params)+`}`)
		if err == nil {
			resp.Body.Close()
		}
	}()
	for d.Stats().Waiting+d.Stats().Loading == 0 {
		time.Sleep(time.Millisecond)
	}
	leave()
	<-done
	untilUnpinned(t, p)
	if n := p.Stats().BlocksStranded; n != 0 {
		t.Errorf("%d blocks are stranded", n)
	}
}

func TestWrongTransferIsRefused(t *testing.T) {
	p, d := transferPair(t, 0)
	good := prefilled(t, p)
	change := func(f func(*transferParams)) string {
		c := good
		f(&c)
		raw, _ := json.Marshal(c)
		return string(raw)
	}
	for _, c := range []struct {
		to           *Server
		max          int
		params, more string
		says         string
	}{
		{p, 2, askPrefill, "", "max_tokens=2"},
		{p, 1, askPrefill, `,"stream":true`, "stream"},
		{p, 1, askPrefill, `,"n":2`, "2 prompts and choices"},
		{d, 1, askPrefill, "", "only decodes"},
		{p, 1, change(func(*transferParams) {}), "", "only prefills"},
		{d, 9, change(func(c *transferParams) { c.RemoteDecode = true }), "", "both true"},
		{d, 9, change(func(c *transferParams) { c.EngineID = "" }), "", "lacks remote_engine_id"},
		{d, 9, change(func(c *transferParams) { c.Port = 0 }), "", "remote_port"},
		{d, 9, change(func(c *transferParams) { c.Blocks = [][]int{c.Blocks[0][1:]} }), "", "63 blocks"},
		{p, 1, `{"do_remote_decode":true,"remote_host":"10.0.0.1"}`, "", "leave its fields null"},
	} {
		status, raw := transferLeg(t, c.to, c.max, c.params, c.more)
		if status != 400 || !strings.Contains(string(raw), c.says) {
			t.Errorf("%s with max_tokens %d%s: got %d %s, want 400 and %q", c.params, c.max, c.more, status, raw, c.says)
		}
	}
	if st := p.Stats(); st.BlocksPinned != 63 {
		t.Errorf("%d blocks are pinned after the refusals, want the first prompt's 63", st.BlocksPinned)
	}
}

func TestConnectorConfig(t *testing.T) {
	for _, c := range []Config{
		{Role: RolePrefill}, {Connector: "carrier-pigeon"}, {Connector: ConnectorNIXL, Role: "cook"},
	} {
		if s, err := New(c); err == nil {
			s.Close()
			t.Errorf("role %q with connector %q was taken", c.Role, c.Connector)
		}
	}
}

// TestLostPrefill: a prefill worker that restarts on its port has lost the blocks. The decode worker fails the request as
// vLLM does by default, within a stream too, or computes the prompt.
func TestLostPrefill(t *testing.T) {
	f := func(policy, stream string, status int, says string, computed int64) {
		t.Helper()
		p := start(t, Config{Connector: ConnectorNIXL, Role: RolePrefill, Speed: 20})
		d := start(t, Config{Connector: ConnectorNIXL, Role: RoleDecode, Speed: 20, LoadFailure: policy})
		params, _ := json.Marshal(prefilled(t, p))
		if err := p.Restart(); err != nil {
			t.Fatal(err)
		}
		got, raw := transferLeg(t, d, 8, string(params), stream)
		if got != status || !strings.Contains(string(raw), says) {
			t.Errorf("%s%s: %d %s; want %d and %s", policy, stream, got, raw, status, says)
		}
		if n := d.Stats().ComputedTokens; n != computed {
			t.Errorf("%s%s: %d tokens computed; want %d", policy, stream, n, computed)
		}
	}
	f("", "", 500, "InternalServerError", 0)
	f(LoadFail, `,"stream":true`, 200, "InternalServerError", 0)
	f(LoadRecompute, "", 200, `"finish_reason":"length"`, 1001)
	if _, err := New(Config{Connector: ConnectorNIXL, LoadFailure: "wait"}); err == nil {
		t.Error("the policy wait was taken")
	}
}

// TestFleetTellsWhatIsStranded: of a fleet that ends, with blocks that wait for nobody.
func TestFleetTellsWhatIsStranded(t *testing.T) {
	fleet, err := StartFleet("127.0.0.1:0", 1, Config{Connector: ConnectorNIXL, Speed: 20})
	if err != nil {
		t.Fatal(err)
	}
	defer fleet.Close()
	if err := fleet.Stranded(); err != nil {
		t.Error(err)
	}
	prefilled(t, fleet[0])
	if err := fleet.Stranded(); err == nil || !strings.Contains(err.Error(), "63 still wait") {
		t.Errorf("%v; want 63 blocks that wait", err)
	}
}
