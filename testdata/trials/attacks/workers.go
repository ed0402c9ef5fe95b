package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// attackWorkers tries what a worker can send: to the router, or through it to clients.
func attackWorkers(l *lab) error {
	l.way("explain-while-all-fail", func() (bool, string) { return explainFailures(l) })
	l.way("broken-before-first-byte", func() (bool, string) { return brokenEarly(l) })
	l.way("forged-fields", func() (bool, string) { return forged(l) })
	l.way("own-error-event", func() (bool, string) { return ownError(l, 1, "InternalServerError", 500) })
	l.way("own-refusal-in-stream", func() (bool, string) { return ownError(l, 0, "BadRequestError", 400) })
	if err := attackWithAnswers(l); err != nil {
		return err
	}
	l.way("endless-metrics", func() (bool, string) {
		return endlessPage(l, "/metrics",
			"# x\nvllm:num_requests_running 0\n")
	})
	l.way("endless-models", func() (bool, string) { return endlessPage(l, "/v1/models", `{"object":"list","data":[`) })
	l.way("hundred-thousand-models", func() (bool, string) { return manyModels(l) })
	return nil
}

// explainFailures asks for the reasons of a decision while every worker hangs up. Each answer is a 503.
func explainFailures(l *lab) (bool, string) {
	var at []string
	for range 2 {
		w, err := l.raws(func(*wire.Call) bool { return false })
		if err != nil {
			return false, err.Error()
		}
		at = append(at, w.Addr())
	}
	d, err := l.serve(rig.Router{Workers: at})
	if err != nil {
		return false, err.Error()
	}
	var got []int
	good := true
	for range 10 {
		a := wire.Once(d.Addr, wire.Request("POST", chatPath, chat("sim"), jsonType, "X-Warmpath-Explain: 1"))
		got = append(got, a.Status)
		good = good && a.Status == 503
	}
	trouble := l.end(d)
	return good && trouble == "", fmt.Sprintf("ten answers %v %s", got, trouble)
}

// brokenEarly has one of two workers break its answers before their first byte, after a sound head. The other one
// answers.
func brokenEarly(l *lab) (bool, string) {
	var broken atomic.Int64
	bad, err := l.raws(func(c *wire.Call) bool {
		heads := []string{
			"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "Transfer-Encoding: chunked\r\n\r\n", "Content-Length: 100000\r\n\r\n",
			"Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n", "Transfer-Encoding: chunked\r\n\r\n\r\n",
		}
		n := broken.Add(1)
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%s", heads[int(n)%len(heads)])
		return false
	})
	if err != nil {
		return false, err.Error()
	}
	good, err := l.echoes("sim")
	if err != nil {
		return false, err.Error()
	}
	d, err := l.serve(rig.Router{Pool: "strategy = \"roundrobin\"\n", Workers: []string{bad.Addr(), good.addr}})
	if err != nil {
		return false, err.Error()
	}
	served, one := 0, ""
	for range 20 {
		if a := wire.Once(d.Addr, wire.Request("POST", chatPath, chat("sim"), jsonType)); a.Status == 200 && a.Err == nil {
			served++
		} else {
			one = a.String()
		}
	}
	trouble := l.end(d)
	return served == 20 && broken.Load() > 0 && trouble == "",
		fmt.Sprintf("%d of 20 served while %d answers broke before their first byte; one of the others: %s %s", served,
			broken.Load(), one, trouble)
}

// forged has a worker send fields that are the router's to send, and one that its Connection field names.
func forged(l *lab) (bool, string) {
	w, err := l.raws(func(c *wire.Call) bool {
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Warmpath-Worker: "+
			"forged\r\nx-warmpath-reason: forged\r\n"+
			"Connection: keep-alive, X-Inner\r\nX-Inner: forged\r\nX-Outer: kept\r\nContent-Length: 2\r\n\r\n{}")
		return true
	})
	if err != nil {
		return false, err.Error()
	}
	d, err := l.serve(rig.Router{Workers: []string{w.Addr()}})
	if err != nil {
		return false, err.Error()
	}
	a := wire.Once(d.Addr, wire.Request("POST", chatPath, chat("sim"), jsonType))
	n := strings.Count(a.Text, "forged")
	return n == 0 && strings.Contains(a.Text, "x-outer: kept") &&
		l.end(d) == "", fmt.Sprintf("%d with %d forged fields: %q", a.Status, n, a.Text)
}

// ownError has a worker tell of an error in a stream, after so many events. The client reads the worker's own words.
func ownError(l *lab, events int, kind string, code int) (bool, string) {
	words := fmt.Sprintf(`data: {"error":{"message":"the cache ran out of 42 blocks","type":"%s","param":null,"code":%d}}`,
		kind, code)
	w, err := l.raws(func(c *wire.Call) bool {
		c.StreamHead()
		for i := range events {
			c.Event(i, "null")
		}
		c.Wait(50 * time.Millisecond) // two reads of the router
		c.Chunk(words + "\n\n")
		c.Chunk("data: [DONE]\n\n")
		c.Write([]byte("0\r\n\r\n"))
		return true
	})
	if err != nil {
		return false, err.Error()
	}
	d, err := l.serve(rig.Router{Workers: []string{w.Addr()}})
	if err != nil {
		return false, err.Error()
	}
	c, err := wire.Dial(d.Addr)
	if err != nil {
		return false, err.Error()
	}
	defer c.Close()
	c.Write(wire.Request("POST", chatPath, strings.Replace(chat("sim"), "{", `{"stream":true,`, 1), jsonType))
	a := c.ReadAnswer(true)
	n, body := strings.Count(string(a.Body), `"error"`), string(a.Body)
	return strings.Contains(body, words) && n == 1 &&
		l.end(d) == "", fmt.Sprintf("%d error events, end %v: %q", n, a.Err, body[max(0, len(body)-200):])
}

// endlessPage is a worker whose page of the router's own asking never ends. It says how much of it was taken.
func endlessPage(l *lab, path, start string) (bool, string) {
	var taken atomic.Int64
	bad := &raw{}
	bad.Handle = func(c *wire.Call) bool {
		if c.Path != path {
			return c.Answer()
		}
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", 1<<30, start)
		piece := []byte(strings.Repeat("x{a=\"b\"} 1\n", 6000))
		c.SetWriteDeadline(time.Now().Add(10 * time.Second))
		for range (1 << 30) / len(piece) {
			n, err := c.Write(piece)
			taken.Add(int64(n))
			if err != nil {
				break
			}
		}
		return false
	}
	if err := bad.Start("127.0.0.1:0"); err != nil {
		return false, err.Error()
	}
	l.others = append(l.others, bad)
	good, err := l.echoes("sim")
	if err != nil {
		return false, err.Error()
	}
	d, err := l.serve(rig.Router{Workers: []string{bad.Addr(), good.addr}})
	if err != nil {
		return false, err.Error()
	}
	was, used := d.RSS(), d.CPU()
	most := watchRSS(d, 3*time.Second)
	cpu := d.CPU() - used
	trouble := l.endAsked(d, "sim")
	return most-was < 64<<20 && cpu < 1500*time.Millisecond && trouble == "",
		fmt.Sprintf("%s of a page of 1 GB taken, %.2f s of CPU in 3 s, memory %s -> %s %s", mb(taken.Load()), cpu.Seconds(),
			mb(was), mb(most), trouble)
}

// manyModels is a worker that lists 100,000 models, 10 MB of them.
func manyModels(l *lab) (bool, string) {
	names := make([]string, 100_000)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", strings.Repeat("m", 20), i)
	}
	bad, err := l.echoes(names...)
	if err != nil {
		return false, err.Error()
	}
	good, err := l.echoes("sim")
	if err != nil {
		return false, err.Error()
	}
	d, err := l.serve(rig.Router{Workers: []string{bad.addr, good.addr}})
	if err != nil {
		return false, err.Error()
	}
	was := d.RSS()
	most := watchRSS(d, 2*time.Second)
	list := wire.Once(d.Addr, wire.Get("/v1/models"))
	trouble := l.endAsked(d, "sim")
	return most-was < 64<<20 && list.Status == 200 && trouble == "",
		fmt.Sprintf("a list of 100,000 models: memory %s -> %s; /v1/models %d of %d bytes %s", mb(was), mb(most),
			list.Status, len(list.Body), trouble)
}

// watchRSS returns the most memory that a daemon holds within d. It stops at 1 GB, before the machine suffers.
func watchRSS(p *rig.Proc, d time.Duration) (most int64) {
	for end := time.Now().Add(d); time.Now().Before(end) && most < 1<<30; time.Sleep(20 * time.Millisecond) {
		most = max(most, p.RSS())
	}
	return most
}

// endAsked asks for a chat, and ends the daemon.
func (l *lab) endAsked(d *rig.Proc, model string) string {
	a := wire.Once(d.Addr, wire.Request("POST", chatPath, chat(model), jsonType))
	trouble := l.end(d)
	if a.Status != 200 {
		return "a chat afterwards: " + a.String() + trouble
	}
	return trouble
}
