package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/databench/proc"
	"github.com/warmpath/warmpath/testdata/databench/wire"
)

func main() {
	size := flag.Int("size", 1024, "")
	stream := flag.Bool("stream", false, "")
	secs := flag.Int("s", 6, "")
	conns := flag.Int("c", 8, "")
	bin := flag.String("bin", "bin/warmpath", "")
	flag.Parse()
	dir, _ := os.MkdirTemp("", "zl")
	w := &wire.Worker{}
	_ = w
	addr := proc.FreeAddr()
	wp, err := proc.Start(dir, "worker", addr, "/tmp/databench", "-role", "worker", "-listen", addr)
	if err != nil {
		panic(err)
	}
	defer wp.Stop()
	wp.Await("/health")
	r := proc.Router{Workers: []string{addr}}
	p, err := r.Start(dir, *bin)
	if err != nil {
		panic(err)
	}
	defer p.Stop()
	body := fmt.Sprintf(`{"model":"sim","stream":%v,"messages":[{"role":"user","content":"%s"}]}`, *stream, strings.Repeat("lorem ipsum ", *size/12))
	path := "/v1/chat/completions"
	if *stream {
		path += "?chunks=20000"
	}
	req := wire.Post(path, body)
	var n, chunks atomic.Int64
	go func() {
		time.Sleep(time.Second)
		resp, err := http.Get("http://" + p.Admin + fmt.Sprintf("/debug/pprof/profile?seconds=%d", *secs-2))
		if err != nil {
			fmt.Println(err)
			return
		}
		f, _ := os.Create("/tmp/wp.cpu")
		io.Copy(f, resp.Body)
		f.Close()
	}()
	u0 := p.CPU()
	wire.Closed(context.Background(), p.Addr, *conns, time.Duration(*secs)*time.Second, func(c *wire.Client, i int) {
		a := c.Do(req, *stream)
		if a.Err != nil || a.Status != 200 {
			fmt.Println("ERR", a.Status, a.Err)
			time.Sleep(100 * time.Millisecond)
			return
		}
		n.Add(1)
		chunks.Add(int64(strings.Count(string(a.Body), "\n\n")))
	})
	u1 := p.CPU()
	fmt.Printf("%d requests, %.2f us/request, %d chunks %.3f us/chunk\n", n.Load(), float64((u1-u0).Microseconds())/float64(n.Load()), chunks.Load(), float64((u1-u0).Nanoseconds())/1e3/float64(max(1, chunks.Load())))
	time.Sleep(300 * time.Millisecond)
	if resp, err := http.Get("http://" + p.Admin + "/debug/pprof/allocs"); err == nil {
		f, _ := os.Create("/tmp/wp.mem")
		io.Copy(f, resp.Body)
		f.Close()
	}
}
