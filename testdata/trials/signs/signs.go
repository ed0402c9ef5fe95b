package main

import (
	"time"

	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// sign is what one engine does for a while.
type sign struct {
	name   string
	gated  bool  // the engine stands behind a gate
	serves bool  // the engine answers others meanwhile: no place of the fleet is lost
	every  int64 // post is for one of so many requests; 0 = all
	post   reply // instead of an answer
	begin  func(*site)
	end    func(*site)

	// health answers /health, so long after the begin; nil = as ever.
	health func(*wire.Call, time.Duration) (answered, keep bool)

	aborts  bool          // answers that have begun end with "abort"
	silent  bool          // requests are taken and not answered before the sign is over
	unknown time.Duration // for how long nobody can know that
	sleeps  bool          // vllm:engine_sleep_state tells
	paused  bool          // /is_paused tells
}

// reply answers a request, or leaves it to the engine.
type reply func(*site, *wire.Call) (answered, keep bool)

func (a *sign) each() int64 { return max(1, a.every) }

// some is one of so many requests, for signs that an engine shows now and then.
const some = 4

var signs = []sign{
	{name: "done", serves: true, every: some, post: func(_ *site, c *wire.Call) (bool, bool) {
		return engine.Streams(c), engine.Streams(c) && engine.Stream(c, engine.Done)
	}},
	{name: "abort", serves: true, every: some, post: abort},
	{name: "503", post: refuse(503)},
	{name: "503-some", serves: true, every: some, post: refuse(503)},
	{name: "429", post: refuse(429, "Retry-After: 5")},
	{name: "429-some", serves: true, every: some, post: refuse(429, "Retry-After: 5")},
	{name: "408", post: refuse(408)},
	{name: "529", post: refuse(529)},
	{name: "401", post: refuse(401)},
	{name: "403", post: refuse(403)},
	{name: "404", post: refuse(404)},
	{name: "422", post: refuse(422)},
	{name: "page", post: func(_ *site, c *wire.Call) (bool, bool) {
		return true, c.Plain(200, "text/html", "<html><body>Sign in</body></html>")
	}},
	{name: "accept-full", gated: true, begin: func(s *site) { s.gate.Shut() }, end: func(s *site) { s.gate.Open() }},
	{name: "connect-late", serves: true, gated: true, begin: func(s *site) { go s.flap() }},
	{name: "health-3s", serves: true, health: late(3 * time.Second)},
	{name: "health-10s", serves: true, health: late(10 * time.Second)},
	{name: "health-503-once", serves: true, health: func(c *wire.Call, after time.Duration) (bool, bool) {
		ill := after < 2200*time.Millisecond
		return ill, ill && c.Plain(503, "text/plain", "")
	}},
	{name: "health-503", health: ill},
	{name: "reset", post: reset},
	{name: "reset-some", serves: true, every: some, post: reset},
	{name: "cut", serves: true, every: some, post: cut},
	{name: "dead", health: ill, post: func(_ *site, c *wire.Call) (bool, bool) {
		return true, engine.Refuse(c, 500, "EngineCore encountered an issue. See stack trace (above) for the root cause.")
	}},
	{name: "killed", begin: func(s *site) { s.die() }, end: func(s *site) { s.rise() }},
	{name: "restarted", serves: true, begin: func(s *site) { s.die(); s.rise() }},
	{name: "drain", aborts: true, post: abort, begin: func(s *site) { go s.leave() }, end: func(s *site) { s.rise() }},
	{name: "sleep", silent: true, sleeps: true, unknown: 3 * time.Second},
	{name: "pause", silent: true, paused: true, unknown: 3 * time.Second},
	{name: "hang", silent: true, unknown: wire.Timeout},
}

func refuse(status int, fields ...string) reply {
	return func(_ *site, c *wire.Call) (bool, bool) { return true, engine.Refuse(c, status, "no", fields...) }
}

func reset(_ *site, c *wire.Call) (bool, bool) { return true, engine.Reset(c) }

func abort(_ *site, c *wire.Call) (bool, bool) {
	if engine.Streams(c) {
		return true, engine.Stream(c, engine.Role, engine.Delta(`{}`, `"abort"`), engine.Done)
	}
	return true, c.Plain(200, "application/json", engine.Chat("", "abort"))
}

// cut breaks an answer off: a stream after its first words, another one in its middle.
func cut(s *site, c *wire.Call) (bool, bool) {
	if engine.Streams(c) {
		_ = c.StreamHead()
		_ = c.Chunk(engine.Role + engine.Delta(`{"content":"word "}`, "null"))
	} else {
		_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"id\":"))
	}
	if c.Wait(200 * time.Millisecond) {
		return true, false
	}
	s.cut.Add(1)
	return true, engine.Reset(c)
}

func late(by time.Duration) func(*wire.Call, time.Duration) (bool, bool) {
	return func(c *wire.Call, _ time.Duration) (bool, bool) { return c.Wait(by), false }
}

func ill(c *wire.Call, _ time.Duration) (bool, bool) { return true, c.Plain(503, "text/plain", "") }

// flap accepts for 0.3 s, and then for 1.7 s nobody, until the sign is over.
func (s *site) flap() {
	_, _, over := s.now()
	for {
		s.gate.Shut()
		select {
		case <-over:
			s.gate.Open()
			return
		case <-time.After(1700 * time.Millisecond):
		}
		s.gate.Open()
		time.Sleep(300 * time.Millisecond)
	}
}

// leave ends a process that drains after 5 s, as vLLM does when its shutdown's time is over.
func (s *site) leave() {
	act, _, over := s.now()
	select {
	case <-over:
	case <-time.After(5 * time.Second):
	}
	if act.aborts {
		s.die()
	}
}
