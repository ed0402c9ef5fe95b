package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/testdata/rig/wire"
)

func started(t *testing.T, e *Engine) string {
	t.Helper()
	if err := e.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e.Addr()
}

// TestPages: an engine that nobody has changed answers as a vLLM does.
func TestPages(t *testing.T) {
	addr := started(t, &Engine{})
	f := func(request []byte, status int, words ...string) {
		t.Helper()
		a := wire.Once(addr, request)
		if a.Err != nil || a.Status != status {
			t.Errorf("%.40q: %d, %v; want %d", request, a.Status, a.Err, status)
		}
		for _, w := range words {
			if !strings.Contains(string(a.Body), w) {
				t.Errorf("%.40q: no %q in %s", request, w, a.Body)
			}
		}
	}
	f(wire.Get("/health"), 200)
	f(wire.Get("/metrics"), 200, "vllm:num_requests_running")
	f(wire.Get("/v1/models"), 200, `"id":"sim"`, `"max_model_len":32768`)
	f(wire.Get("/kv_event_sources"), 404)
	f(wire.Post("/v1/chat/completions", `{}`), 200, `"finish_reason":"stop"`)
	f(wire.Post("/v1/chat/completions", `{"stream":true}`), 200, `"finish_reason":"stop"`, "[DONE]")
}

// TestReplaced: each part that a test replaces is asked.
func TestReplaced(t *testing.T) {
	addr := started(t, &Engine{
		Health:  func(c *wire.Call) bool { return c.Plain(503, "text/plain", "") },
		Metrics: func() string { return "busy" },
		Listed:  func() []Model { return []Model{{ID: "other"}} },
		Post: func(c *wire.Call) bool {
			return Refuse(c, 429, "got "+Field(c, "host")+string(c.Text), "Retry-After: 3")
		},
		Page: func(c *wire.Call) (bool, bool) {
			return c.Path == "/own", c.Path == "/own" && c.Plain(418, "text/plain", "")
		},
	})
	f := func(request []byte, status int, body string) {
		t.Helper()
		if a := wire.Once(addr, request); a.Status != status || !strings.Contains(string(a.Body), body) {
			t.Errorf("%.40q: %d %s; want %d and %q", request, a.Status, a.Body, status, body)
		}
	}
	f(wire.Get("/health"), 503, "")
	f(wire.Get("/metrics"), 200, "busy")
	f(wire.Get("/v1/models"), 200, `"id":"other"`)
	f(wire.Post("/tokenize", "text"), 429, "got routertext")
	f(wire.Get("/own"), 418, "")
}

// TestGate: a shut gate accepts nobody, and whoever waited is answered when it opens.
func TestGate(t *testing.T) {
	g, err := NewGate(started(t, &Engine{}))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	f := func(late bool) {
		t.Helper()
		began := time.Now()
		a := wire.Once(g.Addr, wire.Get("/health"))
		if took := time.Since(began); a.Status != 200 || took > 500*time.Millisecond != late {
			t.Errorf("%d, %v after %v; want it late: %v", a.Status, a.Err, took, late)
		}
	}
	f(false)
	g.Shut()
	time.AfterFunc(700*time.Millisecond, g.Open)
	f(true)
	f(false)
}
