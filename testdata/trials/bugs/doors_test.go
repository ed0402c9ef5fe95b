package bugs

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// What clients send at the door, and what they make of a refusal.
var doors = []wallCase{
	{"an-upgrade-of-responses-is-told-426", upgrade("/v1/responses")},
	{"an-upgrade-of-responses-with-a-query-is-told-426", upgrade("/v1/responses?model=sim")},
	{"a-head-of-the-root-is-200", headOfRoot},
	{"20-kb-of-header-pass", header(20 << 10)},
	{"30-kb-of-header-pass", header(30 << 10)},
	{"a-full-pool-says-retry-after-3-at-least", retryAfter("max_in_flight = 1\nqueue.max_requests = 0\n", "")},
	{"a-full-router-says-retry-after-3-at-least", retryAfter("", "max_in_flight = 2\n")},
}

// upgrade asks for a WebSocket, as Codex does. 426 makes it go on over HTTP; any other refusal ends its session.
func upgrade(path string) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		r := l.router(l.engines(1, nil)...)
		a := wire.Once(r.Addr, wire.Request("GET", path, "", "Connection: Upgrade", "Upgrade: websocket",
			"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="))
		return fmt.Sprintf("answered %d", a.Status), a.Status == 426
	}
}

// headOfRoot reads the status line alone: a HEAD has no body, whatever its length says.
func headOfRoot(l *lab) (string, bool) {
	r := l.router(l.engines(1, nil)...)
	c, err := wire.Dial(r.Addr)
	if err != nil {
		l.t.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Write(wire.Request("HEAD", "/", ""))
	h, err := c.ReadHead()
	return fmt.Sprintf("answered %d", h.Status), err == nil && h.Status == 200
}

// header sends a chat whose head is so long, as cookies of a single sign-on make it.
func header(bytes int) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		r := l.router(l.engines(1, nil)...)
		a := r.post(chatPath, chat("hi"), "Cookie: session="+strings.Repeat("x", bytes))
		return fmt.Sprintf("answered %d", a.Status), served(a)
	}
}

// retryAfter fills two workers with answers of 6 s and asks for one more. A client that comes back after a second, and
// again, has given up before there is room.
func retryAfter(pool, server string) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		r := l.routerWith(rig.Router{Pool: pool, Server: server}, l.engines(2, func(c *wire.Call) bool {
			return !c.Wait(6*time.Second) && engine.Echo(c)
		})...)
		var a wire.Answer
		every(500*time.Millisecond, 3, func(i int) wire.Answer {
			got := r.chat(fmt.Sprintf("%d question", i))
			if i == 2 {
				a = got
			}
			return got
		})
		seconds, _ := strconv.Atoi(field(a, "retry-after"))
		return fmt.Sprintf("answered %d, Retry-After %q", a.Status, field(a, "retry-after")), a.Status == 429 && seconds >= 3
	}
}
