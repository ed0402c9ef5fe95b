package upstream

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// cpu reports the CPU time of the process an operation, the test's worker included: unlike wall time it is the same on
// a busy machine. Call it before the loop and its result after.
func cpu(b *testing.B) (report func()) {
	used := func() int64 {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op") }
}

// terse is a worker that costs next to nothing: it looks for the end of a request of a known length and answers.
func terse(b *testing.B, answer string) string {
	return rawWorker(b, func(c *net.TCPConn, _ *bufio.Reader, _ int) {
		buf, reply := make([]byte, 64<<10), []byte(answer)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			for !bytes.HasSuffix(buf[:n], []byte("}")) {
				m, err := c.Read(buf[n:])
				if err != nil {
					return
				}
				n += m
			}
			c.Write(reply)
		}
	})
}

func smallAnswer() string {
	return "HTTP/1.1 200 OK\r\ndate: Sat, 21 Nov 2026 08:30:33 GMT\r\nserver: uvicorn\r\ncontent-length: 1024\r\n" +
		"content-type: application/json\r\n\r\n" + strings.Repeat("x", 1024)
}

var chat = []Field{
	{"Content-Type", "application/json"}, {"Authorization", "Bearer 0123456789abcdef0123456789abcdef"}, {"Accept", "application/json"},
	{"User-Agent", "OpenAI/Python 2.8.0"}, {"X-Stainless-Lang", "python"}, {"X-Stainless-Runtime", "CPython"}, {"Accept-Encoding", "identity"},
}

func BenchmarkSmall(b *testing.B) {
	u := client(b, Config{URL: terse(b, smallAnswer())})
	body := []byte(strings.Repeat(" ", 1023) + "}")
	p := make([]byte, 1024)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	run := func(b *testing.B, ctx context.Context) {
		b.ReportAllocs()
		defer cpu(b)()
		for b.Loop() {
			r, err := u.Do(ctx, &Request{Method: "POST", Path: "/v1/chat/completions", Header: chat, Body: body})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(r, p); err != nil {
				b.Fatal(err)
			}
			r.Close()
		}
	}
	b.Run("own", func(b *testing.B) { run(b, context.Background()) })
	b.Run("own, cancelable", func(b *testing.B) { run(b, ctx) })
	b.Run("net-http", func(b *testing.B) {
		b.ReportAllocs()
		defer cpu(b)()
		for b.Loop() {
			q, _ := http.NewRequestWithContext(ctx, "POST", "http://"+u.pool.address+"/v1/chat/completions", bytes.NewReader(body))
			for _, f := range chat {
				q.Header[f.Name] = []string{f.Value}
			}
			r, err := http.DefaultTransport.RoundTrip(q)
			if err != nil {
				b.Fatal(err)
			}
			io.ReadFull(r.Body, p)
			io.Copy(io.Discard, r.Body)
			r.Body.Close()
		}
	})
	b.Run("bare sockets", func(b *testing.B) { // what no client can beat
		c, err := net.Dial("tcp", u.pool.address)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		defer cpu(b)()
		out, in := append(make([]byte, 500), body...), make([]byte, 4096)
		for b.Loop() {
			c.Write(out)
			c.Read(in)
		}
	})
}

// BenchmarkEvents reads a stream that comes as fast as the worker can write, an event of 190 bytes a chunk and a write.
func BenchmarkEvents(b *testing.B) {
	event := "data: " + strings.Repeat("x", 182) + "\n\n"
	chunk := fmt.Appendf(nil, "%x\r\n%s\r\n", len(event), event)
	url := rawWorker(b, func(c *net.TCPConn, br *bufio.Reader, _ int) {
		if readRequest(br) != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for {
			if _, err := c.Write(chunk); err != nil {
				return
			}
		}
	})
	run := func(b *testing.B, body io.ReadCloser) {
		defer body.Close()
		p, reads, n := make([]byte, 4096), 0, 0
		defer cpu(b)()
		for b.Loop() {
			for n < len(event) {
				m, err := body.Read(p)
				if err != nil {
					b.Fatal(err)
				}
				n += m
				reads++
			}
			n -= len(event)
		}
		b.ReportMetric(float64(b.N)/float64(reads), "events/read")
	}
	b.Run("own", func(b *testing.B) {
		r, err := client(b, Config{URL: url}).Do(context.Background(), post)
		if err != nil {
			b.Fatal(err)
		}
		run(b, r)
	})
	b.Run("net-http", func(b *testing.B) {
		r, err := http.Post(url, "", nil)
		if err != nil {
			b.Fatal(err)
		}
		run(b, r.Body)
	})
}

// BenchmarkDecode is the framing alone: 20 events that came in one read.
func BenchmarkDecode(b *testing.B) {
	src := bytes.Repeat([]byte("be\r\n"+strings.Repeat("x", 190)+"\r\n"), 20)
	p := make([]byte, len(src))
	defer cpu(b)()
	for b.Loop() {
		copy(p, src)
		var c chunks
		if n, _, err := c.decode(p, p); n != 20*190 || err != nil {
			b.Fatal(n, err)
		}
	}
}

// BenchmarkOpenStreams reports the memory of a stream that is waited on; the worker's side is in it.
func BenchmarkOpenStreams(b *testing.B) {
	url := rawWorker(b, func(c *net.TCPConn, br *bufio.Reader, _ int) {
		if readRequest(br) == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
			c.Read(make([]byte, 1))
		}
	})
	const streams = 1000
	for b.Loop() {
		u := client(b, Config{URL: url})
		open := make([]*Response, streams)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range open {
			r, err := u.Do(context.Background(), post)
			if err != nil {
				b.Fatal(err)
			}
			io.ReadFull(r, make([]byte, 5))
			open[i] = r
		}
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/streams, "heap-B/stream")
		for _, r := range open {
			r.Close()
		}
	}
}
