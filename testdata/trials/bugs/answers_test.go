package bugs

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// A worker sends one answer twice on a kept connection. From then on each client there would get the answer of whoever
// asked before. vLLM's answers carry the request's id, which shows it.
var answers = []wallCase{
	{"a-doubled-chat-reaches-nobody-else", doubled(chatPath, "chatcmpl-", "")},
	{"a-doubled-stream-reaches-nobody-else", doubled(chatPath, "chatcmpl-", streamed)},
	{"a-doubled-completion-reaches-nobody-else", doubled("/v1/completions", "cmpl-", "")},
	{"an-id-that-is-never-ours-is-no-fault", foreignIDs},
}

// doubled sends 320 requests of 8 clients, each with a mark that its answer repeats.
func doubled(path, prefix, stream string) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		w := &behind{prefix: prefix}
		r := l.router(l.engines(2, w.post)...)
		all := clients(8, 40, func(k, i int) wire.Answer {
			fields := []string{`"prompt":"x"`}
			if stream != "" {
				fields = append(fields, stream)
			}
			return r.post(path, chat(fmt.Sprintf("mark-%d-%d-", k, i), fields...))
		})
		wrong := 0
		for i, a := range all {
			if served(a) && !strings.Contains(string(a.Body), fmt.Sprintf("mark-%d-%d-", i/40, i%40)) {
				wrong++
			}
		}
		return fmt.Sprintf("%d of 320 clients got somebody else's answer; %d refused", wrong, refused(all)),
			wrong == 0 && refused(all) == 0
	}
}

// behind is a worker that sends its 40th answer twice, the second time when that connection's next request comes. From
// then on the connection is one answer behind.
type behind struct {
	prefix string
	n      atomic.Int64
	late   sync.Map // of a connection, the answer that it owes: func(*wire.Call) bool
}

func (w *behind) post(c *wire.Call) bool {
	if c.Wait(2 * time.Millisecond) {
		return false
	}
	id, text, stream := w.prefix+engine.Field(c, "X-Request-Id"), markOf(c), engine.Streams(c)
	own := func(c *wire.Call) bool { return answerMark(c, id, text, stream) }
	if owed, ok := w.late.Load(c.Conn); ok {
		w.late.Store(c.Conn, own)
		return owed.(func(*wire.Call) bool)(c)
	}
	if w.n.Add(1) == 40 {
		w.late.Store(c.Conn, own)
	}
	return own(c)
}

// markOf is the mark in the request's body.
func markOf(c *wire.Call) string {
	_, rest, _ := strings.Cut(string(c.Text), "mark-")
	mark, _, _ := strings.Cut(rest, `"`)
	return "mark-" + mark
}

// answerMark answers with the id and the mark.
func answerMark(c *wire.Call, id, text string, stream bool) bool {
	as := func(s string) string { return strings.ReplaceAll(s, "chatcmpl-1", id) }
	if stream {
		return engine.Stream(c, as(engine.Role), as(engine.Delta(fmt.Sprintf(`{"content":%q}`, text), "null")), as(engine.Stop),
			engine.Done)
	}
	return c.Plain(200, "application/json", as(engine.Chat(text, "stop")))
}

// foreignIDs is a control: a worker that never uses the request's id is no worse for it.
func foreignIDs(l *lab) (string, bool) {
	var n atomic.Int64
	r := l.router(l.engines(2, func(c *wire.Call) bool { return answerMark(c, fmt.Sprintf("chatcmpl-%d", n.Add(1)), markOf(c), false) })...)
	all := clients(8, 20, func(k, i int) wire.Answer { return r.chat(fmt.Sprintf("mark-%d-%d-", k, i)) })
	return fmt.Sprintf("%d of 160 refused, sent %d times", refused(all), n.Load()), refused(all) == 0 && n.Load() == 160
}
