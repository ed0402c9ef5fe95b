package exchange_test

import (
	"fmt"
	"math/bits"
	"slices"
	"time"
)

// mood is what an engine does to its requests for some time.
type mood uint8

const (
	good   mood = iota
	quits       // gives up what it accepts: a bare [DONE], or finish_reason "abort"
	fails       // 500
	breaks      // closes the connection without a byte
	denies      // 401, 403, 404 or 422 at once
	hangs       // answers /health and /metrics, and no request
	mute        // its health checks are late, its requests are not
	asleep      // says so on its page of metrics, and answers no request
	dying       // says that its engine is dead, and then closes its port
	moods
)

func (m mood) String() string {
	return [...]string{"good", "quits", "fails", "breaks", "denies", "hangs", "mute", "asleep", "dying"}[m]
}

// never is a time after the end of each fleet.
const never = time.Hour

// engine is a simulated worker. Times are since the fleet began.
type engine struct {
	*fleet
	place   int
	number  uint64 // at the pool
	theirs  bool   // the requests of others have all of its slots
	slots   int    // requests at a time, above which it says 503 or 429; 0 = no bound
	service time.Duration

	mood  mood
	part  float64 // of its requests that get the mood
	class string  // of requests that get the mood; "" = all
	since time.Duration

	listens     bool
	born        time.Duration // when its process began
	died        time.Duration // when the one before ended
	twin        bool          // a balancer over two processes stands behind the URL
	pages       int
	shownAsleep bool // by its last page. None is read of a silent worker
	deaths      int
	blocked     time.Duration // until when its event loop is busy
	silence     time.Duration // when it last ended a time in which it answered nothing
	ill         int           // health checks that it will answer by 503

	wires map[*wire]bool
	busy  int
	flow  time.Duration // the last byte of a good answer
	sent  int           // requests that it got
	bads  []bad         // requests that it failed
	lates int           // health checks without an answer since the last good one
	illOK bool          // its last health check but for one 503 was good
}

// bad is a request that an engine failed.
type bad struct {
	ask *ask
	how mood
	at  time.Duration
}

func (e *engine) name() string { return fmt.Sprint("w", e.place) }

// alive reports whether the engine's process has lived for a while, so that nothing that befell an earlier one is still
// under way.
func (e *engine) alive() bool {
	return e.listens && e.mood != dying && (e.died == 0 || e.now()-e.died > 20*time.Second)
}

// hung reports whether the engine has let its requests wait of late.
func (e *engine) hung() bool {
	return e.mood == hangs || e.mood == asleep || e.now() < max(e.blocked, e.silence)+2*time.Minute && max(e.blocked, e.silence) > 0
}

// nobodyDied reports whether no engine's process has ended of late.
func (f *fleet) nobodyDied() bool {
	return !slices.ContainsFunc(f.engines, func(e *engine) bool { return !e.alive() })
}

// serves reports whether the engine answers its requests. It does so also while its health checks are late.
func (e *engine) serves() bool { return e.mood == good || e.mood == mute }

// full reports whether the engine has as many requests as it takes.
func (e *engine) full() bool { return e.slots > 0 && (e.theirs || e.busy >= e.slots) }

// flows reports whether the engine works on its requests now.
func (e *engine) flows() bool {
	return e.now() >= e.blocked && e.mood != hangs && e.mood != asleep
}

// turn begins a mood, of a part of the engine's requests.
func (e *engine) turn(m mood, part float64) {
	if e.mood == hangs || e.mood == asleep {
		e.silence = e.now()
	}
	e.mood, e.part, e.class, e.since = m, part, "", e.now()
	if m == denies && e.chance(.3) {
		e.class = chat
	}
	e.tell("w%d turns to %v, %.2f", e.place, m, part)
}

// die ends the engine's process and begins a new one later.
func (e *engine) die(away time.Duration) {
	if !e.listens {
		return
	}
	e.listens, e.died = false, e.now()
	e.mood, e.part, e.blocked, e.busy, e.illOK = good, 0, 0, 0, false
	e.deaths++
	e.tell("w%d dies for %v", e.place, away)
	for w := range e.wires {
		w.broken, w.came = true, e.now()
		if w.ask != nil && (len(w.rest) > 0 || w.ask.kind == lethal) {
			w.ask.begun++
			w.ask.broken++
		}
		w.kick()
	}
	clear(e.wires)
	e.after(away, func() {
		e.listens, e.born, e.since = true, e.now(), e.now()
		e.illOK, e.bads, e.shownAsleep = false, nil, false
		e.tell("w%d is back", e.place)
	})
}

// piece is a part of an answer.
type piece struct {
	after time.Duration // the request came
	text  string
}

// take answers a request on a wire.
func (e *engine) take(w *wire, a *ask) {
	e.sent++
	a.tried |= 1 << e.place
	w.ask, w.came, w.sick = a, e.now(), e.suffers(a)
	w.rest = e.answer(w, a)
	e.tell("w%d (%v) gets %s, kind %d, used %v", e.place, e.mood, a.id, a.kind, w.used)
	if len(w.rest) > 0 && !w.sick {
		e.busy++
		w.held = true
	}
	switch {
	case w.sick:
	case a.kind == lethal:
		w.rest = []piece{{time.Duration(1+e.draw(50)) * time.Millisecond, "it comes to this"}}
	case a.kind == blocking && e.flows():
		a.blocked |= 1 << e.place
		e.blocked = e.now() + a.length
		w.rest = []piece{{a.length + time.Millisecond, e.whole(a)}}
	}
}

// kill is what a lethal request does when its turn comes.
func (e *engine) kill(w *wire) {
	if !e.twin {
		*w.ask.ended++
		e.die(e.between(.5, 15))
		return
	}
	if !w.used { // else the transport repeats it at once, as the worker may just have closed an idle connection
		*w.ask.ended++
	}
	w.broken = true
	w.ask.failed(e, breaks)
}

// suffers draws whether the engine fails a request.
func (e *engine) suffers(a *ask) bool {
	switch a.kind {
	case unlucky:
		return true
	case lethal:
		return false
	}
	return e.mood != good && e.mood != mute && (e.class == "" || e.class == a.path) && e.chance(e.part)
}

// answer returns what the engine writes.
func (e *engine) answer(w *wire, a *ask) []piece {
	what := e.mood
	if a.kind == unlucky {
		what = a.fate
	}
	if e.full() {
		a.crowded++
		w.sick = true
		return []piece{{time.Millisecond, whole([]int{503, 429}[e.draw(2)], `{"error":{"message":"busy"}}`)}}
	}
	if !w.sick {
		return e.works(a)
	}
	defer func() { a.failed(e, what) }()
	switch what {
	case quits:
		return []piece{{e.service / 2, gaveUp[a.streams][e.draw(2)]}}
	case fails:
		return []piece{{5 * time.Millisecond, whole(500, `{"error":{"message":"bug","code":500}}`)}}
	case denies:
		status := []int{401, 403, 404, 422}[e.draw(4)]
		return []piece{{time.Millisecond, whole(status, `{"error":{"message":"no"}}`)}}
	case dying:
		e.illOK = false
		e.after(e.between(0, 2), func() { e.die(e.between(2, 15)) })
		return []piece{{time.Millisecond, whole(500, `{"error":{"message":"EngineCore encountered an issue"}}`)}}
	case breaks:
		w.broken = true
		return nil
	}
	return e.works(a) // late: until then it hangs or sleeps
}

// works returns a good answer.
func (e *engine) works(a *ask) []piece {
	took := max(e.service, a.length)
	if !a.streams {
		return []piece{{took, e.whole(a)}}
	}
	return []piece{{5 * time.Millisecond, streamHead + chunk(roleEvent)}, {took / 3, chunk(wordEvent)}, {took * 2 / 3, chunk(wordEvent)},
		{took, chunk(stopEvent) + chunk(doneEvent) + "0\r\n\r\n"}}
}

func (e *engine) whole(a *ask) string {
	switch {
	case a.streams:
		return streamHead + chunk(roleEvent) + chunk(wordEvent) + chunk(stopEvent) + chunk(doneEvent) + "0\r\n\r\n"
	case a.path == embeddings:
		return whole(200, `{"object":"list","data":[{"index":0,"embedding":[1]}],"usage":{"prompt_tokens":1}}`)
	}
	return whole(200, `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}]}`)
}

// realBads counts the different requests that the engine failed within ten minutes and whose fault is not known to be
// their own.
func (e *engine) realBads() int {
	seen := map[*ask]bool{}
	for _, b := range e.bads {
		if e.now()-b.at < 10*time.Minute && !(b.ask.over && count(b.ask.failedAt[b.how]) > 1) {
			seen[b.ask] = true
		}
	}
	return len(seen)
}

const (
	roleEvent  = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n"
	wordEvent  = `data: {"choices":[{"index":0,"delta":{"content":"yes"}}]}` + "\n\n"
	stopEvent  = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	abortEvent = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"abort"}]}` + "\n\n"
	doneEvent  = "data: [DONE]\n\n"
	streamHead = "HTTP/1.1 200 x\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)

// gaveUp are the ways in which an answer shows that its worker gave the request up, by whether it is a stream.
var gaveUp = map[bool][2]string{
	true: {streamHead + chunk(roleEvent) + chunk(doneEvent) + "0\r\n\r\n",
		streamHead + chunk(roleEvent) + chunk(abortEvent) + chunk(doneEvent) + "0\r\n\r\n"},
	false: {whole(200, `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"abort"}]}`),
		whole(200, `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":"abort"}]}`)},
}

func chunk(event string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(event), event) }

func whole(status int, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// count returns how many places are in a set of them.
func count(set uint16) int { return bits.OnesCount16(set) }
