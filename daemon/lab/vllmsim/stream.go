package vllmsim

import (
	"net/http"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// stream is one request's answer in events.
type stream struct {
	task
	sse  sse
	sent []int // tokens sent of each choice, -1 before its first event
}

// wholeSent in stream.sent marks a choice whose last event has gone out.
const wholeSent = 1 << 30

// answerStream sends the header at once, as uvicorn does, and then an event whenever the engine shows new tokens.
func answerStream(w http.ResponseWriter, r *http.Request, t task, mode string) {
	s := &stream{task: t, sse: sse{w: w}, sent: make([]int, len(t.choices))}
	for i := range s.sent {
		s.sent[i] = -1
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	if mode == FaultShort {
		w.Header().Set("Content-Length", "1048576")
	}
	w.WriteHeader(http.StatusOK)
	http.NewResponseController(w).Flush()
	v := &s.sse
	t.form.open(v)
	if t.unloaded != nil {
		t.form.fail(v, t.unloaded)
		return
	}
	for open := len(t.choices); open > 0; {
		select {
		case <-t.notify:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler) // no clean end for whoever closed only half
		}
		open = s.sendNew()
		if v.err != nil || mode != "" && s.sent[0] > 0 && breakStream(v, t.form, mode) {
			return
		}
	}
	if t.ready != nil {
		t.ready()
	}
	t.form.close(v)
}

// sendNew sends what is new of every choice, and counts those that go on.
func (s *stream) sendNew() (open int) {
	for i, c := range s.choices {
		end := c.finish() // before tokens, which are stored first
		n := c.tokens()
		if end == engine.Unfinished {
			open++
		}
		sent := s.sent[i]
		if n <= max(sent, 0) && (end == engine.Unfinished || sent == wholeSent || n == 0) {
			continue
		}
		s.form.token(&s.sse, piece{choice: i, from: max(sent, 0), to: n, first: sent < 0, end: end})
		s.sent[i] = n
		if end != engine.Unfinished {
			s.sent[i] = wholeSent
		}
	}
	return open
}
