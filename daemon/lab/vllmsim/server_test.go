package vllmsim

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// start starts a worker on a loopback port.
func start(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	return s
}

// client has no keep-alive, so that a goroutine count is not disturbed by idle connections.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}

func post(ctx context.Context, url, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	return client.Do(r)
}

// chatBody is a chat of these contents, user and assistant in turn.
func chatBody(stream bool, max int, contents ...string) string {
	type m struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var list []m
	for i, c := range contents {
		list = append(list, m{[]string{"user", "assistant"}[i%2], c})
	}
	b, _ := json.Marshal(map[string]any{"messages": list, "max_tokens": max, "stream": stream})
	return string(b)
}

type answer struct {
	Choices []struct {
		Text    string
		Message struct{ Content string }
		Finish  string   `json:"finish_reason"`
		IDs     []uint32 `json:"token_ids"`
	}
	Usage struct {
		Prompt  int `json:"prompt_tokens"`
		Reply   int `json:"completion_tokens"`
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

func answerOf(t *testing.T, s *Server, path, body string, header ...string) (a answer) {
	t.Helper()
	w := do(s, "POST", path, body, header...)
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return a
}

// TestNextTurnHitsTheReply: the cache reaches over the first turn's answer, not only over its prompt.
func TestNextTurnHitsTheReply(t *testing.T) {
	s := newTiny(t, Config{Speed: 1000})
	prompt := engine.TextOfTokens(1, 100)
	first := answerOf(t, s, "/v1/chat/completions", chatBody(false, 200, prompt))
	reply := first.Choices[0].Message.Content
	if len(reply) != 200*engine.BytesPerToken {
		t.Fatalf("reply of %d bytes, want %d", len(reply), 200*engine.BytesPerToken)
	}
	second := answerOf(t, s, "/v1/chat/completions", chatBody(false, 5, prompt, reply, "go on"))
	// 1 role + 100 + 1 end + 1 role + 200 of reply, of which the last was never computed: 302 tokens, 18 blocks
	if got := second.Usage.Details.Cached; got != 18*engine.BlockTokens {
		t.Errorf("%d tokens cached, want %d", got, 18*engine.BlockTokens)
	}
}

func TestTextAndTokenPromptsMeet(t *testing.T) {
	s := newTiny(t, Config{Speed: 1000})
	text := engine.TextOfTokens(9, 64)
	a := answerOf(t, s, "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":4,"return_token_ids":true}`, text))
	ids, _ := json.Marshal(engine.AppendTokens(nil, text))
	b := answerOf(t, s, "/v1/completions", fmt.Sprintf(`{"prompt":[%s,[5,6]],"max_tokens":4,"n":2}`, ids))
	if len(b.Choices) != 4 || b.Usage.Prompt != 66 || b.Usage.Reply != 16 || b.Usage.Details.Cached != 48 {
		t.Errorf("got %d choices and usage %+v, want 4, 66 prompt, 16 reply and 48 cached tokens", len(b.Choices), b.Usage)
	}
	if a.Choices[0].Text != b.Choices[0].Text || b.Choices[0].Text == b.Choices[1].Text {
		t.Errorf("replies %q and %q, %q", a.Choices[0].Text, b.Choices[0].Text, b.Choices[1].Text)
	}
	salted := answerOf(t, s, "/v1/completions", fmt.Sprintf(`{"prompt":%q,"cache_salt":"x"}`, text))
	if salted.Usage.Details.Cached != 0 || salted.Usage.Reply != 16 {
		t.Errorf("a salted prompt got usage %+v, want nothing cached and 16 tokens", salted.Usage)
	}
}

func TestReplyEndsByItself(t *testing.T) {
	s := newTiny(t, Config{Speed: 1000, MaxModelLen: 2000})
	a := answerOf(t, s, "/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],"return_token_ids":true}`)
	c := a.Choices[0]
	if c.Finish != "stop" || len(c.IDs) != a.Usage.Reply || c.IDs[len(c.IDs)-1] != engine.TokenEnd ||
		len(c.Message.Content) != 4*(len(c.IDs)-1) {
		t.Errorf("got %+v of %+v, want a stop with <|end|> as last of the counted tokens and not in the text", c, a.Usage)
	}
	a = answerOf(t, s, "/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],"min_tokens":500}`)
	if a.Choices[0].Finish != "stop" || a.Usage.Reply != 501 {
		t.Errorf("with min_tokens 500 it is %d tokens and %q", a.Usage.Reply, a.Choices[0].Finish)
	}
	a = answerOf(t, s, "/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],"ignore_eos":true}`)
	if a.Choices[0].Finish != "length" || a.Usage.Prompt+a.Usage.Reply != 2000 {
		t.Errorf("with ignore_eos it is %+v and %q", a.Usage, a.Choices[0].Finish)
	}
}

// streamed joins the texts of a chat stream and returns its finish_reason; an error if it was cut.
func streamed(body io.Reader) (text, end string, err error) {
	in := bufio.NewScanner(body)
	for in.Scan() {
		data, ok := strings.CutPrefix(in.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			return text, end, nil
		}
		var v struct {
			Choices []struct {
				Delta  struct{ Content string }
				Finish string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			return text, end, err
		}
		for _, c := range v.Choices {
			text += c.Delta.Content
			end = c.Finish
		}
	}
	if in.Err() != nil {
		return text, end, in.Err()
	}
	return text, end, io.ErrUnexpectedEOF
}

func TestStreamIsThePlainReply(t *testing.T) {
	s := start(t, Config{Speed: 100})
	plain := answerOf(t, s, "/v1/chat/completions", chatBody(false, 300, "tell me"))
	r, err := post(t.Context(), s.URL()+"/v1/chat/completions", chatBody(true, 300, "tell me"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, end, err := streamed(r.Body)
	if err != nil || end != "length" || text != plain.Choices[0].Message.Content {
		t.Errorf("stream is %q (%s, %v), plain %q", text, end, err, plain.Choices[0].Message.Content)
	}
}

// TestHammer sends hundreds of requests of all kinds, cuts many of them off, and wants everything back at the end.
func TestHammer(t *testing.T) {
	before := runtime.NumGoroutine()
	s := start(t, Config{Speed: 50, KVTokens: 8192, MaxSeqs: 16})
	var all sync.WaitGroup
	for k := range 12 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(k), 3))
			for range 25 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+rng.IntN(60))*time.Millisecond)
				if rng.IntN(2) == 0 {
					cancel()
					ctx, cancel = context.WithTimeout(context.Background(), 20*time.Second)
				}
				r, err := post(ctx, s.URL()+"/v1/chat/completions",
					chatBody(rng.IntN(2) == 0, 1+rng.IntN(300), engine.TextOfTokens(uint64(rng.IntN(9)), 20+rng.IntN(2000))))
				if err == nil {
					io.Copy(io.Discard, r.Body)
					r.Body.Close()
				}
				cancel()
				if rng.IntN(5) == 0 {
					do(s, "GET", "/metrics", "")
				}
			}
		})
	}
	all.Wait()
	waittest.Until(t, "the worker to be idle", func() bool {
		st := s.Stats()
		return st.Running+st.Waiting+st.BlocksHeld == 0 && s.process.Load().infer.load.Load() == 0
	})
	s.Close()
	waittest.Until(t, "all goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}

func TestDisconnectFreesTheSlot(t *testing.T) {
	s := start(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := post(ctx, s.URL()+"/v1/chat/completions", chatBody(true, 10000, "hi"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	waittest.Until(t, "the request to run", func() bool { return s.Stats().Running == 1 })
	cancel()
	waittest.Until(t, "the slot to be free", func() bool { st := s.Stats(); return st.Running == 0 && st.BlocksHeld == 0 })
	if n := s.Stats().Finished; n != 0 {
		t.Errorf("a request that was cut off counts as finished")
	}
}

func TestFleet(t *testing.T) {
	f, err := StartFleet("127.0.0.1:0", 3, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, u := range f.URLs() {
		r, err := client.Get(u + "/sim/stats")
		if err != nil {
			t.Fatal(err)
		}
		var st Stats
		json.NewDecoder(r.Body).Decode(&st)
		r.Body.Close()
		if want := fmt.Sprintf("sim-%d", i); st.ID != want {
			t.Errorf("worker %d says it is %q, want %q", i, st.ID, want)
		}
	}
	if _, err := StartFleet(f[0].Addr(), 1, Config{}); err == nil ||
		!strings.Contains(err.Error(), "choose a free address") {
		t.Errorf("a taken port gave %v", err)
	}
	for _, bad := range []string{"nonsense", "127.0.0.1:65535x", "127.0.0.1:65530"} {
		if _, err := StartFleet(bad, 10, Config{}); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	if _, err := New(Config{KVTokens: 16}); err == nil {
		t.Error("a cache without a usable block was accepted")
	}
}
