package bugs

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// An engine answers a request that failed before its first token, was aborted by its id or was ignored with an end and
// nothing before it. That is the request's own misfortune. A fleet of workers that each answer it so loses nobody by it.
var misfortunes = []wallCase{
	{"one-bare-done-takes-no-worker-from-others", odd(chatPath, streamed, engine.Done)},
	{"one-role-and-done-takes-no-worker-from-others", odd(chatPath, streamed, engine.Role, engine.Done)},
	{"one-aborted-stream-takes-no-worker-from-others", odd(chatPath, streamed, engine.Role,
		engine.Delta(`{}`, `"abort"`), engine.Done)},
	{"one-empty-200-takes-no-worker-from-others", odd(chatPath, "", "")},
	{"one-aborted-chat-takes-no-worker-from-others", odd(chatPath, "", engine.Chat("", "abort"))},
	{"one-bare-done-of-completions-takes-no-worker-from-others", odd("/v1/completions", streamed, engine.Done)},
	{"one-message-without-reason-takes-no-worker-from-others", odd("/v1/messages", "", `{"id":"msg_1","type":"message",`+
		`"role":"assistant","model":"sim","content":[],"stop_reason":null,"usage":{"input_tokens":5,"output_tokens":0}}`)},
	{"one-empty-stream-of-messages-takes-no-worker-from-others", odd("/v1/messages", streamed,
		named(`"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"sim","content":[],`+
			`"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":0}}`), named(`"type":"message_stop"}`))},
	{"one-cancelled-response-takes-no-worker-from-others", odd("/v1/responses", "", `{"id":"resp_1","object":"response",`+
		`"created_at":1,"status":"cancelled","model":"sim","output":[],"usage":null}`)},
	{"one-odd-answer-a-second-refuses-no-other-request", oddNowAndThen},
	{"one-bare-done-at-a-lone-worker-refuses-nobody", oddAlone},
	{"a-500-of-every-worker-reaches-the-client-and-marks-nobody", failsEverywhere(500)},
	{"a-400-of-every-worker-reaches-the-client-and-marks-nobody", failsEverywhere(400)},
	{"a-reset-by-every-worker-marks-nobody", resetEverywhere},
	{"a-worker-that-aborts-all-is-left-alone", trueDrain},
}

// named is an event of messages or responses, given its JSON without the first brace; its name is its type.
func named(fields string) string {
	kind, _, _ := strings.Cut(strings.TrimPrefix(fields, `"type":"`), `"`)
	if !strings.HasSuffix(fields, "}") || strings.Count(fields, "{") >= strings.Count(fields, "}") {
		fields += "}"
	}
	return "event: " + kind + "\ndata: {" + fields + "\n\n"
}

// odd plays three requests that every one of three workers answers so, and then good ones for two seconds. The answer of
// a worker reaches the client of the odd request.
func odd(path, streaming string, pieces ...string) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		r := l.router(l.engines(3, oddly(pieces...))...)
		clients(1, 6, func(_, i int) wire.Answer { return r.chat(fmt.Sprintf("warm %d", i)) })
		ends := clients(1, 3, func(_, i int) wire.Answer { return r.post(path, oddBody(i, streaming)) })
		good := every(100*time.Millisecond, 20, func(i int) wire.Answer { return r.chat(fmt.Sprintf("good %d", i)) })
		whole := 0
		for _, a := range ends {
			if served(a) && string(a.Body) == strings.Join(pieces, "") {
				whole++
			}
		}
		return fmt.Sprintf("%d of 20 good requests refused; %d of 3 odd answers as the worker wrote them", refused(good), whole),
			refused(good) == 0 && whole == 3
	}
}

// oddBody is a request that oddly answers so; it fits every endpoint.
func oddBody(i int, streaming string) string {
	fields := []string{`"odd":true`, `"prompt":"odd"`, `"input":"odd"`, `"max_tokens":9`}
	if streaming != "" {
		fields = append(fields, streaming)
	}
	return chat(fmt.Sprintf("odd %d", i), fields...)
}

// oddly answers a request that says "odd" with these pieces, and others well.
func oddly(pieces ...string) func(*wire.Call) bool {
	return func(c *wire.Call) bool {
		switch {
		case !strings.Contains(string(c.Text), `"odd":true`):
			return engine.Echo(c)
		case engine.Streams(c):
			return engine.Stream(c, pieces...)
		}
		return c.Plain(200, "application/json", strings.Join(pieces, ""))
	}
}

func oddNowAndThen(l *lab) (string, bool) {
	r := l.router(l.engines(3, oddly(engine.Role, engine.Delta(`{}`, `"abort"`), engine.Done))...)
	good := every(50*time.Millisecond, 120, func(i int) wire.Answer {
		if i%20 == 10 {
			r.post(chatPath, oddBody(i, streamed))
		}
		return r.chat(fmt.Sprintf("good %d", i))
	})
	return fmt.Sprintf("%d of 120 good requests refused, one aborted each second", refused(good)), refused(good) == 0
}

func oddAlone(l *lab) (string, bool) {
	r := l.router(l.engines(1, oddly(engine.Done))...)
	r.post(chatPath, oddBody(0, streamed))
	good := every(100*time.Millisecond, 20, func(i int) wire.Answer { return r.chat(fmt.Sprintf("good %d", i)) })
	return fmt.Sprintf("%d of 20 good requests refused", refused(good)), refused(good) == 0
}

// failsEverywhere sends ten requests that every one of three workers fails, and good ones after each. The client reads the
// worker's own words.
func failsEverywhere(code int) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		return odder(l, func(c *wire.Call) bool { return engine.Refuse(c, code, "index 151936 is out of bounds") },
			func(a wire.Answer) bool { return a.Status == code && strings.Contains(string(a.Body), "out of bounds") })
	}
}

func resetEverywhere(l *lab) (string, bool) {
	return odder(l, engine.Reset, func(a wire.Answer) bool { return a.Status >= 500 })
}

func odder(l *lab, fail func(*wire.Call) bool, right func(wire.Answer) bool) (string, bool) {
	r := l.router(l.engines(3, func(c *wire.Call) bool {
		if strings.Contains(string(c.Text), `"odd":true`) {
			return fail(c)
		}
		return engine.Echo(c)
	})...)
	told, bad := 0, 0
	for i := range 10 {
		if right(r.post(chatPath, oddBody(i, ""))) {
			told++
		}
		bad += refused(clients(1, 3, func(_, k int) wire.Answer { return r.chat(fmt.Sprintf("%d %d good", i, k)) }))
	}
	ejected := r.warned("eject")
	return fmt.Sprintf("%d of 10 clients told what the worker said; %d of 30 good requests refused, %d workers ejected", told,
		bad, ejected), told == 10 && bad == 0 && ejected == 0
}

// trueDrain is a control: one of three workers shuts down, so all that it gets is aborted, and others answer the same.
func trueDrain(l *lab) (string, bool) {
	var asked atomic.Int64
	draining := l.engine(&engine.Engine{Post: func(c *wire.Call) bool {
		asked.Add(1)
		return c.Plain(200, "application/json", engine.Chat("", "abort"))
	}})
	r := l.router(append(l.engines(2, nil), draining)...)
	aborted := 0
	for _, a := range clients(4, 20, func(k, i int) wire.Answer { return r.chat(fmt.Sprintf("good %d %d", k, i)) }) {
		if !served(a) || strings.Contains(string(a.Body), "abort") {
			aborted++
		}
	}
	return fmt.Sprintf("%d of 80 requests aborted; it was asked %d times", aborted, asked.Load()),
		aborted == 0 && asked.Load() <= 12
}
