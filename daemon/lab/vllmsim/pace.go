package vllmsim

import (
	"bytes"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// Headers of a request that the engine is not asked about, for load tests of what stands in front of a worker: a chat
// answer of TokensHeader tokens, one every IntervalHeader ("50ms"; none means no waiting), a stream if the body asks
// for one. The body is read and not parsed. Such requests count as running.
const (
	TokensHeader   = "X-Sim-Tokens"
	IntervalHeader = "X-Sim-Interval"
)

// The fixed parts of a paced stream, as chatForm writes them.
const (
	pacedHead = `data: {"id":"chatcmpl-paced","object":"chat.completion.chunk","created":1795251122,"model":"sim",` +
		`"choices":[{"index":0,"delta":{`
	pacedFirst = pacedHead + `"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],` +
		`"prompt_token_ids":null,"prompt_text":null}` + "\n\n"
	pacedToken = pacedHead + `"content":"kalo"},"logprobs":null,"finish_reason":null,"token_ids":null}]}` + "\n\n"
	pacedLast  = pacedHead + `"content":"kalo"},"logprobs":null,"finish_reason":"length","stop_reason":null,` +
		`"token_ids":null}]}` + "\n\n"
)

// paceAPI answers requests with TokensHeader.
type paceAPI struct {
	running *atomic.Int64 // such requests that are open
}

// serve answers a request with TokensHeader. One goroutine and one timer a stream; the timer keeps to the stream's
// start, so a late wake-up does not shift what follows.
func (a paceAPI) serve(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.Header.Get(TokensHeader))
	interval := time.Duration(0)
	if text := r.Header.Get(IntervalHeader); err == nil && text != "" {
		interval, err = time.ParseDuration(text)
	}
	if err != nil || n < 1 || n > 1<<20 || interval < 0 {
		writeError(w, badRequest(TokensHeader, "want 1 to 1048576 tokens and an interval as 50ms"))
		return
	}
	b := bodies.Get().(*bytes.Buffer)
	b.Reset()
	_, err = b.ReadFrom(r.Body)
	raw := b.Bytes()
	stream := bytes.Contains(raw, []byte(`"stream":true`)) || bytes.Contains(raw, []byte(`"stream": true`))
	bodies.Put(b)
	if err != nil {
		return // the client is gone
	}
	a.running.Add(1)
	defer a.running.Add(-1)
	p := &pacer{r: r, begin: time.Now(), interval: interval}
	if !stream {
		if p.wait(n - 1) {
			writeBody(w, http.StatusOK, pacedBody(n))
		}
		return
	}
	p.stream(w, n)
}

// pacer is a paced answer under way.
type pacer struct {
	r        *http.Request
	begin    time.Time
	interval time.Duration
	timer    *time.Timer
}

func (p *pacer) stream(w http.ResponseWriter, n int) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	for i := range n {
		text := pacedToken
		switch {
		case i == n-1:
			text = pacedLast
		case i == 0:
			text = pacedFirst + pacedToken
		}
		if !p.wait(i) {
			return
		}
		if _, err := w.Write([]byte(text)); err != nil || control.Flush() != nil {
			return
		}
	}
	w.Write([]byte("data: [DONE]\n\n"))
}

// wait sleeps until token i is due; it does not return if the client has gone.
func (p *pacer) wait(i int) bool {
	d := time.Until(p.begin.Add(time.Duration(i) * p.interval))
	if d <= 0 {
		return true
	}
	if p.timer == nil {
		p.timer = time.NewTimer(d)
	} else {
		p.timer.Reset(d)
	}
	select {
	case <-p.timer.C:
		return true
	case <-p.r.Context().Done():
		p.timer.Stop()
		panic(http.ErrAbortHandler)
	}
}

// pacedBody returns the plain form of a paced answer.
func pacedBody(n int) []byte {
	b := []byte(`{"id":"chatcmpl-paced","object":"chat.completion","created":1795251122,"model":"sim",` +
		`"choices":[{"index":0,"message":{"role":"assistant","content":"`)
	b = append(b, bytes.Repeat([]byte("kalo"), n)...)
	b = append(b, `"},"logprobs":null,"finish_reason":"length"}],"usage":{"prompt_tokens":1,"total_tokens":`...)
	b = append(strconv.AppendInt(b, int64(n+1), 10), `,"completion_tokens":`...)
	return append(strconv.AppendInt(b, int64(n), 10), "}}"...)
}
