// Package engine is a vLLM in a few lines on package wire: its pages as a router asks for them, and an answer to
// everything else. Tests replace the part in which a fault lies.
package engine

import (
	"bytes"
	"fmt"
	"net"
	"strings"

	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// Engine is a worker. Its fields are set before Start.
type Engine struct {
	wire.Worker
	// Post answers what is none of the pages below. Default: Echo.
	Post func(*wire.Call) (keep bool)
	// Health answers /health. Default: 200.
	Health func(*wire.Call) (keep bool)
	// Page answers a GET, or leaves it alone and returns false. Default: it leaves all alone.
	Page func(*wire.Call) (answered, keep bool)
	// Metrics returns the page of /metrics. Default: that of an idle engine.
	Metrics func() string
	// Listed returns the models. Default: sim, with 32,768 tokens.
	Listed func() []Model
}

// Model is an entry of /v1/models.
type Model struct {
	ID     string
	MaxLen int // max_model_len; 0 = it says none
}

// Start listens at addr and keeps the bodies of requests.
func (e *Engine) Start(addr string) error {
	e.KeepBody = true
	e.Handle = e.handle
	return e.Worker.Start(addr)
}

// URL is where the engine serves.
func (e *Engine) URL() string { return "http://" + e.Addr() }

func (e *Engine) handle(c *wire.Call) bool {
	if c.Method == "GET" && e.Page != nil {
		if answered, keep := e.Page(c); answered {
			return keep
		}
	}
	switch {
	case c.Path == "/health":
		if e.Health != nil {
			return e.Health(c)
		}
		return c.Plain(200, "text/plain", "")
	case c.Path == "/metrics":
		page := wire.Metrics(32768)
		if e.Metrics != nil {
			page = e.Metrics()
		}
		return c.Plain(200, "text/plain; version=0.0.4", page)
	case c.Path == "/v1/models":
		return c.Plain(200, "application/json", list(e.models()))
	case c.Method == "GET" && !strings.HasPrefix(c.Path, "/v1/"): // as older engines answer pages that they do not have
		return c.Plain(404, "application/json", `{"detail":"Not Found"}`)
	case e.Post != nil:
		return e.Post(c)
	}
	return Echo(c)
}

func (e *Engine) models() []Model {
	if e.Listed != nil {
		return e.Listed()
	}
	return []Model{{ID: "sim", MaxLen: 32768}}
}

// list is the page of /v1/models.
func list(models []Model) string {
	var entries []string
	for _, m := range models {
		entry := fmt.Sprintf(`{"id":%q,"object":"model","created":1,"owned_by":"vllm","root":%q,"parent":null`, m.ID, m.ID)
		if m.MaxLen > 0 {
			entry += fmt.Sprintf(`,"max_model_len":%d`, m.MaxLen)
		}
		entries = append(entries, entry+"}")
	}
	return `{"object":"list","data":[` + strings.Join(entries, ",") + `]}`
}

// Field is a field of the request's head, "" if it has none.
func Field(c *wire.Call, name string) string {
	for line := range bytes.SplitSeq(c.Raw, []byte("\r\n")) {
		if n, value, ok := strings.Cut(string(line), ":"); ok && strings.EqualFold(n, name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Streams tells whether the request asks for a stream.
func Streams(c *wire.Call) bool { return bytes.Contains(c.Text, []byte(`"stream":true`)) }

// Chat is a whole answer to a chat, with the text and the finish_reason.
func Chat(text, finish string) string {
	return fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"sim","choices":[{"index":0,`+
		`"message":{"role":"assistant","content":%q},"finish_reason":%q}],"usage":{"prompt_tokens":5,`+
		`"completion_tokens":1,"total_tokens":6}}`, text, finish)
}

// Delta is an event of a chat's stream. finish is JSON: "null" while more follows.
func Delta(delta, finish string) string {
	return fmt.Sprintf(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"sim","choices":`+
		`[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", delta, finish)
}

// The first event of a chat's stream, its last two, and the end of its body.
var (
	Role = Delta(`{"role":"assistant","content":""}`, "null")
	Stop = Delta(`{}`, `"stop"`)
)

// Done ends every stream of chats and completions.
const Done = "data: [DONE]\n\n"

// Stream writes a whole stream of these events.
func Stream(c *wire.Call, events ...string) bool {
	if c.StreamHead() != nil {
		return false
	}
	for _, e := range events {
		if c.Chunk(e) != nil {
			return false
		}
	}
	return End(c)
}

// End writes the end of a chunked body.
func End(c *wire.Call) bool {
	_, err := c.Write([]byte("0\r\n\r\n"))
	return err == nil
}

// Echo answers with a short chat, streamed if the request asks for that.
func Echo(c *wire.Call) bool {
	if Streams(c) {
		return Stream(c, Role, Delta(`{"content":"hello"}`, "null"), Stop, Done)
	}
	return c.Plain(200, "application/json", Chat("hello", "stop"))
}

// Refuse answers with a status, further fields and an error as vLLM words it.
func Refuse(c *wire.Call, status int, words string, fields ...string) bool {
	body := fmt.Sprintf(`{"error":{"message":%q,"type":"Error","param":null,"code":%d}}`, words, status)
	var more strings.Builder
	for _, f := range fields {
		more.WriteString(f + "\r\n")
	}
	_, err := fmt.Fprintf(c, "HTTP/1.1 %d Status\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
		status, &more, len(body), body)
	return err == nil
}

// Reset closes the connection with a RST.
func Reset(c *wire.Call) bool {
	if t, ok := c.Conn.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	return false
}
