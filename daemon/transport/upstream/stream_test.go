package upstream

import (
	"bufio"
	"context"
	"io"
	"net"
	"runtime"
	"testing"
)

// A stream that is waited on costs no goroutine, and less memory than a page.
func TestOpenStreamsAreSmall(t *testing.T) {
	const streams = 300
	url := rawWorker(t, func(c *net.TCPConn, br *bufio.Reader, _ int) {
		if readRequest(br) == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
			c.Read(make([]byte, 1))
		}
	})
	u := client(t, Config{URL: url})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // the first one only ages what is in pools
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	open, before, goroutines := make([]*Response, streams), heap(), runtime.NumGoroutine()
	for i := range open {
		r, err := u.Do(ctx, post)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if n, err := r.Read(make([]byte, 64)); n != 5 || err != nil {
			t.Fatalf("read %d, %v", n, err)
		}
		open[i] = r
	}
	if each := (int(heap()) - int(before)) / streams; each > 4<<10 {
		t.Errorf("a stream holds %d bytes; want at most 4096", each)
	}
	if more := runtime.NumGoroutine() - goroutines - streams; more > 20 { // the worker has one a stream
		t.Errorf("%d goroutines beside the worker's; want none", more)
	}
	runtime.KeepAlive(open)
}
