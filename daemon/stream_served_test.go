package daemon

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// leaves sends a request, reads until the mark has come and leaves: it closes, or only its own side if half.
func leaves(t *testing.T, addr, path, body, mark string, half bool) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
	var all strings.Builder
	for b := make([]byte, 4096); !strings.Contains(all.String(), mark); {
		n, err := c.Read(b)
		all.Write(b[:n])
		if err != nil {
			t.Fatalf("%v before %q came: %s", err, mark, all.String())
		}
	}
	if half {
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c) // the router closes its side
	}
}

// unending makes a worker that streams the events, and does not end the body.
func unending(t *testing.T) (*httptest.Server, *atomic.Pointer[[]string]) {
	events := new(atomic.Pointer[[]string])
	return fakeWorker(t, func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); !strings.Contains(string(body), `"stream":true`) {
			io.WriteString(w, completion)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range *events.Load() {
			io.WriteString(w, e)
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}
		<-r.Context().Done()
	}), events
}

// TestClientsThatLeaveOnceServed: a client that closes once it has the whole answer was served, though the worker has
// not ended the body. One that closes before is gone.
func TestClientsThatLeaveOnceServed(t *testing.T) {
	w, events := unending(t)
	log := filepath.Join(t.TempDir(), "access.log")
	r := start(t, withServer(settings("prefixaware", w.URL), fmt.Sprintf("access_log = %q", log)), 1)
	long := strings.Repeat("The tide comes in twice a day. ", 20)
	asked := 0
	f := func(what, path, more, mark string, half bool, end string, tokens int, answer ...string) {
		t.Helper()
		events.Store(&answer)
		asked++
		leaves(t, r.Addr(), path, `{"model":"sim","stream":true,`+more+`}`, mark, half)
		eventually(t, "its line", func() bool { return len(logged(t, log)) >= asked })
		line := logged(t, log)[asked-1]
		got, _ := line["end"].(string)
		if n, _ := line["output_tokens"].(float64); got != end || int(n) != tokens || line["status"] != 200. {
			t.Errorf("%s: status %v, end %q, %v tokens; want end %q, %d tokens", what, line["status"], got, n, end, tokens)
		}
	}
	const (
		role  = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n"
		stop  = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
		call  = `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{}"}}]}}]}` + "\n\n"
		calls = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"completion_tokens":4}}` + "\n\n"
		usage = `data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7}}` + "\n\n"
		done  = "data: [DONE]\n\n"
		chats = "/v1/chat/completions"
	)
	word := `data: {"choices":[{"index":0,"delta":{"content":"` + long + `"}}]}` + "\n\n"
	turn := `"messages":[{"role":"user","content":"` + long + `"}]`
	f("at [DONE]", chats, turn, "[DONE]", false, "", 7, role, word, stop, usage, done)
	f("half-closed at [DONE]", chats, turn, "[DONE]", true, "", 7, role, word, stop, usage, done)
	f("with its tool call", chats, turn, `"tool_calls"}`, false, "", 4, role, call, calls)
	f("in the text", chats, turn, "tide", false, "client_gone", 0, role, word)
	f("with one of two choices", chats, `"n":2,`+turn, `"stop"`, false, "client_gone", 0, role, word, stop)
	f("in a completion", "/v1/completions", `"prompt":"x"`, `"length"`, false, "", 0,
		`data: {"choices":[{"index":0,"text":"a","finish_reason":"length"}]}`+"\n\n")
	f("at message_stop", "/v1/messages", `"max_tokens":9,`+turn, "message_stop", false, "", 3,
		`data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":9,"output_tokens":0}}}`+"\n\n",
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`+"\n\n",
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}`+"\n\n",
		`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`+"\n\n",
		`data: {"type":"message_stop"}`+"\n\n")
	for _, kind := range []string{"completed", "incomplete"} {
		f("at response."+kind, "/v1/responses", `"input":"x"`, "response."+kind, false, "", 2,
			`data: {"type":"response.output_text.delta","delta":"hi"}`+"\n\n",
			`data: {"type":"response.`+kind+`","response":{"status":"`+kind+`","usage":{"input_tokens":9,"output_tokens":2}}}`+"\n\n")
	}
	f("at response.failed", "/v1/responses", `"input":"x"`, "response.failed", false, "hidden_failure", 0,
		`data: {"type":"response.output_text.delta","delta":"hi"}`+"\n\n",
		`data: {"type":"response.failed","response":{"status":"failed","error":{"code":"server_error"}}}`+"\n\n")
	events.Store(&[]string{role, word, stop, done})
	leaves(t, r.Addr(), chats, `{"model":"sim","stream":true,"messages":[{"role":"user","content":"other `+long+`"}]}`, "[DONE]", false)
	eventually(t, "the answer is learnt", func() bool {
		var matched int
		next := `{"model":"sim","messages":[{"role":"user","content":"other ` + long + `"},{"role":"assistant","content":"` + long +
			`"},{"role":"user","content":"` + long + `"}]}`
		s := r.do("POST", chats, next, "X-Warmpath-Explain", "1")
		fmt.Sscan(s.header.Get("X-Warmpath-Matched-Blocks"), &matched)
		return matched*128 > 2*len(long)-256
	})
}
