package exchange

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/attempt"
	"github.com/warmpath/warmpath/daemon/request/handoff"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// sending is what an exchange needs until an answer goes to the client. A stream would keep it for minutes.
type sending struct {
	upstream.Request
	history attempt.History
	behind  [][]byte         // what follows a kept body, which is not copied
	unasked bool             // a worker refuses to be asked for the usage of a stream
	alone   bool             // the body is too long to be held, and its client may not name a prefiller
	pairing *handoff.Pairing // nil = one worker does all

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

// edit writes into the request's body what the worker gets in place of the client's. A body that is kept in a file is
// not copied: it is sent in pieces.
//
// A key with a cache_salt has its prompts kept apart: engines hash the blocks of such a key in a space of their own,
// and the router goes by the salt in its index, as by a client's own. A client that sends one divides the key's space
// further, and leaves it by none: a key's salt has no slash.
func (s *sending) edit(r *admission.Request) {
	edits := s.renamed(r, s.askUsage(r, nil))
	if r.Read.Salted {
		salt, _ := json.Marshal(r.Read.Req.CacheSalt) // a string cannot fail
		edits = append(edits, prompt.SetField(s.Body, "cache_salt", salt)...)
	}
	if len(edits) == 0 {
		return
	}
	slices.SortStableFunc(edits, func(a, b prompt.Edit) int { return cmp.Or(a.Lo-b.Lo, a.Hi-b.Hi) })
	pieces := prompt.Pieces(s.Body, edits)
	if r.In.Kept != nil {
		s.Body, s.behind = pieces[0], pieces[1:]
		return
	}
	s.Body = bytes.Join(pieces, nil)
}

// hinted returns the request for a worker that is told of another one's KV: the next worker's is another one.
func (s *sending) hinted(r *admission.Request, h *route.Hint) *upstream.Request {
	if h == nil || s.Tail != nil {
		return &s.Request
	}
	told := s.Request
	told.Body = bytes.Join(prompt.Pieces(s.Body,
		prompt.SetField(s.Body, pair.HintField, pair.FetchHint(r.ID, h.Source, h.Hashes))), nil)
	return &told
}

// askUsage has the body ask for the usage of its stream, if the limits of its key need it and the client does not ask.
// Where another worker may go on with the stream it must be known how many tokens have come, so each event has it.
// By the events of a stream nobody knows its tokens: engines send several in one to a client that is slow.
func (s *sending) askUsage(r *admission.Request, edits []prompt.Edit) []prompt.Edit {
	r.Read.Asks = false
	if s.unasked || !r.Read.Clear || r.In.Tail != nil {
		return edits
	}
	ask := r.Read.Req.AskUsage
	switch {
	case r.Pool.Continue > 0 && r.Entry.Op == message.Use && r.Entry.Door == nil:
		ask = r.Read.Req.AskCounts
	case !r.In.Account.Spent().CountsTokens():
		return edits
	}
	e, ok := ask()
	if !ok {
		return edits
	}
	r.Read.Asks = true
	return append(edits, e...)
}

// renamed appends those that write the target in place of the alias.
func (s *sending) renamed(r *admission.Request, edits []prompt.Edit) []prompt.Edit {
	if r.Alias == nil {
		return edits
	}
	spans := admission.ModelSpans(r, s.Body)
	if len(spans) > 1 && message.IsJSON(r.In) {
		name, _ := json.Marshal(r.Read.Req.Model) // a string cannot fail
		return append(edits, prompt.SetField(s.Body, "model", name)...)
	}
	for _, span := range spans {
		edits = append(edits, prompt.Edit{Lo: span[0], Hi: span[1], Text: []byte(r.Read.Req.Model)})
	}
	return edits
}

// rewind makes what is sent behind the body anew, for each worker that gets it.
func (s *sending) rewind(in *message.Inbound) {
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
func (s *sending) keepAlone(r *admission.Request) {
	in := r.In
	if !r.Pool.Guards() || in.Method != http.MethodPost || in.Tail == nil && in.Kept == nil ||
		!message.IsJSON(in) {
		return
	}
	s.alone, s.behind, s.Body = true, slices.Insert(s.behind, 0, s.Body), nil
}
