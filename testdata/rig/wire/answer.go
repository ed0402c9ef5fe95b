package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// models and metrics are the least that a router asks a vLLM for.
const models = `{"object":"list","data":[{"id":"sim","object":"model","created":1,"owned_by":"vllm","root":"sim",` +
	`"parent":null,"max_model_len":1048576}]}`

// Metrics is a worker's page for a KV cache of so many blocks of 16 tokens.
func Metrics(blocks int) string {
	return strings.Replace(metrics, "32768", strconv.Itoa(blocks), 1)
}

const metrics = `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="sim"} 0.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="sim"} 0.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="sim"} 0.1
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",enable_prefix_caching="True",num_gpu_blocks="32768"} 1.0
`

// Reply is the text of every plain answer.
const Reply = "The capital of France is Paris, as most of those who were asked have said before."

// Answer answers as the call's query says; see the package's doc.
func (c *Call) Answer() (keep bool) {
	switch c.Path {
	case "/health", "/ping":
		return c.Plain(200, "text/plain", "")
	case "/v1/models":
		return c.Plain(200, "application/json", models)
	case "/metrics":
		return c.Plain(200, "text/plain; version=0.0.4", metrics)
	}
	if hold := c.Millis("hold"); hold > 0 && c.Wait(hold) {
		return false
	}
	if n, _ := strconv.Atoi(c.Query.Get("chunks")); n > 0 {
		return c.Stream(n, c.Millis("gap"))
	}
	return c.Plain(200, "application/json", fmt.Sprintf(`{"id":"%s","object":"chat.completion","created":1,"model":"sim",`+
		`"choices":[{"index":0,"message":{"role":"assistant","content":"%s"},"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":100,"completion_tokens":16,"total_tokens":116}}`, c.Mark(), Reply))
}

// Mark is the call's mark.
func (c *Call) Mark() string { return c.Query.Get("mark") }

// Millis is a parameter of the query in milliseconds; 0 if it is absent.
func (c *Call) Millis(name string) time.Duration {
	v, _ := strconv.ParseFloat(c.Query.Get(name), 64)
	return time.Duration(v * float64(time.Millisecond))
}

// Plain writes an answer of known length.
func (c *Call) Plain(status int, kind, body string) bool {
	c.ends()
	_, err := c.Write(fmt.Appendf(nil, "HTTP/1.1 %d Status\r\nServer: uvicorn\r\nContent-Type: %s\r\nContent-Length: "+
		"%d\r\n\r\n%s", status, kind, len(body), body))
	return err == nil
}

// StreamHead writes the head of a stream.
func (c *Call) StreamHead() error {
	_, err := c.Write([]byte("HTTP/1.1 200 OK\r\nServer: uvicorn\r\nContent-Type: text/event-stream; " +
		"charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"))
	return err
}

// Event writes one event as one chunk. Its text is its number and the time at which it was written: as with vLLM's,
// the text is all that differs from the event before.
func (c *Call) Event(n int, finish string) error {
	return c.Chunk(fmt.Sprintf(`data: {"id":"%s","object":"chat.completion.chunk","pad":"%s","model":"sim",`+
		`"choices":[{"index":0,"delta":{"content":"%05d t%d"},"finish_reason":%s}]}`+"\n\n",
		c.Mark(), c.pad(), n, time.Now().UnixNano(), finish))
}

// pad is no text of the answer, which a router may keep to learn from it.
func (c *Call) pad() string {
	n, _ := strconv.Atoi(c.Query.Get("pad"))
	return strings.Repeat("x", max(0, n))
}

// Chunk writes one chunk in one write.
func (c *Call) Chunk(data string) error {
	_, err := c.Write(fmt.Appendf(nil, "%x\r\n%s\r\n", len(data), data))
	return err
}

// Stream writes a whole stream: n events, [DONE], the last chunk.
func (c *Call) Stream(n int, gap time.Duration) bool {
	if c.StreamHead() != nil {
		return false
	}
	for i := range n {
		if i > 0 && gap > 0 && c.Wait(gap) {
			return false
		}
		finish := "null"
		if i == n-1 {
			finish = `"stop"`
		}
		if c.Event(i, finish) != nil {
			return false
		}
	}
	if c.Chunk("data: [DONE]\n\n") != nil {
		return false
	}
	c.ends()
	_, err := c.Write([]byte("0\r\n\r\n"))
	return err == nil
}

func (c *Call) ends() {
	if c.Ending != nil {
		c.Ending()
	}
}
