package vllmsim

import (
	"net/http"
	"strconv"
)

// events writes the SSE events of one request, one HTTP chunk each. Not safe for concurrent use.
type events struct {
	w    http.ResponseWriter
	j    *job
	head []byte // what every event begins with
	buf  []byte
	sent []int // tokens sent of each sequence, -1 before its first event
	err  error
}

// stream sends the header at once, as uvicorn does, and then an event whenever the engine shows new tokens.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, j *job, cut bool) {
	v := &events{w: w, j: j, head: []byte("data: "), sent: make([]int, len(j.seqs))}
	object := "text_completion"
	if j.chat {
		object = "chat.completion.chunk"
	}
	v.head = j.appendHead(v.head, object)
	for i := range v.sent {
		v.sent[i] = -1
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	http.NewResponseController(w).Flush()
	for open := len(j.seqs); open > 0; {
		select {
		case <-j.notify:
		case <-r.Context().Done():
			return
		}
		open = v.round()
		if v.err != nil {
			return
		}
		if cut && v.sent[0] > 0 {
			sever(w, false)
			return
		}
	}
	if j.usage && !j.aborted() {
		v.usage()
	}
	v.buf = append(v.buf[:0], "data: [DONE]\n\n"...)
	v.flush()
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
		if v.sent[i] < 0 && v.j.chat {
			v.role(i)
		}
		from := max(v.sent[i], 0)
		v.sent[i] = n
		if end != unfinished {
			v.sent[i] = done
		}
		v.token(i, q, from, n, end)
	}
	return open
}

// done in events.sent marks a sequence whose last event has gone out.
const done = 1 << 30

// role is the first event of a chat choice.
func (v *events) role(i int) {
	b := strconv.AppendInt(append(append(v.buf[:0], v.head...), `{"index":`...), int64(i), 10)
	b = append(b, `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
	b = v.j.appendPromptIDs(append(b, `,"prompt_token_ids":`...), 0)
	v.end(append(b, `,"prompt_text":null`...))
}

// token is an event with tokens [from, to) of a sequence.
func (v *events) token(i int, q *sequence, from, to int, end finish) {
	j := v.j
	b := strconv.AppendInt(append(append(v.buf[:0], v.head...), `{"index":`...), int64(i), 10)
	if j.chat {
		b = append(q.reply.appendText(append(b, `,"delta":{"content":"`...), from, to), `"}`...)
	} else {
		b = append(q.reply.appendText(append(b, `,"text":"`...), from, to), '"')
	}
	b = append(b, `,"logprobs":null,"finish_reason":`...)
	if end == unfinished {
		b = append(b, "null"...)
	} else {
		b = append(append(append(b, '"'), finishNames[end]...), '"')
	}
	if !j.chat || end != unfinished {
		b = append(b, `,"stop_reason":null`...)
	}
	if !j.chat {
		b = append(b, `,"prompt_token_ids":`...)
		if from == 0 {
			b = j.appendPromptIDs(b, i/j.n)
		} else {
			b = append(b, "null"...)
		}
	}
	b = append(j.appendReplyIDs(append(b, `,"token_ids":`...), q, from, to), `}]`...)
	if j.everyUsage {
		b = append(j.appendCounts(append(b, ',')), '}')
	}
	v.end(b)
}

// usage is the last event before [DONE].
func (v *events) usage() {
	cached, created := v.j.cacheUse()
	b := v.j.appendCounts(append(append(v.buf[:0], v.head...), `],`...))
	b = strconv.AppendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), int64(cached), 10)
	if v.j.chat {
		b = strconv.AppendInt(append(b, `,"created_cache_tokens":`...), int64(created), 10)
	}
	v.end(append(b, `}},"system_fingerprint":"`+systemFingerprint+`"`...))
}

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
