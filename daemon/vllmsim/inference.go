package vllmsim

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
)

// bodies are the buffers of request bodies; nothing decoded from one aliases it.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// preparer reads the body of one endpoint.
type preparer func(*http.Request, []byte) (*job, *apiError)

// inference runs a request: read, refuse or submit, answer. Whatever ends it frees the sequences.
func (s *Server) inference(prepare preparer, refuse func(http.ResponseWriter, *apiError)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		j, refused, err := s.read(r, prepare)
		if err != nil {
			return // the client is gone
		}
		if refused != nil {
			refuse(w, refused)
			return
		}
		s.load.Add(1)
		defer s.load.Add(-1)
		mode := modeOf(r)
		e := s.engine.Load()
		if drained(mode) {
			j.tool = ""
			for _, q := range j.seqs {
				q.state = gone // never submitted, so still ours
				q.publish(finishAbort)
			}
		} else {
			e.submit(j.seqs)
			if j.background != nil {
				j.background(w, e)
				return
			}
			defer e.cancel(j.seqs)
		}
		if j.stream {
			s.stream(w, r, j, mode)
			return
		}
		s.plain(w, r, j, e, mode)
	}
}

// drained says that the worker takes requests only to leave them empty.
func drained(mode string) bool { return mode == FaultDrain || mode == FaultAbort }

func (s *Server) read(r *http.Request, prepare preparer) (*job, *apiError, error) {
	b := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(b)
	b.Reset()
	if n := r.ContentLength; n > 0 && n < 1<<26 {
		b.Grow(int(n) + bytes.MinRead)
	}
	if _, err := io.Copy(b, r.Body); err != nil {
		return nil, nil, err
	}
	j, refused := prepare(r, b.Bytes())
	return j, refused, nil
}

// plain waits for the whole reply and answers with one JSON body.
func (s *Server) plain(w http.ResponseWriter, r *http.Request, j *job, e *engine, mode string) {
	for !j.over() {
		select {
		case <-j.notify:
			if mode == FaultCut && j.seqs[0].produced.Load() > 0 {
				sever(w, false)
				return
			}
		case <-r.Context().Done():
			panic(http.ErrAbortHandler) // whoever closed only half gets no answer, as from vLLM
		}
	}
	if j.ready != nil {
		j.ready()
	}
	if v := loadReport(r.Header.Get("endpoint-load-metrics-format"), e); v != "" {
		w.Header().Set("endpoint-load-metrics", v)
	}
	if body := j.form.body(nil, j); !breakPlain(w, mode, body) {
		writeBody(w, http.StatusOK, body)
	}
}

// over says that every sequence has ended.
func (j *job) over() bool {
	for _, q := range j.seqs {
		if finish(q.ended.Load()) == unfinished {
			return false
		}
	}
	return true
}

// loadReport is the ORCA header that vLLM adds to plain answers on demand.
func loadReport(format string, e *engine) string {
	if format == "" {
		return ""
	}
	e.mu.Lock()
	queued, usage := float64(len(e.waiting)), e.pool.usage()
	e.mu.Unlock()
	switch strings.ToUpper(format) {
	case "JSON":
		return fmt.Sprintf(`JSON {"named_metrics": {"num_requests_waiting": %s, "kv_cache_usage_perc": %s}}`, pyFloat(queued), pyFloat(usage))
	case "TEXT":
		return fmt.Sprintf("TEXT named_metrics.num_requests_waiting=%s, named_metrics.kv_cache_usage_perc=%s", pyFloat(queued), pyFloat(usage))
	}
	return ""
}

// newID is the random part of an id.
func newID() string { return fmt.Sprintf("%016x", rand.Uint64()) }
