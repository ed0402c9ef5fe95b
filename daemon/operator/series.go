package operator

import (
	"maps"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// series keeps the metrics' series that every request counts in: a WithLabelValues hashes the labels and takes two locks, and
// the six of a request were 4 % of its CPU time.
type series struct {
	strategies kept[[2]string, *ofStrategy] // by pool and strategy
	first      kept[firstBy, *ofWorker]
	requests   kept[answered, prometheus.Counter]

	making sync.Mutex // held while a series is made and kept, or removed (departed.go)
}

// ofStrategy are the series of a pool under a strategy that have no other label.
type ofStrategy struct {
	pick, fuel, duration prometheus.Observer
	blocks, predicted    prometheus.Counter
}

// firstBy names the series of a worker's first outputs.
type firstBy struct {
	pool, strategy, worker string
	stream                 bool
}

// ofWorker are the series of firstBy; itl is nil for answers in one piece.
type ofWorker struct{ ttft, itl prometheus.Observer }

// answered names a series of requests_total, with the model as the client calls it.
type answered struct {
	pool, strategy, model, worker string
	code                          int
}

func (m *Metrics) of(pool, strategy string) *ofStrategy {
	key := [2]string{pool, strategy}
	if s, ok := m.held.strategies.get(key); ok {
		return s
	}
	m.held.making.Lock()
	defer m.held.making.Unlock()
	s := &ofStrategy{pick: m.pick.WithLabelValues(pool, strategy), fuel: m.fuel.WithLabelValues(pool, strategy),
		duration: m.duration.WithLabelValues(pool, strategy),
		blocks:   m.blocks.WithLabelValues(pool), predicted: m.matched.WithLabelValues(pool, "predicted")}
	m.held.strategies.put(key, s)
	return s
}

func (m *Metrics) firstOf(key firstBy) *ofWorker {
	if o, ok := m.held.first.get(key); ok {
		return o
	}
	m.held.making.Lock()
	defer m.held.making.Unlock()
	o := &ofWorker{ttft: m.ttft.WithLabelValues(key.pool, key.strategy, key.worker, strconv.FormatBool(key.stream))}
	if key.stream {
		o.itl = m.itl.WithLabelValues(key.pool, key.strategy, key.worker)
	}
	m.held.first.put(key, o)
	return o
}

func (m *Metrics) requestsOf(a answered) prometheus.Counter {
	if c, ok := m.held.requests.get(a); ok {
		return c
	}
	if a.model != "" {
		a.model = m.models.label(a.model) // kept by the label: the names of clients are without a bound
	}
	m.held.making.Lock()
	defer m.held.making.Unlock()
	c := m.requests.WithLabelValues(a.pool, a.strategy, a.model, a.worker, strconv.Itoa(a.code))
	m.held.requests.put(a, c)
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

// each calls f for every key.
func (k *kept[K, V]) each(f func(K)) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for key := range k.of {
		f(key)
	}
}

// drop removes what gone is true for.
func (k *kept[K, V]) drop(gone func(K) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.of, func(key K, _ V) bool { return gone(key) })
}
