package vllmsim

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// bodies are the buffers of request bodies; nothing decoded from one aliases it.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// preparer reads the body of one endpoint.
type preparer func(*http.Request, []byte) (task, *apiError)

// inference runs requests through the engine.
type inference struct {
	ranks *ranks
	load  atomic.Int64 // open requests
}

// handler runs a request: read, refuse or submit, answer. Whatever ends it frees the choices.
func (s *inference) handler(prepare preparer, refuse refuser) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		t, refused, err := readTask(r, prepare)
		if err != nil {
			return // the client is gone
		}
		if refused != nil {
			refuse(w, refused)
			return
		}
		if t.unloaded != nil && !t.stream {
			refuse(w, t.unloaded)
			return
		}
		s.load.Add(1)
		defer s.load.Add(-1)
		mode := modeOf(r)
		if t.unloaded != nil {
			answerStream(w, r, t, mode)
			return
		}
		if drained(mode) {
			t.tool = ""
			for _, c := range t.choices {
				c.abort() // never submitted, so still ours
			}
		} else {
			t.driver.submit(t.choices)
			if t.background != nil {
				t.background(w)
				return
			}
			defer t.driver.cancel(t.choices)
		}
		if t.stream {
			answerStream(w, r, t, mode)
			return
		}
		s.answerPlain(w, r, t, mode)
	}
}

func readTask(r *http.Request, prepare preparer) (task, *apiError, error) {
	b := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(b)
	b.Reset()
	if n := r.ContentLength; n > 0 && n < 1<<26 {
		b.Grow(int(n) + bytes.MinRead)
	}
	if _, err := io.Copy(b, r.Body); err != nil {
		return task{}, nil, err
	}
	t, refused := prepare(r, b.Bytes())
	return t, refused, nil
}

// answerPlain waits for the whole reply and answers with one JSON body.
func (s *inference) answerPlain(w http.ResponseWriter, r *http.Request, t task, mode string) {
	for !t.ended() {
		select {
		case <-t.notify:
			if mode == FaultCut && t.choices[0].tokens() > 0 {
				sever(w, byFIN)
				return
			}
		case <-r.Context().Done():
			if !t.ended() {
				panic(http.ErrAbortHandler) // whoever closed only half gets no more of an answer, as from vLLM
			}
		}
	}
	if t.ready != nil {
		t.ready()
	}
	if format := r.Header.Get("endpoint-load-metrics-format"); format != "" {
		if v := loadReport(format, t.driver.lastStats()); v != "" {
			w.Header().Set("endpoint-load-metrics", v)
		}
	}
	writePlain(w, mode, t.form.body(nil))
}

// follow waits in the background until every choice has ended, and then calls done. The engine ends each of them, at
// the latest when it closes.
func (s *inference) follow(j *job, done func()) {
	s.load.Add(1)
	go func() {
		defer s.load.Add(-1)
		defer j.driver.cancel(j.choices)
		for !j.ended() {
			<-j.notify
		}
		done()
	}()
}

// loadReport returns the ORCA header that vLLM adds to plain answers on demand.
func loadReport(format string, st engine.Stats) string {
	queued, usage := pyFloat(float64(st.Waiting)), pyFloat(st.KVUsage())
	switch strings.ToUpper(format) {
	case "JSON":
		return fmt.Sprintf(`JSON {"named_metrics": {"num_requests_waiting": %s, "kv_cache_usage_perc": %s}}`,
			queued, usage)
	case "TEXT":
		return fmt.Sprintf("TEXT named_metrics.num_requests_waiting=%s, named_metrics.kv_cache_usage_perc=%s",
			queued, usage)
	}
	return ""
}
