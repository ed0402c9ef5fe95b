package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// echo is a sound worker that keeps what it was asked. It serves every model it is asked for, as a worker would that
// reads a request otherwise than the router.
type echo struct {
	addr   string
	models []string // of its /v1/models
	server *http.Server

	mu  sync.Mutex // guards got
	got []string   // path and body of each request but the router's own
}

// echoes starts a worker that lists these models.
func (l *lab) echoes(models ...string) (*echo, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &echo{addr: listener.Addr().String(), models: models}
	e.server = &http.Server{Handler: e}
	go e.server.Serve(listener)
	l.others = append(l.others, e)
	return e, nil
}

// Stop ends the worker.
func (e *echo) Stop() { e.server.Close() }

// asked returns what came in since the last call.
func (e *echo) asked() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	got := e.got
	e.got = nil
	return got
}

// ServeHTTP answers as a small vLLM does. It is told the model that the body names last.
func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/health", "/ping":
		return
	case "/metrics":
		io.WriteString(w, metrics)
		return
	case "/v1/models":
		if r.Method == "GET" {
			e.list(w)
			return
		}
	}
	body, _ := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	e.mu.Lock()
	if len(e.got) < 10_000 {
		e.got = append(e.got, fmt.Sprintf("%s %s %.4096s", r.Method, r.RequestURI, body))
	}
	e.mu.Unlock()
	served := "sim"
	if strings.Contains(string(body), "secret") {
		served = "secret"
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":"resp_%016x","object":"chat.completion","created":1,"model":"sim","served_model":%q,`+
		`"worker":%q,`+
		`"status":"completed","output":[],"choices":[{"index":0,"message":{"role":"assistant","content":"well"},`+
		`"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}}`, rand.Uint64(), served, e.addr)
}

func (e *echo) list(w http.ResponseWriter) {
	type entry struct {
		ID     string `json:"id"`
		Object string `json:"object"`
		Max    int    `json:"max_model_len"`
	}
	all := []entry{}
	for _, m := range e.models {
		all = append(all, entry{m, "model", 1 << 20})
	}
	json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": all})
}

const metrics = `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="sim"} 0.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="sim"} 0.0
`

// raw is a worker whose answers to inference requests are written byte by byte.
type raw struct{ wire.Worker }

// Stop ends the worker.
func (r *raw) Stop() { r.Close() }

// raws starts a raw worker that handles inference requests as given and all else well.
func (l *lab) raws(handle func(*wire.Call) bool) (*raw, error) {
	r := &raw{}
	r.Handle = func(c *wire.Call) bool {
		switch c.Path {
		case "/health", "/ping", "/v1/models", "/metrics":
			return c.Answer()
		}
		return handle(c)
	}
	if err := r.Start("127.0.0.1:0"); err != nil {
		return nil, err
	}
	l.others = append(l.others, r)
	return r, nil
}
