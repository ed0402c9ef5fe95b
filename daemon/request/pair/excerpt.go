package pair

import (
	"errors"
	"io"

	"github.com/warmpath/warmpath/daemon/request/jsonwalk"
	"github.com/warmpath/warmpath/daemon/request/rewrite"
)

// maxExcerpt bounds what is kept of an answer to a first leg: the numbers of the blocks of its prompt.
const maxExcerpt = 16 << 20

var errExcerpt = errors.New("pair: the kv_transfer_params and the usage of an answer are too long")

// Excerpt reads an answer to a first leg to its end, however long it is, and returns what [Handed] and [Counted] read
// of it. The ids of a long prompt's tokens take megabytes where a client wants them, and stand before the KV's place.
func Excerpt(answer io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(rewrite.NewReader(answer, new(excerpt), false), maxExcerpt+1))
	if err == nil && len(text) > maxExcerpt {
		err = errExcerpt
	}
	return text, err
}

// excerpt leaves all but some fields out of an object in JSON.
type excerpt struct {
	walk  jsonwalk.Walker
	some  bool // a field has come
	keeps bool // the value that comes is kept
}

// Reset implements [rewrite.Editor].
func (e *excerpt) Reset() { *e = excerpt{} }

// Append implements [rewrite.Editor].
func (e *excerpt) Append(out, p []byte) []byte {
	for len(p) > 0 {
		t, n := e.walk.Next(p)
		depth := e.walk.Depth()
		switch key := string(e.walk.Key(1)); {
		case t == jsonwalk.Open && depth == 1:
			out = append(out, '{')
		case t == jsonwalk.Close && depth == 0:
			out, e.keeps = append(out, '}'), false
		case t == jsonwalk.Comma && depth == 1:
			e.keeps = false
		case t == jsonwalk.Colon && depth == 1 && (key == keyParams || key == "usage"):
			if e.some {
				out = append(out, ',')
			}
			out = append(append(append(out, '"'), key...), `":`...)
			e.some, e.keeps = true, true
		case e.keeps:
			out = append(out, p[:n]...)
		}
		p = p[n:]
	}
	return out
}
