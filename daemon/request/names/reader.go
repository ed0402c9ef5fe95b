package names

import (
	"io"

	"github.com/warmpath/warmpath/daemon/request/jsonwalk"
	"github.com/warmpath/warmpath/daemon/request/rewrite"
)

// NewReader reads an answer with a name in place of each model's: that of "model" in the outermost object, and in an
// event in "message" (Anthropic's) and "response" (OpenAI's). A "model" in another place is a client's or a model's
// own text. events: the answer is a stream of server-sent events.
func NewReader(from io.Reader, name string, events bool) *rewrite.Reader {
	return rewrite.NewReader(from, &editor{name: name, events: events}, events)
}

// editor writes a name in place of each model's.
type editor struct {
	name   string
	events bool
	walk   jsonwalk.Walker
	inside bool // of a model's name
}

// Reset implements [rewrite.Editor].
func (e *editor) Reset() { *e = editor{name: e.name, events: e.events} }

// Append implements [rewrite.Editor].
func (e *editor) Append(out, p []byte) []byte {
	for len(p) > 0 {
		t, n := e.walk.Next(p)
		if t == jsonwalk.Quote {
			e.inside = e.walk.InText() && e.isModel()
		} else if e.inside { // the worker's name
			n, p = 0, p[n:]
		}
		out, p = append(out, p[:n]...), p[n:]
		if t == jsonwalk.Quote && e.inside {
			out = append(out, e.name...)
		}
	}
	return out
}

func (e *editor) isModel() bool {
	return e.walk.At("model") || e.events && (e.walk.At("message", "model") || e.walk.At("response", "model"))
}

// Find returns the positions of models' names in the text of a JSON object or the beginning of one, without quotes.
func Find(text []byte) (spans [][2]int) {
	var w jsonwalk.Walker
	lo := 0
	for at := 0; at < len(text); {
		t, n := w.Next(text[at:])
		at += n
		if t != jsonwalk.Quote || !w.At("model") {
			continue
		}
		if w.InText() {
			lo = at
		} else {
			spans = append(spans, [2]int{lo, at - 1})
		}
	}
	return spans
}
