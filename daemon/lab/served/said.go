package served

import (
	"maps"
	"strings"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// Worker is what the operator says of a worker, as in [[pools.workers]].
type Worker struct {
	Labels map[string]string
	Cost   float64
	Role   worker.Role
}

// fill writes it into a worker's description.
func (w *Worker) fill(s *worker.Spec) {
	s.Labels, s.Cost = w.Labels, w.Cost
	s.Role = w.Role
	if w.Role == worker.Prefills || w.Role == worker.PrefillsToo {
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
