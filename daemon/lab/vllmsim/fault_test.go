package vllmsim

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

func setFault(t *testing.T, s *Server, body string) {
	t.Helper()
	r, err := post(t.Context(), s.URL()+"/sim/fault", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != 200 {
		t.Fatalf("fault %s: %s", body, r.Status)
	}
}

func health(s *Server) int {
	r, err := client.Get(s.URL() + "/health")
	if err != nil {
		return 0
	}
	r.Body.Close()
	return r.StatusCode
}

func TestFault503(t *testing.T) {
	s := start(t, Config{Speed: 100})
	setFault(t, s, `{"mode":"503","seconds":0.05}`)
	w := do(s, "POST", "/v1/chat/completions", chatBody(false, 1, "hi"))
	if health(s) != 503 || w.Code != 503 || !strings.Contains(w.Body.String(), `"code":503`) {
		t.Errorf("health %d, chat %d %s", health(s), w.Code, w.Body)
	}
	waittest.Until(t, "the fault to end", func() bool { return health(s) == 200 })
}

// TestFaultCount: of requests at the same time, exactly so many meet the fault; asking for health is none of them.
func TestFaultCount(t *testing.T) {
	s := start(t, Config{Speed: 100})
	setFault(t, s, `{"mode":"503","count":7}`)
	if health(s) != 503 {
		t.Error("healthy before the fault is used up")
	}
	var refused atomic.Int32
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			if do(s, "POST", "/v1/completions", `{"prompt":"x","max_tokens":1}`).Code == 503 {
				refused.Add(1)
			}
		})
	}
	all.Wait()
	if refused.Load() != 7 || health(s) != 200 {
		t.Errorf("%d of 30 refused, health %d; want 7 and 200", refused.Load(), health(s))
	}
}

func TestFaultReset(t *testing.T) {
	s := start(t, Config{Speed: 100})
	setFault(t, s, `{"mode":"reset"}`)
	if _, err := post(t.Context(), s.URL()+"/v1/completions", `{"prompt":"x"}`); !errors.Is(err, syscall.ECONNRESET) &&
		!errors.Is(err, io.EOF) {
		t.Errorf("got %v, want a reset", err)
	}
	if health(s) != 200 {
		t.Error("health suffers too")
	}
}

func TestFaultCut(t *testing.T) {
	s := start(t, Config{Speed: 100})
	setFault(t, s, `{"mode":"cut"}`)
	r, err := post(t.Context(), s.URL()+"/v1/chat/completions", chatBody(true, 1000, "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, _, err := streamed(r.Body)
	if text == "" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q and %v, want some text and an unexpected end", text, err)
	}
	waittest.Until(t, "the slot to be free", func() bool { return s.Stats().Running == 0 })
}

// TestFaultDrain: what runs is finished, what comes is left empty, and only the answers show it.
func TestFaultDrain(t *testing.T) {
	s := start(t, Config{})
	r, err := post(t.Context(), s.URL()+"/v1/chat/completions", chatBody(true, 20, "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	waittest.Until(t, "the request to run", func() bool { return s.Stats().Running == 1 })
	setFault(t, s, `{"mode":"drain"}`)
	if text, end, err := streamed(r.Body); end != "length" || len(text) != 20*engine.BytesPerToken || err != nil {
		t.Errorf("the running stream ended with %q after %d bytes: %v", end, len(text), err)
	}
	leavesEmpty(t, s)
	for path, status := range map[string]int{"/health": 200, "/ping": 200, "/metrics": 200} {
		if w := do(s, "GET", path, ""); w.Code != status {
			t.Errorf("%s: %d, want %d", path, w.Code, status)
		}
	}
	if w := do(s, "POST", "/tokenize", `{"prompt":"x"}`); w.Code != 500 {
		t.Errorf("/tokenize: %d, want 500", w.Code)
	}
}

// leavesEmpty holds the answers of a draining worker against vLLM's.
func leavesEmpty(t *testing.T, s *Server) {
	t.Helper()
	a := answerOf(t, s, "/v1/chat/completions", chatBody(false, 5, "x"))
	if a.Choices[0].Finish != "abort" || a.Choices[0].Message.Content != "" {
		t.Errorf("got %+v, want an empty text and abort", a.Choices[0])
	}
	for path, want := range map[string]string{"/v1/chat/completions": "data: [DONE]\n\n",
		"/v1/messages": "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"} {
		if got := do(s, "POST", path, chatBody(true, 5, "x")).Body.String(); got != want {
			t.Errorf("%s: stream is %q, want %q", path, got, want)
		}
	}
	if a := want(t, do(s, "POST", "/v1/responses", `{"input":"x"}`), 200); a["status"] != "cancelled" {
		t.Errorf("response has status %v, want cancelled", a["status"])
	}
}

// TestFaultAbort: what runs ends at once with finish_reason abort.
func TestFaultAbort(t *testing.T) {
	s := start(t, Config{})
	r, err := post(t.Context(), s.URL()+"/v1/chat/completions", chatBody(true, 100000, "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	waittest.Until(t, "a token", func() bool { return s.Stats().Generated > 0 })
	setFault(t, s, `{"mode":"abort"}`)
	if text, end, err := streamed(r.Body); text == "" || end != "abort" || err != nil {
		t.Errorf("the stream ended with %q after %q: %v", end, text, err)
	}
	leavesEmpty(t, s)
	setFault(t, s, `{"mode":"none"}`)
	if a := answerOf(t, s, "/v1/chat/completions", chatBody(false, 2, "x")); a.Choices[0].Finish != "length" {
		t.Errorf("healed, it ends with %q", a.Choices[0].Finish)
	}
}

// TestBrokenAnswers: each fault breaks streams and plain answers alike, and leaves the worker whole.
func TestBrokenAnswers(t *testing.T) {
	s := start(t, Config{Speed: 100})
	const path = "/v1/chat/completions"
	f := func(mode, stream, plain string) {
		t.Helper()
		setFault(t, s, `{"mode":"`+mode+`","count":2}`)
		for i, want := range []string{stream, plain} {
			r, err := post(t.Context(), s.URL()+path, chatBody(i == 0, 50, "x"))
			got := ""
			if err == nil {
				var b []byte
				b, err = io.ReadAll(r.Body)
				r.Body.Close()
				got = strings.ToValidUTF8(string(b), "?")
			}
			said := "200 " + got
			if err != nil {
				said = err.Error()
			} else if r.StatusCode != 200 {
				said = r.Status + got
			}
			if !strings.Contains(said, want) {
				t.Errorf("%s: got %q, want %q in it", mode, said, want)
			}
		}
		if w := do(s, "POST", path, chatBody(false, 1, "x")); w.Code != 200 {
			t.Errorf("%s: the third request got %d", mode, w.Code)
		}
		waittest.Until(t, "the slots to be free", func() bool { return s.Stats().Running == 0 })
	}
	f("error-event", "\"code\":500}}\n\ndata: [DONE]\n\n", "500 Internal")
	f("garbage", "{]}\x1b[2J", "malformed HTTP")
	f("bad-frame", "invalid byte in chunk length", "Content-Length")
	f("short-length", "unexpected EOF", "unexpected EOF")
	f("half-close", "unexpected EOF", "unexpected EOF")
	f("cut", "unexpected EOF", "EOF")
}

func TestFaultAcceptOnly(t *testing.T) {
	s := start(t, Config{})
	setFault(t, s, `{"mode":"accept-only"}`)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := post(ctx, s.URL()+"/v1/completions", `{"prompt":"x"}`); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want no answer", err)
	}
	if health(s) != 200 {
		t.Error("health suffers too")
	}
}

func TestFaultStall(t *testing.T) {
	s := start(t, Config{Speed: 100})
	setFault(t, s, `{"mode":"stall"}`)
	got := make(chan int)
	go func() { got <- do(s, "POST", "/v1/completions", `{"prompt":"x"}`).Code }()
	select {
	case code := <-got:
		t.Fatalf("answered %d in a stall", code)
	case <-time.After(50 * time.Millisecond):
	}
	if health(s) != 200 {
		t.Error("health suffers too")
	}
	setFault(t, s, `{"mode":"none"}`)
	if code := <-got; code != 200 {
		t.Errorf("after the stall it answered %d", code)
	}
}

func TestFaultSlowHealth(t *testing.T) {
	s := start(t, Config{})
	setFault(t, s, `{"mode":"slow-health","delay":0.1}`)
	if begin := time.Now(); health(s) != 200 || time.Since(begin) < 100*time.Millisecond {
		t.Errorf("health took %v", time.Since(begin))
	}
}

// TestDeathAndRevival: a dead worker cuts its streams and refuses connections, and comes back on its port with
// nothing cached.
func TestDeathAndRevival(t *testing.T) {
	s := start(t, Config{})
	prompt := engine.TextOfTokens(1, 200)
	answerOf(t, s, "/v1/chat/completions", chatBody(false, 1, prompt))
	born := s.process.Load().born
	r, err := post(t.Context(), s.URL()+"/v1/chat/completions", chatBody(true, 10000, "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	post(t.Context(), s.URL()+"/sim/fault", `{"mode":"die","seconds":0.3}`)
	if _, _, err := streamed(r.Body); err == nil {
		t.Error("the stream ended well")
	}
	waittest.Until(t, "the port to be closed", func() bool {
		_, err := client.Get(s.URL() + "/health")
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	waittest.Until(t, "the revival", func() bool { return health(s) == 200 })
	a := answerOf(t, s, "/v1/chat/completions", chatBody(false, 1, prompt))
	if a.Usage.Details.Cached != 0 || !s.process.Load().born.After(born) {
		t.Errorf("%d tokens cached after a death, born %v and before %v", a.Usage.Details.Cached, s.process.Load().born, born)
	}
}

func TestUnknownFaultIsRefused(t *testing.T) {
	s := newTiny(t, Config{})
	for _, body := range []string{`{"mode":"gremlins"}`, `{`, `{}`} {
		if w := do(s, "POST", "/sim/fault", body); w.Code != http.StatusBadRequest {
			t.Errorf("%s: got %d", body, w.Code)
		}
	}
}

// TestRestart: the port is the same, the process another, and whoever was connected got a reset.
func TestRestart(t *testing.T) {
	s := start(t, Config{})
	url, born := s.URL(), s.process.Load().born
	r, err := post(t.Context(), url+"/v1/chat/completions", chatBody(true, 10000, "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	id := want(t, do(s, "POST", "/v1/responses", `{"input":"x","max_output_tokens":1}`), 200)["id"].(string)
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := streamed(r.Body); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the stream ended with %v, want a reset", err)
	}
	if health(s) != 0 {
		t.Error("a dead worker answers")
	}
	for range 2 { // dead, and alive
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		if health(s) != 200 || s.URL() != url || !s.process.Load().born.After(born) {
			t.Errorf("on %s, before on %s; born %v, before %v", s.URL(), url, s.process.Load().born, born)
		}
		born = s.process.Load().born
	}
	want(t, do(s, "GET", "/v1/responses/"+id, ""), 404)
}
