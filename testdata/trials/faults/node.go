package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// node is a worker whose faults can be chosen while it runs.
type node struct {
	wire.Worker
	addr   string
	fault  atomic.Pointer[string] // what it does with inference requests; "" = answers
	ill    atomic.Pointer[string] // what it does with /health: "" | 503 | slow
	posts  atomic.Int64
	open   atomic.Int64  // inference requests being answered
	most   atomic.Int64  // of open, so far
	slots  chan struct{} // nil: any number at a time; else so many, others wait
	blocks int           // of its KV cache, by its metrics; 0 = wire's

	mu   sync.Mutex           // guards seen, gone
	seen map[string]int       // marks of inference requests, and how often
	gone map[string]time.Time // marks of those whose client left before its answer, and when
	at   func(path string)
}

// faults of answers, for sets of them.
var brokenAnswers = []string{"reset", "cut", "cut-reset", "half-close", "garbage", "bad-chunk", "short", "no-http"}

func (l *lab) startNodes(n int) (all []*node, err error) {
	for range n {
		d, err := l.startNode(&node{})
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

func (l *lab) startNode(n *node) (*node, error) {
	none := ""
	n.fault.Store(&none)
	n.ill.Store(&none)
	n.seen, n.gone = map[string]int{}, map[string]time.Time{}
	n.Handle = n.handle
	n.Garbage = func(head []byte, err error) {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isNet(err) {
			return // given up half-way, as a client left
		}
		s := err.Error() + " " + string(head)
		l.badHead.Store(&s)
		l.bad.Add(1)
	}
	if err := n.Start("127.0.0.1:0"); err != nil {
		return nil, err
	}
	n.addr = n.Addr()
	l.nodes = append(l.nodes, n)
	return n, nil
}

func isNet(err error) bool {
	var n net.Error
	return errors.As(err, &n)
}

func addrs(nodes []*node) (a []string) {
	for _, n := range nodes {
		a = append(a, n.addr)
	}
	return a
}

func (n *node) set(fault string)    { n.fault.Store(&fault) }
func (n *node) setHealth(is string) { n.ill.Store(&is) }

// times returns how often a mark was seen.
func (n *node) times(mark string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seen[mark]
}

// left returns when the client of a request was seen to have left.
func (n *node) left(mark string) (at time.Time, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, ok = n.gone[mark]
	return at, ok
}

// answer answers, and records when it found that the client had left.
func (n *node) answer(c *wire.Call) bool {
	keep := c.Answer()
	if mark := c.Mark(); !keep && mark != "" {
		n.mu.Lock()
		n.gone[mark] = time.Now()
		n.mu.Unlock()
	}
	return keep
}

func (n *node) handle(c *wire.Call) bool {
	switch c.Path {
	case "/health", "/ping":
		switch *n.ill.Load() {
		case "503":
			return c.Plain(503, "text/plain", "")
		case "slow":
			c.Wait(10 * time.Second)
		}
		return c.Answer()
	case "/metrics":
		if n.blocks > 0 {
			return c.Plain(200, "text/plain; version=0.0.4", wire.Metrics(n.blocks))
		}
		return c.Answer()
	case "/v1/models":
		return c.Answer()
	}
	if c.Method == "GET" {
		return c.Plain(404, "application/json", `{"detail":"Not Found"}`) // /weight_info, as older engines answer it
	}
	n.posts.Add(1)
	if now := n.open.Add(1); now > n.most.Load() {
		n.most.Store(now) // may lose against a neighbour by one or two; the limit is judged over thousands
	}
	c.Ending = sync.OnceFunc(func() { n.open.Add(-1) }) // the router may send the next request once it has the last byte
	defer c.Ending()
	if mark := c.Mark(); mark != "" {
		n.mu.Lock()
		n.seen[mark]++
		n.mu.Unlock()
	}
	if n.at != nil {
		n.at(c.Path)
	}
	if n.slots != nil {
		n.slots <- struct{}{}
		defer func() { <-n.slots }()
	}
	f, streams := strings.CutPrefix(*n.fault.Load(), "streams-") // such faults leave plain answers alone
	if f == "" || streams && c.Query.Get("chunks") == "" {
		return n.answer(c)
	}
	return n.fail(c, f)
}

func (n *node) fail(c *wire.Call, fault string) bool {
	stream := c.Query.Get("chunks") != ""
	switch fault {
	case "500", "503":
		return c.Plain(map[string]int{"500": 500, "503": 503}[fault], "application/json",
			`{"error":{"message":"no","type":"InternalServerError","param":null,"code":500}}`)
	case "reset":
		reset(c)
	case "accept-only":
		c.Wait(time.Minute)
	case "silent":
		c.StreamHead()
		c.Event(0, "null")
		c.Wait(time.Minute)
	case "drain", "error-first", "abort-late", "error-late":
		if stream {
			return hide(c, fault)
		}
		return c.Plain(200, "application/json",
			fmt.Sprintf(`{"id":"%s","object":"chat.completion","created":1,"model":"sim","choices":[{"index":0,`+
				`"message":{"role":"assistant","content":""},"finish_reason":"abort"}],"usage":{"prompt_tokens":0,`+
				`"completion_tokens":0,"total_tokens":0}}`, c.Mark()))
	case "short":
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"id\":\"%s\"}",
			c.Mark())
	case "no-http":
		c.Write([]byte("\x00\x01\xff what is this\r\n\r\n\r\n"))
	default:
		n.failStream(c, fault)
	}
	return false
}

// failStream begins a stream and breaks it.
func (n *node) failStream(c *wire.Call, fault string) {
	c.StreamHead()
	c.Event(0, "null")
	switch fault {
	case "cut-reset":
		reset(c)
	case "half-close":
		if t, ok := c.Conn.(*net.TCPConn); ok {
			t.CloseWrite()
			c.Wait(2 * time.Second)
		}
	case "garbage":
		c.Chunk("\x00\xff\xfe{{{ data: \n\n\n: data: {\"id\":\n\n")
		c.Write([]byte("0\r\n\r\n"))
	case "bad-chunk":
		c.Write([]byte("zz\r\nnot a chunk\r\n"))
	}
}

// hide fails in a stream that ends well as HTTP: with nothing in it as vLLM after SIGTERM with --shutdown-timeout, by
// an error event as after a crash of the engine, by finish_reason "abort" as after SIGTERM without it.
func hide(c *wire.Call, fault string) bool {
	c.StreamHead()
	late := strings.HasSuffix(fault, "-late")
	if late {
		c.Event(0, "null")
		c.Event(1, "null")
		c.Wait(20 * time.Millisecond) // so that it is not one read with what follows
	}
	switch {
	case strings.HasPrefix(fault, "error"):
		c.Chunk(`data: {"error":{"message":"EngineCore encountered an issue.","type":"InternalServerError","param":null,` +
			`"code":500}}` + "\n\n")
	case late:
		c.Event(2, `"abort"`)
	}
	c.Chunk("data: [DONE]\n\n")
	_, err := c.Write([]byte("0\r\n\r\n"))
	return err == nil
}

func reset(c *wire.Call) {
	if t, ok := c.Conn.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
}
