package vllmsim

import "net/http"

// events writes the SSE events of one request, one HTTP chunk each. Not safe for concurrent use.
type events struct {
	w    http.ResponseWriter
	j    *job
	head []byte // what every event of a chat begins with
	buf  []byte
	sent []int // tokens sent of each sequence, -1 before its first event
	seq  int   // events sent, where the form counts them
	err  error
}

// stream sends the header at once, as uvicorn does, and then an event whenever the engine shows new tokens.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, j *job, mode string) {
	v := &events{w: w, j: j, sent: make([]int, len(j.seqs))}
	for i := range v.sent {
		v.sent[i] = -1
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	if mode == FaultShort {
		w.Header().Set("Content-Length", "1048576")
	}
	w.WriteHeader(http.StatusOK)
	http.NewResponseController(w).Flush()
	j.form.open(v)
	for open := len(j.seqs); open > 0; {
		select {
		case <-j.notify:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler) // no clean end for whoever closed only half
		}
		open = v.round()
		if v.err != nil || mode != "" && v.sent[0] > 0 && breakStream(v, mode) {
			return
		}
	}
	if j.ready != nil {
		j.ready()
	}
	j.form.close(v)
}

// aborted says that the request ended before its first token: vLLM then sends a bare [DONE].
func (j *job) aborted() bool {
	for _, q := range j.seqs {
		if finish(q.ended.Load()) != finishAbort || q.produced.Load() > 0 {
			return false
		}
	}
	return true
}

// round sends what is new of every sequence, and counts those that go on.
func (v *events) round() (open int) {
	for i, q := range v.j.seqs {
		end := finish(q.ended.Load()) // before produced, which is stored first
		n := int(q.produced.Load())
		if end == unfinished {
			open++
		}
		if n <= max(v.sent[i], 0) && (end == unfinished || v.sent[i] == done || n == 0) {
			continue
		}
		v.j.form.token(v, i, max(v.sent[i], 0), n, end)
		v.sent[i] = n
		if end != unfinished {
			v.sent[i] = done
		}
	}
	return open
}

// done in events.sent marks a sequence whose last event has gone out.
const done = 1 << 30

func (v *events) end(b []byte) {
	v.buf = append(b, "}\n\n"...)
	v.flush()
}

func (v *events) flush() {
	if v.err != nil {
		return
	}
	if _, v.err = v.w.Write(v.buf); v.err == nil {
		v.err = http.NewResponseController(v.w).Flush()
	}
}
