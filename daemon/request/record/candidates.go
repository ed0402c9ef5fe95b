package record

import (
	"sync"

	"github.com/warmpath/warmpath/daemon/transport/jsonline"
	"github.com/warmpath/warmpath/daemon/transport/packed"
	"github.com/warmpath/warmpath/sdk/abi"
)

// CandidatesJSON returns the candidates as a JSON list. It differs from encoding/json's in its numbers: it rounds them
// to a millionth and leaves zeros out, which makes a third of the bytes. The list is written once for all callers and
// stands until Relist.
func (r *Record) CandidatesJSON() []byte {
	if len(r.listed) == 0 {
		r.list(&r.listed)
	}
	return r.listed
}

// Relist forgets what CandidatesJSON has written, for the candidates will be others.
func (r *Record) Relist() { r.listed = r.listed[:0] }

// list appends the candidates.
func (r *Record) list(l *jsonline.Line) {
	l.OpenList("")
	for i := range r.Candidates {
		r.Candidates[i].write(l)
	}
	l.CloseList()
}

// AppendFrame appends the frame as a field of that name: in base64, as packed.ReadTable reads it.
func (r *Record) AppendFrame(l *jsonline.Line, name string) {
	text := frames.Get().(*[]byte)
	*text = packed.AppendTable((*text)[:0], r.Frame, abi.HeaderSize, abi.RowSize)
	l.Base64(name, *text)
	frames.Put(text)
}

// frames are memory for packed frames, of 64 rows at most.
var frames = sync.Pool{New: func() any { return new([]byte) }}
