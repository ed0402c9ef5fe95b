package vllmsim

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
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
	await(t, "the fault to end", func() bool { return health(s) == 200 })
}

func TestFaultReset(t *testing.T) {
	s := start(t, Config{Speed: 100})
	setFault(t, s, `{"mode":"reset"}`)
	if _, err := post(t.Context(), s.URL()+"/v1/completions", `{"prompt":"x"}`); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
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
	await(t, "the slot to be free", func() bool { return s.Stats().Running == 0 })
}

func TestFaultAbort(t *testing.T) {
	s := start(t, Config{Speed: 100})
	setFault(t, s, `{"mode":"abort"}`)
	a := answerOf(t, s, "/v1/chat/completions", chatBody(false, 5, "x"))
	if a.Choices[0].Finish != "abort" || a.Choices[0].Message.Content != "" {
		t.Errorf("got %+v, want an empty text and abort", a.Choices[0])
	}
	if got := do(s, "POST", "/v1/chat/completions", chatBody(true, 5, "x")).Body.String(); got != "data: [DONE]\n\n" {
		t.Errorf("stream is %q, want a bare [DONE]", got)
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

// TestDeathAndRevival: a dead worker cuts its streams and refuses connections, and comes back on its port with nothing cached.
func TestDeathAndRevival(t *testing.T) {
	s := start(t, Config{})
	prompt := TextOfTokens(1, 200)
	answerOf(t, s, "/v1/chat/completions", chatBody(false, 1, prompt))
	born := s.born.Load()
	r, err := post(t.Context(), s.URL()+"/v1/chat/completions", chatBody(true, 10000, "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	post(t.Context(), s.URL()+"/sim/fault", `{"mode":"die","seconds":0.3}`)
	if _, _, err := streamed(r.Body); err == nil {
		t.Error("the stream ended well")
	}
	await(t, "the port to be closed", func() bool {
		_, err := client.Get(s.URL() + "/health")
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	await(t, "the revival", func() bool { return health(s) == 200 })
	a := answerOf(t, s, "/v1/chat/completions", chatBody(false, 1, prompt))
	if a.Usage.Details.Cached != 0 || s.born.Load() <= born {
		t.Errorf("%d tokens cached after a death, born %d and before %d", a.Usage.Details.Cached, s.born.Load(), born)
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
