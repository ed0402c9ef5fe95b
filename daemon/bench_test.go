package daemon

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// terse is a worker that costs next to nothing and allocates nothing.
func terse(b *testing.B) (url string) {
	answer := func(body string) []byte {
		return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-length: %d\r\ncontent-type: application/json\r\n\r\n%s", len(body), body)
	}
	models := answer(`{"object":"list","data":[{"id":"m","object":"model"}]}`)
	chat := answer(`{"id":"chatcmpl-1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant",` +
		`"content":"Yes."},"finish_reason":"stop"}],"usage":{"prompt_tokens":250,"completion_tokens":2,"total_tokens":252}}`)
	return "http://" + porttest.Serve(b, func(c *net.TCPConn) {
		defer c.Close()
		buf := make([]byte, 512<<10)
		for n := 0; ; {
			m, err := c.Read(buf[n:])
			if err != nil {
				return
			}
			switch n += m; {
			case buf[0] == 'G' && bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")):
				c.Write(models)
			case buf[0] == 'P' && bytes.HasSuffix(buf[:n], []byte("}]}")):
				c.Write(chat)
			default:
				continue
			}
			n = 0
		}
	})
}

// BenchmarkRequest is a chat of so many bytes, from the client's write to its read of the whole answer, over
// loopback: the allocations are the daemon's alone, the time is also the client's and the worker's.
func BenchmarkRequest(b *testing.B) {
	addr := start(b, settings("prefixaware", terse(b)), 1).Addr()
	for _, size := range []int{1, 32, 256} {
		b.Run(fmt.Sprint(size, "KB"), func(b *testing.B) { ask(b, addr, size<<10) })
	}
}

// BenchmarkShadow is the same chat of 4 KB with a shadow beside the strategy that serves, and without one.
func BenchmarkShadow(b *testing.B) {
	url := terse(b)
	alone := start(b, settings("prefixaware", url), 1).Addr()
	beside := start(b, settings("prefixaware", url)+"[[pools.shadow]]\nstrategy = \"roundrobin\"\n", 1).Addr()
	b.Run("alone", func(b *testing.B) { ask(b, alone, 4<<10) })
	b.Run("beside", func(b *testing.B) { ask(b, beside, 4<<10) })
}

func ask(b *testing.B, addr string, size int) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	body := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("lorem ipsum ", size/12) + `"}]}`
	request := fmt.Appendf(nil, "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	answer, n := make([]byte, 4096), 0
	conn.Write(request)
	for !bytes.HasSuffix(answer[:n], []byte("}}")) {
		m, err := conn.Read(answer[n:])
		if n += m; err != nil {
			b.Fatal(err, string(answer[:n]))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		conn.Write(request)
		if _, err := io.ReadFull(conn, answer[:n]); err != nil {
			b.Fatal(err)
		}
	}
}
