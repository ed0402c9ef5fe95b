package metrics

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// series keeps the series that every request counts in. A WithLabelValues hashes the labels and takes two locks, and
// the six calls of a request were 4 % of its CPU time.
type series struct {
	*vectors
	models names // the model labels of requests_total

	making      sync.Mutex // held while a series is made and kept, or removed
	byStrategy  kept[strategyOf, *strategySeries]
	firstOutput kept[firstOutputOf, *firstOutputSeries]
	answers     kept[answerOf, prometheus.Counter]
	tokens      kept[usageOf, *usageSeries]
	arrivals    kept[arrivalOf, prometheus.Counter]
	keys        kept[keyOf, *keySeries]
}

// strategyOf names the series of a pool under a strategy.
type strategyOf struct{ pool, strategy string }

// strategySeries are the series of strategyOf without further labels.
type strategySeries struct {
	pick, fuel, duration, belief prometheus.Observer
	blocks, predicted            prometheus.Counter
}

// firstOutputOf names the series of a worker's first outputs.
type firstOutputOf struct {
	pool, strategy, worker string
	stream                 bool
}

// firstOutputSeries are the series of firstOutputOf; itl is nil for answers in one piece.
type firstOutputSeries struct{ ttft, itl prometheus.Observer }

// answerOf names a series of requests_total. model is the client's name for it.
type answerOf struct {
	pool, strategy, model, worker string
	code                          int
}

// strategy returns the series of a pool under a strategy.
func (s *series) strategy(of strategyOf) *strategySeries {
	return s.byStrategy.getOrMake(&s.making, of, func() *strategySeries {
		return &strategySeries{
			pick:      s.histogram(pickTime, of.pool, of.strategy),
			fuel:      s.histogram(pickFuel, of.pool, of.strategy),
			duration:  s.histogram(duration, of.pool, of.strategy),
			belief:    s.histogram(beliefError, of.pool, of.strategy),
			blocks:    s.counter(blocks, of.pool),
			predicted: s.counter(matched, of.pool, "predicted"),
		}
	})
}

// first returns the series of a worker's first outputs.
func (s *series) first(of firstOutputOf) *firstOutputSeries {
	return s.firstOutput.getOrMake(&s.making, of, func() *firstOutputSeries {
		made := &firstOutputSeries{
			ttft: s.histogram(ttft, of.pool, of.strategy, of.worker, strconv.FormatBool(of.stream)),
		}
		if of.stream {
			made.itl = s.histogram(itl, of.pool, of.strategy, of.worker)
		}
		return made
	})
}

// answer returns the series of requests_total.
func (s *series) answer(of answerOf) prometheus.Counter {
	if have, ok := s.answers.get(of); ok {
		return have
	}
	if of.model != "" {
		of.model = s.models.label(of.model) // kept by the label: clients can send any number of names
	}
	return s.answers.getOrMake(&s.making, of, func() prometheus.Counter {
		return s.counter(requests, of.pool, of.strategy, of.model, of.worker, strconv.Itoa(of.code))
	})
}

// owner is the owner of series: a worker of a pool, or with an empty worker the pool.
type owner struct{ pool, worker string }

// owners returns the workers that have series. Only answer and first make a worker's series, and they keep it.
func (s *series) owners() map[owner]bool {
	all := map[owner]bool{}
	s.answers.each(func(a answerOf) {
		if a.worker != "" {
			all[owner{pool: a.pool, worker: a.worker}] = true
		}
	})
	s.firstOutput.each(func(f firstOutputOf) {
		if f.worker != "" {
			all[owner{pool: f.pool, worker: f.worker}] = true
		}
	})
	return all
}

// forget removes the series of o from the vectors and from here under one lock. Otherwise a request in between would
// count in a series that is not exported.
func (s *series) forget(o owner) {
	s.making.Lock()
	defer s.making.Unlock()
	labels := prometheus.Labels{"pool": o.pool}
	if o.worker != "" {
		labels["worker"] = o.worker
	}
	s.remove(labels)
	of := func(pool, worker string) bool { return pool == o.pool && (o.worker == "" || worker == o.worker) }
	s.answers.removeIf(func(a answerOf) bool { return of(a.pool, a.worker) })
	s.firstOutput.removeIf(func(f firstOutputOf) bool { return of(f.pool, f.worker) })
	whole := func(pool string) bool { return o.worker == "" && pool == o.pool }
	s.byStrategy.removeIf(func(t strategyOf) bool { return whole(t.pool) })
	s.tokens.removeIf(func(u usageOf) bool { return whole(u.pool) })
	s.arrivals.removeIf(func(a arrivalOf) bool { return whole(a.pool) })
	s.keys.removeIf(func(k keyOf) bool { return whole(k.pool) })
}
