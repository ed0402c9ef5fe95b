package served

import (
	"maps"
	"strings"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// Worker is the configuration of a worker, as in [[pools.workers]].
type Worker struct {
	Labels   map[string]string
	Cost     float64
	Prefills bool // it computes prompts that others answer
	SGLang   bool // its metrics are SGLang's
}

// fill writes the configuration of the first workers into the description of one. split is nil in a scenario without
// prefillers.
func fill(s *worker.Spec, first []Worker, number int, split *Split) {
	var w Worker
	if number < len(first) {
		w = first[number]
	}
	w.fill(s, split)
}

// fill writes it into a worker's description.
func (w *Worker) fill(s *worker.Spec, split *Split) {
	s.Labels, s.Cost = w.Labels, w.Cost
	shared := split != nil && split.Shared
	switch {
	case w.Prefills && shared:
		s.Role = worker.PrefillsToo
	case w.Prefills:
		s.Role = worker.Prefills
	case shared:
		s.Role = worker.Decodes
	}
	if w.Prefills {
		name, value, _ := strings.Cut(worker.PrefillLabel, "=")
		s.Labels = map[string]string{name: value}
		maps.Copy(s.Labels, w.Labels)
	}
}

// headers are the header fields of a request.
type headers map[string]string

// Header implements [host.HeaderSource].
func (h headers) Header(name string) (value string, ok bool) {
	value, ok = h[name]
	return value, ok
}
