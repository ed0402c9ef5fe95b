package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// flood writes piece until it was taken so often or the router hangs up.
func flood(start, piece string, times int) func(*wire.Call) {
	return func(c *wire.Call) {
		c.SetWriteDeadline(time.Now().Add(15 * time.Second))
		if _, err := c.Write([]byte(start)); err != nil {
			return
		}
		block := []byte(strings.Repeat(piece, 1+64<<10/len(piece)))
		for sent := 0; sent < times*len(piece); sent += len(block) {
			if _, err := c.Write(block); err != nil {
				return
			}
		}
	}
}

const (
	okHead     = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)

// lies are answers that a router may misread: each has a second answer, LIE, hidden behind a length or a line end.
var lies = map[string]string{
	"two lengths":        okHead + "Content-Length: 2\r\nContent-Length: 5\r\n\r\n{}LIE",
	"length and chunks":  okHead + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\nLIE",
	"negative length":    okHead + "Content-Length: -2\r\n\r\n{}LIE",
	"length overflows":   okHead + "Content-Length: 18446744073709551618\r\n\r\n{}LIE",
	"length with plus":   okHead + "Content-Length: +2\r\n\r\n{}LIE",
	"CR in a field":      okHead + "X-A: b\rContent-Length: 0\r\nContent-Length: 2\r\n\r\n{}LIE",
	"NUL in a field":     okHead + "X-A: b\x00\r\nContent-Length: 2\r\n\r\n{}LIE",
	"folded":             okHead + "X-A: b\r\n c\r\nContent-Length: 2\r\n\r\n{}LIE",
	"HTTP/0.9":           "LIE",
	"HTTP/2.0":           "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\n{}LIE",
	"body on 204":        "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nLIE",
	"body on 304":        "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\nLIE",
	"101":                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: lie\r\n\r\nLIE",
	"more than its word": okHead + "Content-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nLIE",
	"bad chunk size":     okHead + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\nLIE",
}

// floods are answers that never end, or hold more than anybody wants.
var floods = map[string]func(*wire.Call){
	"endless header":   flood("HTTP/1.1 200 OK\r\n", "X-A: b\r\n", 16<<20),
	"endless field":    flood("HTTP/1.1 200 OK\r\nX-A: ", "b", 128<<20),
	"endless interims": flood("", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 4<<20),
	"endless event":    flood(streamHead, "8\r\ndata: xx\r\n", 12<<20),
	"endless comments": flood(streamHead, "4\r\n: x\n\r\n", 4<<20),
	"endless trailer":  flood(okHead+"Transfer-Encoding: chunked\r\n\r\n0\r\n", "X-A: b\r\n", 16<<20),
	"endless body":     flood(okHead+"Content-Length: 134217728\r\n\r\n", strings.Repeat("x", 1024), 128<<10),
	"many choices": flood(streamHead+"ffffff0\r\ndata: {\"choices\":[", `{"index":0,"delta":{"content":"x"}},`,
		200_000),
	"deep":               flood(okHead+"Content-Length: 16777216\r\n\r\n", "[", 16<<20),
	"endless chunk size": flood(okHead+"Transfer-Encoding: chunked\r\n\r\n", "0", 64<<20),
}

// attackWithAnswers has one worker play all lies and floods. Sound answers in between hold their own bytes.
func attackWithAnswers(l *lab) error {
	if !l.wants("lying-answers", "endless-answers") {
		return nil
	}
	var play atomic.Pointer[func(*wire.Call)]
	w, err := l.raws(func(c *wire.Call) bool {
		if f := play.Load(); f != nil {
			(*f)(c)
			return false
		}
		return c.Answer()
	})
	if err != nil {
		return err
	}
	// The breaker would stop asking a worker that only lies.
	d, err := l.serve(rig.Router{Pool: "panic = true\n", Workers: []string{w.Addr()}})
	if err != nil {
		return err
	}
	n := 0
	try := func(f func(*wire.Call), stream string) (a wire.Answer, sound bool) {
		play.Store(&f)
		n++
		mark := fmt.Sprintf("m%d", n)
		body := strings.Replace(chat("sim"), "{", `{"stream":`+stream+`,`, 1)
		a = within(20*time.Second, d.Addr, wire.Request("POST", chatPath+"?mark="+mark, body, jsonType))
		play.Store(nil)
		return a, rig.Eventually(5*time.Second, func() bool {
			got := wire.Once(d.Addr, wire.Request("POST", chatPath+"?mark="+mark+"x", chat("sim"), jsonType))
			return got.Status == 200 && strings.Contains(string(got.Body), `"id":"`+mark+`x"`) &&
				!strings.Contains(string(got.Body), "LIE")
		})
	}
	l.way("lying-answers", func() (bool, string) {
		var bad []string
		for name, text := range inOrder(lies) {
			a, sound := try(func(c *wire.Call) { c.Write([]byte(text)) }, "false")
			if !sound || strings.Contains(string(a.Body), "LIE") {
				bad = append(bad, fmt.Sprintf("%s: %s, sound afterwards %v", name, a.String(), sound))
			}
		}
		return len(bad) == 0, fmt.Sprintf("%d lies, %d passed on or not got over: %q", len(lies), len(bad), bad)
	})
	l.way("endless-answers", func() (bool, string) {
		was := d.RSS()
		var bad []string
		most := mostRSS(d)
		for name, f := range inOrder(floods) {
			if _, sound := try(f, "true"); !sound {
				bad = append(bad, name)
			}
		}
		peak := most()
		return len(bad) == 0 && peak-was < 128<<20, fmt.Sprintf("%d floods, memory %s -> %s at most; not got over: %q",
			len(floods), mb(was), mb(peak), bad)
	})
	return nil
}

// mostRSS watches a daemon's memory until the returned function is called, which tells the most that it was. The
// daemon is ended above 1 GB, before the machine suffers; its topic tells of that.
func mostRSS(d *rig.Proc) (stop func() int64) {
	quit, most := make(chan struct{}), make(chan int64)
	go func() {
		seen := int64(0)
		for {
			select {
			case <-quit:
				most <- seen
				return
			case <-time.After(20 * time.Millisecond):
				seen = max(seen, d.RSS())
				if seen > 1<<30 && !d.Exited() {
					d.Stop()
				}
			}
		}
	}()
	return func() int64 { close(quit); return <-most }
}
