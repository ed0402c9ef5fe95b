package operator

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// reading is a metric that is read when Prometheus asks, off what other rooms count.
type reading[T any] struct {
	*metric
	desc *prometheus.Desc
	read func(of T, send func(value float64, labels ...string))
}

// gauge declares a metric of one value, which may fall. labels are those that each T has.
func gauge[T any](name, help string, labels []string, value func(T) float64) reading[T] {
	return newReading(metric{name: name, help: help, kind: isGauge, labels: labels}, one(value))
}

// total declares a metric of one value, which only rises.
func total[T any](name, help string, labels []string, value func(T) float64) reading[T] {
	return newReading(metric{name: name, help: help, kind: isCounter, labels: labels}, one(value))
}

// one reads one value, which has no label of its own.
func one[T any](value func(T) float64) func(T, func(float64, ...string)) {
	return func(of T, send func(float64, ...string)) { send(value(of)) }
}

// newReading declares a metric of which read sends the values, with the labels that come after those that each T has.
func newReading[T any](m metric, read func(of T, send func(value float64, labels ...string))) reading[T] {
	r := reading[T]{metric: declare(m), read: read}
	r.desc = prometheus.NewDesc(r.name, r.help, r.labels, nil)
	return r
}

// collect sends what the readings say of one T, whose labels are first.
func collect[T any](ch chan<- prometheus.Metric, readings []reading[T], of T, first ...string) {
	for _, r := range readings {
		typ := prometheus.GaugeValue
		if r.kind == isCounter {
			typ = prometheus.CounterValue
		}
		r.read(of, func(value float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(r.desc, typ, value, slices.Concat(first, labels)...)
		})
	}
}

// bit is 1 for true.
func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
