package exchange

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// sending is what an exchange needs until an answer goes to the client. A stream would keep it for minutes.
type sending struct {
	upstream.Request
	attempts attempts
	behind   [][]byte // what follows a kept body, which is not copied
	alone    bool     // the body is too long to be held, and its client may not name a prefiller
	pairing  *pairing // nil = one worker does all

	slotBy   time.Time // how long the request waits for slots of its adapter; zero = it has not asked for one
	unloaded bool      // a worker did not load the adapter, and has not refused it
}

// sendings keeps them, with the memory of their headers.
var sendings = sync.Pool{New: func() any { return new(sending) }}

// end gives s back. A worker has had the header by then.
func (s *sending) end() {
	list := s.Header
	clear(list) // else it keeps the texts
	if cap(list) > 64 {
		list = nil
	}
	*s = sending{Request: upstream.Request{Header: list[:0]}}
	sendings.Put(s)
}

// edit writes into the request's body what the worker gets in place of the client's.
func (s *sending) edit(r *request) {
	s.addSalt(r)
	s.writeModel(r)
}

// addSalt writes the salt into the request's body. A body that is kept in a file is not copied: the end of it is sent
// behind it.
func (s *sending) addSalt(r *request) {
	if !r.read.salted {
		return
	}
	start, end := writeSalt(s.Body, r.read.req.CacheSalt)
	if r.in.Kept != nil {
		s.Body, s.behind = start, [][]byte{end}
		return
	}
	s.Body = append(append(make([]byte, 0, len(start)+len(end)), start...), end...)
}

// writeModel writes the target in place of the alias. A body that is kept in a file is not copied: it is sent in
// pieces.
func (s *sending) writeModel(r *request) {
	if r.alias == nil {
		return
	}
	body, at := s.Body, 0
	var pieces [][]byte
	for _, span := range modelSpans(r, body) {
		pieces = append(pieces, body[at:span[0]], []byte(r.read.req.Model))
		at = span[1]
	}
	pieces = append(pieces, body[at:])
	if r.in.Kept != nil {
		s.Body, s.behind = pieces[0], append(pieces[1:], s.behind...)
		return
	}
	s.Body = bytes.Join(pieces, nil)
}

// rewind makes what is sent behind the body anew, for each worker that gets it.
func (s *sending) rewind(in *Inbound) {
	if s.behind == nil {
		return
	}
	readers, length := make([]io.Reader, 0, len(s.behind)+1), int64(0)
	for _, piece := range s.behind {
		readers = append(readers, bytes.NewReader(piece))
		length += int64(len(piece))
	}
	if in.Tail != nil {
		readers = append(readers, in.Tail)
		if in.Left >= 0 {
			length += in.Left
		} else {
			length = -1
		}
	}
	s.Tail, s.TailLength = io.MultiReader(readers...), length
	if s.alone {
		s.Tail, s.TailLength = pair.AloneAll(s.Tail), -1
	}
}

// keepAlone has a long body go through a reader that keeps its client from naming a prefiller. All of it does: its end
// may stand in what is held.
func (s *sending) keepAlone(r *request) {
	in := r.in
	if r.pool.Pairing == nil || in.Method != http.MethodPost || in.Tail == nil && in.Kept == nil || !isJSON(in) {
		return
	}
	s.alone, s.behind, s.Body = true, slices.Insert(s.behind, 0, s.Body), nil
}
