package main

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/testdata/rig/wire"
)

func TestFigures(t *testing.T) {
	b := &bench{samples: map[[2]string][]float64{
		{"cpu/1KB", "nginx"}:         {10, 20, 30},
		{"cpu/1KB", "warmpath"}:      {15, 40, 39}, // by rounds 1.5, 2, 1.3
		{"cpu/1KB", "haproxy"}:       {11},
		{"cpu/1KB", "reverseproxy"}:  {60, 240, 234},
		{"sse/cpu", "warmpath"}:      {.5},
		{"memory/9000", "unrelated"}: {1},
	}}
	f := func(i int, want string) {
		t.Helper()
		got, _ := json.Marshal(b.figures(regexp.MustCompile("^cpu/1KB|^sse/cpu"))[i])
		if string(got) != want {
			t.Errorf("got %s want %s", got, want)
		}
	}
	f(0, `{"name":"cpu/1KB/nginx","value":20,"unit":"us/request","ok":true}`)
	f(4, `{"name":"cpu/1KB/warmpath over nginx","value":1.5,"unit":"ratio","target":1.9,"ok":true}`)
	f(5, `{"name":"cpu/1KB/reverseproxy over warmpath","value":6,"unit":"ratio","target":5,"ok":true}`)
	f(6, `{"name":"cpu/1KB-switches/nginx","value":null,"unit":"switches/request","ok":false,"missing":true}`)
	f(10, `{"name":"sse/cpu/nginx","value":null,"unit":"us/chunk","ok":false,"missing":true}`)
	f(12, `{"name":"sse/cpu/warmpath","value":0.5,"unit":"us/chunk","ok":true}`)
}

// TestRequests holds the bodies to what a worker must understand.
func TestRequests(t *testing.T) {
	body := func(request []byte) string {
		_, b, _ := strings.Cut(string(request), "\r\n\r\n")
		if !json.Valid([]byte(b)) {
			t.Errorf("no JSON: %.200s", b)
		}
		return b
	}
	for _, n := range []int{1 << 10, 32 << 10, 256 << 10} {
		next := renew(sized(n, chatPath, false))
		first := body(next())
		if d := len(first) - n; d < -64 || d > 64 {
			t.Errorf("a body of %d bytes has %d", n, len(first))
		}
		if first == body(next()) {
			t.Error("two requests are the same")
		}
	}
	said := ""
	for _, r := range turns() {
		now := strings.TrimSuffix(body(r), "]}")
		if !strings.HasPrefix(now, said) {
			t.Error("a turn does not go on from the one before")
		}
		said = now
	}
}

// TestReverseProxy has both roles answer, and chunk ages read, through Go's proxy.
func TestReverseProxy(t *testing.T) {
	w := wire.Worker{Handle: (*wire.Call).Answer}
	if err := w.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ages, err := readAges(w.Addr(), sized(1<<10, chatPath+"?chunks=5&gap=1", true), new(atomic.Int64))
	if err != nil || len(ages) != 5 {
		t.Fatalf("%d ages, %v", len(ages), err)
	}
	for _, a := range ages {
		if a < 0 || a > time.Minute {
			t.Errorf("an age of %v", a)
		}
	}
	if r, err := http.Get("http://" + w.Addr() + "/v1/models"); err != nil || r.StatusCode != 200 {
		t.Errorf("net/http does not understand the worker: %v", err)
	}
}
