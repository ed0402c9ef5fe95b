package daemon

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// When a worker sends an answer once more.
const (
	never    = ""
	withIt   = "with it"                        // in one write
	idle     = "while the connection waits"     // a moment later
	nextSent = "when the next request is there" // and its own answer after that
)

// echoing is a worker that speaks HTTP on raw sockets. Each answer repeats the mark in its request's body.
type echoing struct {
	url   string
	every int64                                                 // so many answers apart one is sent twice; 0 = none
	when  string                                                // it is sent again
	id    func(prefix, request string) string                   // of an answer; nil = vLLM's
	then  func(prefix, request string) string                   // of the last event of a stream; nil = the same
	text  func(path, id, last, mark string, stream bool) string // of an answer; nil = answerOf

	silent atomic.Bool // it sends nothing twice
	asked  atomic.Int64
	twice  atomic.Int64
	sent   chan struct{} // a value for each answer sent again while the connection waits
}

var markIn = regexp.MustCompile(`mark-[0-9a-z]+-`)

// listen starts the worker.
func (e *echoing) listen(t testing.TB) string {
	t.Helper()
	e.sent = make(chan struct{}, 1000)
	e.url = "http://" + porttest.Serve(t, func(c *net.TCPConn) { e.serve(c) })
	return e.url
}

func (e *echoing) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	var mu sync.Mutex // held while an answer is written
	owed := ""
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		b, _ := io.ReadAll(r.Body)
		if r.Method != "POST" {
			text := ""
			if r.URL.Path == "/v1/models" {
				text = `{"object":"list","data":[{"id":"sim","object":"model"}]}`
			}
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
			continue
		}
		mu.Lock()
		if owed != "" {
			_, _ = io.WriteString(c, owed)
			owed = ""
			time.Sleep(2 * time.Millisecond) // the router has read it and may have sent the next
		}
		text := e.answer(r, string(b))
		again := !e.silent.Load() && e.every > 0 && e.asked.Add(1)%e.every == 0
		if again {
			e.twice.Add(1)
		}
		switch {
		case again && e.when == withIt:
			text += text
		case again && e.when == nextSent:
			owed = text
		case again && e.when == idle:
			time.AfterFunc(2*time.Millisecond, func() {
				mu.Lock()
				defer mu.Unlock()
				_, _ = io.WriteString(c, text)
				e.sent <- struct{}{}
			})
		}
		_, _ = io.WriteString(c, text)
		mu.Unlock()
	}
}

// prefixes are those of vLLM's ids.
var prefixes = map[string]string{"/v1/chat/completions": "chatcmpl-", "/v1/messages": "chatcmpl-", "/v1/completions": "cmpl-",
	"/v1/responses": "resp_", "/v1/embeddings": "embd-", "/rerank": "rerank-"}

func (e *echoing) answer(r *http.Request, body string) string {
	prefix, own := prefixes[r.URL.Path], r.Header.Get("X-Request-Id")
	id := prefix + own
	if e.id != nil {
		id = e.id(prefix, own)
	}
	last := id
	if e.then != nil {
		last = e.then(prefix, own)
	}
	mark, stream := markIn.FindString(body), strings.Contains(body, `"stream":true`)
	if e.text != nil {
		return e.text(r.URL.Path, id, last, mark, stream)
	}
	return answerOf(r.URL.Path, id, last, mark, stream)
}

// answerOf is vLLM's answer of one word.
func answerOf(path, id, last, mark string, stream bool) string {
	name, whole, events := "", "", []string(nil)
	switch path {
	case "/v1/chat/completions":
		whole = fmt.Sprintf(`{"id":%q,"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}]}`, id, mark)
		for i, delta := range []string{`"role":"assistant","content":""`, fmt.Sprintf(`"content":%q`, mark), fmt.Sprintf(`"content":%q`, mark)} {
			events = append(events, fmt.Sprintf(`data: {"id":%q,"choices":[{"index":0,"delta":{%s},"finish_reason":%s}]}`, []string{id, id, last}[i], delta,
				[]string{"null", "null", `"stop"`}[i]))
		}
		events = append(events, "data: [DONE]")
	case "/v1/completions":
		whole = fmt.Sprintf(`{"id":%q,"object":"text_completion","choices":[{"index":0,"text":%q,"finish_reason":"stop"}]}`, id, mark)
		events = []string{fmt.Sprintf(`data: {"id":%q,"choices":[{"index":0,"text":%q,"finish_reason":null}]}`, id, mark),
			fmt.Sprintf(`data: {"id":%q,"choices":[{"index":0,"text":"","finish_reason":"stop"}]}`, last), "data: [DONE]"}
	case "/v1/messages":
		whole = fmt.Sprintf(`{"id":%q,"type":"message","role":"assistant","content":[{"type":"text","text":%q}],"stop_reason":"end_turn"}`, id, mark)
		name = "event"
		events = []string{fmt.Sprintf(`{"type":"message_start","message":{"id":%q,"type":"message","role":"assistant","content":[]}}`, id),
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, mark),
			`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`}
	case "/v1/responses":
		items := fmt.Sprintf(`[{"type":"message","content":[{"type":"output_text","text":%q}]}]`, mark)
		whole = fmt.Sprintf(`{"id":%q,"object":"response","status":"completed","output":%s}`, id, items)
		name = "event"
		events = []string{fmt.Sprintf(`{"type":"response.created","sequence_number":0,"response":{"id":%q,"status":"in_progress"}}`, id),
			fmt.Sprintf(`{"type":"response.output_text.delta","sequence_number":1,"delta":%q}`, mark),
			fmt.Sprintf(`{"type":"response.completed","sequence_number":2,"response":{"id":%q,"status":"completed","output":%s}}`, last, items)}
	case "/v1/embeddings":
		whole = fmt.Sprintf(`{"id":%q,"object":"list","data":[{"embedding":[0.5],"index":0}],"note":%q}`, id, mark)
	default:
		whole = fmt.Sprintf(`{"tokens":[1,2],"note":%q}`, mark)
	}
	if !stream {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(whole), whole)
	}
	text := ""
	for _, e := range events {
		if name != "" {
			kind, _, _ := strings.Cut(strings.TrimPrefix(e, `{"type":"`), `"`)
			e = "event: " + kind + "\ndata: " + e
		}
		text += chunk(e + "\n\n")
	}
	return eventChunks + text + "0\r\n\r\n"
}
