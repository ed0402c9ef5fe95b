package daemon

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The KV cache is there with its door, and counted; without a door there is nothing of it.
func TestKVCache(t *testing.T) {
	d := start(t, settings("roundrobin", "http://127.0.0.1:1")+"[kv_cache]\nresp = '127.0.0.1:0'\nmax_bytes = 33554432\n", 0)
	c, err := net.Dial("tcp", d.kvCache.RESPAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	io.WriteString(c, "SET chunk "+strings.Repeat("x", 1000)+"\r\nEXISTS chunk\r\nGET nothing\r\n")
	in := bufio.NewReader(c)
	for _, want := range []string{"+OK", ":1", "$-1"} {
		if line, err := in.ReadString('\n'); strings.TrimSpace(line) != want {
			t.Fatalf("got %q, %v; want %s", line, err, want)
		}
	}
	metrics := func(d *running) string {
		r, err := http.Get("http://" + d.AdminAddr() + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		return string(b)
	}
	got := metrics(d)
	for _, want := range []string{`warmpath_kv_puts_total 1`, `warmpath_kv_gets_total{result="miss",tier="all"} 1`,
		`warmpath_kv_bytes{what="values"} 1000`, `warmpath_kv_held{why="pinned"} 1`,
		`warmpath_kv_door_connections{door="resp"} 1`} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if err := d.stop(); err != nil {
		t.Error(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the door is open after the end")
	}
	if got := metrics(start(t, settings("roundrobin", "http://127.0.0.1:1"), 0)); strings.Contains(got, "warmpath_kv_") {
		t.Error("a KV cache without a door is counted")
	}
}
