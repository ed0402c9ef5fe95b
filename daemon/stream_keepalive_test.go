package daemon

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// tale is what a stream of server-sent events tells a reader that goes by the standard: comments are skipped.
func tale(t *testing.T, s seen) (comments int, events []string) {
	t.Helper()
	if s.err != nil || s.status != 200 || !strings.HasPrefix(s.header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("no stream: %d %v %v %s", s.status, s.err, s.header, s.body)
	}
	event, data := "", ""
	for line := range strings.SplitSeq(s.body, "\n") {
		field, value, _ := strings.Cut(line, ":")
		switch {
		case line == "":
			if data != "" {
				events = append(events, strings.TrimSpace(event+" "+data))
			}
			event, data = "", ""
		case field == "":
			comments++
			if len(events) > 0 {
				t.Errorf("a comment behind the first event: %s", s.body)
			}
		case field == "event":
			event = strings.TrimPrefix(value, " ")
		case field == "data":
			data += strings.TrimPrefix(value, " ")
		default:
			t.Errorf("the line %q in %s", line, s.body)
		}
	}
	return comments, events
}

const slowly = 1300 * time.Millisecond // longer than the interval of keepalive

// inTime reports whether that many comments fit a request that began then: one at least, and no more than intervals of
// keepalive that have passed. A machine that is busy may make slowly longer.
func inTime(comments int, begun time.Time) bool {
	return comments >= 1 && comments <= int(time.Since(begun)/time.Second)
}

// slowWorker computes each prompt for so long, and then answers as the prompt asks it to.
func slowWorker(t *testing.T) string {
	w := fakeWorker(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		does := func(what string) bool { return strings.Contains(string(body), what) }
		select {
		case <-time.After(slowly):
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case does("fails"):
			w.WriteHeader(500)
			_, _ = io.WriteString(w, `{"error":{"message":"the engine failed","type":"EngineError","param":null,"code":500}}`)
		case does("refuses"):
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"object":"error","message":"too long","type":"BadRequestError","code":400}`)
		case does("whole"):
			_, _ = io.WriteString(w, `{"id":"x","object":"text_completion","choices":[{"index":0,"text":"x","finish_reason":"stop"}]}`)
		case does("breaks"):
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			_, _ = io.WriteString(w, "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"text\":\"hi\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		}
	})
	t.Cleanup(w.CloseClientConnections)
	return w.URL
}

func keptAlive(t *testing.T, more string, urls ...string) (r *running, log string) {
	log = filepath.Join(t.TempDir(), "access.log")
	toml := withServer(settings("roundrobin", urls...), fmt.Sprintf("keepalive = \"1s\"\naccess_log = %q", log))
	return start(t, withPool(toml, more), len(urls)), log
}

// A client that waits for a stream gets comments while the worker computes its prompt, and then the stream, or the
// error as an event in the form of its API. The log has the error's status.
func TestKeepaliveWhileTheWorkerComputes(t *testing.T) {
	t.Parallel()
	r, log := keptAlive(t, "", slowWorker(t))
	f := func(path, does, want string, status int) {
		t.Helper()
		body := fmt.Sprintf(`{"model":"sim","stream":true,"max_tokens":4,"prompt":%q,"input":%[1]q,"messages":[{"role":"user","content":%[1]q}]}`, does)
		begun := time.Now()
		s := r.do("POST", path, body, "X-Request-Id", "id-"+does+path[4:6])
		comments, events := tale(t, s)
		if !inTime(comments, begun) || strings.Join(events, " | ") != want {
			t.Errorf("%s %s: %d comments, then %q; want %q", path, does, comments, events, want)
		}
		if s.header.Get("X-Request-Id") != "id-"+does+path[4:6] {
			t.Errorf("%s: the head has %v", does, s.header)
		}
		eventually(t, "the access log has the request", func() bool {
			lines, _ := os.ReadFile(log)
			for line := range strings.SplitSeq(string(lines), "\n") {
				if strings.Contains(line, `"id-`+does+path[4:6]+`"`) {
					if !strings.Contains(line, fmt.Sprintf(`"status":%d,`, status)) || !strings.Contains(line, fmt.Sprintf(`"keepalives":%d,`, comments)) {
						t.Errorf("%s: the log has %s", does, line)
					}
					return true
				}
			}
			return false
		})
	}
	const chat, messages, responses = "/v1/chat/completions", "/v1/messages", "/v1/responses"
	f("/v1/completions", "works", `{"id":"x","choices":[{"index":0,"text":"hi","finish_reason":"stop"}]} | [DONE]`, 200)
	f(chat, "fails", `{"error":{"message":"the engine failed","type":"EngineError","param":null,"code":"500"}}`, 500)
	f(chat, "refuses", `{"error":{"message":"too long","type":"BadRequestError","param":null,"code":"400"}}`, 400)
	f(messages, "refuses", `error {"type":"error","error":{"type":"invalid_request_error","message":"too long"}}`, 400)
	f(responses, "refuses", `error {"message":"too long","type":"error","param":null,"code":"400","sequence_number":0}`, 400)
	s := r.do("POST", "/v1/completions", `{"model":"sim","stream":true,"prompt":"whole"}`)
	if _, events := tale(t, s); len(events) != 1 || !strings.Contains(events[0], `"code":"no_stream"`) {
		t.Errorf("an answer that is no stream: %s", s.body)
	}
	if n := r.metric("warmpath_requests_total", `code="500"`); n != 1 {
		t.Errorf("%v requests counted with 500", n)
	}
	if s := r.do("POST", chat, `{"model":"sim","messages":[{"role":"user","content":"fails"}]}`); s.status != 500 {
		t.Errorf("without stream: %d %s", s.status, s.body)
	}
	req := `{"model":"sim","stream":true,"prompt":"fails"}`
	_, got, c := r.raw(fmt.Sprintf("POST /v1/completions HTTP/1.0\r\nContent-Length: %d\r\nContent-Type: application/json\r\n\r\n%s", len(req), req))
	c.Close()
	if !strings.Contains(got, "EngineError") || strings.Contains(got, "keepalive") {
		t.Errorf("to HTTP/1.0: %s", got)
	}
}

// While a request waits in the queue its client gets comments. What ends the wait, ends them.
func TestKeepaliveInTheQueue(t *testing.T) {
	t.Parallel()
	url, open := gated(t)
	r, log := keptAlive(t, "max_in_flight = 1\nqueue = { wait = \"2500ms\" }", url)
	first := r.many(1)
	eventually(t, "the first is at the worker", func() bool { return r.inFlight() == 1 })
	begun := time.Now()
	comments, events := tale(t, r.do("POST", "/v1/completions", strings.Replace(hello, "{", `{"stream":true,`, 1)))
	if comments < 2 || !inTime(comments, begun) || len(events) != 1 || !strings.Contains(events[0], `"code":"queue_wait"`) {
		t.Errorf("%d comments, then %q", comments, events)
	}
	invoked := r.do("POST", "/invocations", strings.Replace(hello, "{", `{"stream":true,`, 1))
	if invoked.status != 429 || strings.Contains(invoked.body, "keepalive") {
		t.Errorf("an invocation: %d %s", invoked.status, invoked.body)
	}
	if s := <-r.many(1); s.status != 429 || s.header.Get("Retry-After") == "" {
		t.Errorf("without stream: %d %s", s.status, s.body)
	}
	open <- struct{}{}
	allGood(t, 1, first)
	eventually(t, "three lines of the log have 429", func() bool {
		lines, _ := os.ReadFile(log)
		return strings.Count(string(lines), `"status":429,`) == 3
	})
	if n := r.metric("warmpath_queue_dropped_total", `reason="wait"`); n != 3 {
		t.Errorf("%v dropped for their wait", n)
	}
}

// A worker that breaks after a comment is replaced, as long as it has sent nothing.
func TestKeepaliveThenAnotherWorker(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	breaks := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if calls.Add(1) == 1 {
			time.Sleep(slowly)
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"text\":\"hi\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}
	r, _ := keptAlive(t, "", fakeWorker(t, breaks).URL, fakeWorker(t, breaks).URL)
	begun := time.Now()
	comments, events := tale(t, r.do("POST", "/v1/completions", strings.Replace(hello, "{", `{"stream":true,`, 1)))
	if !inTime(comments, begun) || len(events) != 2 || calls.Load() != 2 {
		t.Errorf("%d comments, then %q of %d attempts", comments, events, calls.Load())
	}
}

// The answer to a request that came before on the connection comes first, whole; and after a stream that was kept alive
// the connection serves the next request.
func TestKeepaliveOnAPipelinedConnection(t *testing.T) {
	t.Parallel()
	r, _ := keptAlive(t, "", slowWorker(t))
	c, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	reader := bufio.NewReader(c)
	post := func(body string) string {
		return fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	begun := time.Now() // before the request that is read next
	read := func(what string, kept bool) {
		t.Helper()
		defer func() { begun = time.Now() }()
		_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		body, err := io.ReadAll(resp.Body)
		comments := strings.Count(string(body), ": keepalive")
		if err != nil || resp.StatusCode != 200 || kept != (comments > 0) || kept && !inTime(comments, begun) {
			t.Fatalf("%s: %d %v %s", what, resp.StatusCode, err, body)
		}
		if !kept && !strings.HasPrefix(string(body), "data:") && !json.Valid(body) {
			t.Errorf("%s: %s", what, body)
		}
	}
	whole, stream := `{"model":"sim","prompt":"whole"}`, `{"model":"sim","prompt":"works","stream":true}`
	_, _ = io.WriteString(c, post(whole)+post(stream))
	read("the first of two", false)
	read("the second of two", false)
	for range 2 {
		_, _ = io.WriteString(c, post(stream))
		read("one alone", true)
	}
	_, _ = io.WriteString(c, post(whole))
	read("a whole answer", false)
	_, _ = io.WriteString(c, post(stream))
	read("one behind a whole answer", true)
}
