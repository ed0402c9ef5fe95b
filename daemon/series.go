package daemon

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// series keeps the metrics' series that every request counts in: a WithLabelValues hashes the labels and takes two locks, and
// the six of a request were 4 % of its CPU time.
type series struct {
	strategies kept[string, *ofStrategy]
	ttft       kept[[2]string, prometheus.Observer] // by strategy and worker
	requests   kept[answered, prometheus.Counter]
}

// ofStrategy are the series that have no other label.
type ofStrategy struct{ pick, fuel, duration prometheus.Observer }

// answered names a series of requests_total, with the model as the client calls it.
type answered struct {
	strategy, model, worker string
	code                    int
}

func (m *metrics) of(strategy string) *ofStrategy {
	if s, ok := m.held.strategies.get(strategy); ok {
		return s
	}
	s := &ofStrategy{m.pick.WithLabelValues(strategy), m.fuel.WithLabelValues(strategy), m.duration.WithLabelValues(strategy)}
	m.held.strategies.put(strategy, s)
	return s
}

func (m *metrics) ttftOf(strategy, worker string) prometheus.Observer {
	key := [2]string{strategy, worker}
	if o, ok := m.held.ttft.get(key); ok {
		return o
	}
	o := m.ttft.WithLabelValues(strategy, worker)
	m.held.ttft.put(key, o)
	return o
}

func (m *metrics) requestsOf(a answered) prometheus.Counter {
	if c, ok := m.held.requests.get(a); ok {
		return c
	}
	model := m.models.label(a.model)
	c := m.requests.WithLabelValues(a.strategy, model, a.worker, strconv.Itoa(a.code))
	if model == a.model { // others are without a bound
		m.held.requests.put(a, c)
	}
	return c
}

// kept is a map that is mostly read. Its zero value is ready.
type kept[K comparable, V any] struct {
	mu sync.RWMutex // guards of
	of map[K]V
}

func (k *kept[K, V]) get(key K) (v V, ok bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	v, ok = k.of[key]
	return v, ok
}

func (k *kept[K, V]) put(key K, v V) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of = map[K]V{}
	}
	k.of[key] = v
}
