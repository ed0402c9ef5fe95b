package host

import (
	"maps"
	"sync"
)

// Limits of what a module may count.
const (
	maxMetric  = 64 // bytes of a counter's name
	maxMetrics = 64 // counters of a strategy
)

// metrics are the counters that a module keeps by the import metric. Safe for concurrent use.
type metrics struct {
	mu   sync.Mutex // guards sums
	sums map[string]float64
}

// add adds v to the counter name. It drops what is no label value, and new names beyond the limit.
func (m *metrics) add(name []byte, v float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.sums[string(name)]; !known {
		if len(m.sums) >= maxMetrics || !plainName(name) {
			return
		}
		if m.sums == nil {
			m.sums = map[string]float64{}
		}
	}
	m.sums[string(name)] += v
}

// all returns a copy of the counters, never nil.
func (m *metrics) all() map[string]float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sums == nil {
		return map[string]float64{}
	}
	return maps.Clone(m.sums)
}

// plainName reports whether b may become a label value: a-z, 0-9 and _.
func plainName(b []byte) bool {
	for _, c := range b {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}
