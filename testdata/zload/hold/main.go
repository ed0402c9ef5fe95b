package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/testdata/databench/proc"
	"github.com/warmpath/warmpath/testdata/databench/wire"
)

func main() {
	n, _ := strconv.Atoi(os.Args[2])
	var l syscall.Rlimit
	syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l)
	l.Cur = l.Max
	syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
	dir, _ := os.MkdirTemp("", "zl")
	addr := proc.FreeAddr()
	wp, err := proc.Start(dir, "worker", addr, "/tmp/databench", "-role", "worker", "-listen", addr)
	if err != nil {
		panic(err)
	}
	defer wp.Stop()
	wp.Await("/health")
	r := proc.Router{Workers: []string{addr}}
	p, err := r.Start(dir, os.Args[1])
	if err != nil {
		panic(err)
	}
	defer p.Stop()
	before := p.RSS()
	body := `{"model":"sim","stream":true,"messages":[{"role":"user","content":"hello there my friend"}]}`
	req := wire.Post("/v1/chat/completions?chunks=1000000&gap=2000", body)
	var cs []net.Conn
	for range n {
		c, err := net.Dial("tcp", p.Addr)
		if err != nil {
			panic(err)
		}
		c.Write(req)
		b := make([]byte, 600)
		c.Read(b)
		cs = append(cs, c)
	}
	time.Sleep(8 * time.Second)
	fmt.Printf("RSS %.1f KB a stream, before %d MB\n", float64(p.RSS()-before)/1024/float64(n), before>>20)
	for _, k := range []string{"heap", "goroutine"} {
		resp, err := http.Get("http://" + p.Admin + "/debug/pprof/" + k)
		if err != nil {
			panic(err)
		}
		f, _ := os.Create("/tmp/hold." + k)
		io.Copy(f, resp.Body)
		f.Close()
	}
	resp, _ := http.Get("http://" + p.Admin + "/metrics")
	b, _ := io.ReadAll(resp.Body)
	os.WriteFile("/tmp/hold.metrics", b, 0o600)
	for _, c := range cs {
		c.Close()
	}
}
