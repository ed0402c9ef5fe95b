package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// reading is a metric whose value is read from another room's counts when Prometheus scrapes.
type reading[T any] struct {
	*metric
	desc *prometheus.Desc
	read func(of T, send func(value float64, labels ...string))
}

// gauge declares a metric of one value, which may fall. labels are the labels of each T.
func gauge[T any](name, help string, labels []string, value func(T) float64) reading[T] {
	return newReading(metric{name: name, help: help, kind: isGauge, labels: labels}, one(value))
}

// total declares a metric of one value, which only rises.
func total[T any](name, help string, labels []string, value func(T) float64) reading[T] {
	return newReading(metric{name: name, help: help, kind: isCounter, labels: labels}, one(value))
}

// one makes a read function for one value without labels of its own.
func one[T any](value func(T) float64) func(T, func(float64, ...string)) {
	return func(of T, send func(float64, ...string)) { send(value(of)) }
}

// newReading declares a metric whose values read sends, each with its labels after those of each T.
func newReading[T any](m metric, read func(of T, send func(value float64, labels ...string))) reading[T] {
	r := reading[T]{metric: declare(m), read: read}
	r.desc = prometheus.NewDesc(r.name, r.help, r.labels, nil)
	return r
}

// collect sends the readings of one T, whose label values are first.
func collect[T any](ch chan<- prometheus.Metric, readings []reading[T], of T, first ...string) {
	for _, r := range readings {
		typ := prometheus.GaugeValue
		if r.kind == isCounter {
			typ = prometheus.CounterValue
		}
		r.read(of, func(value float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(r.desc, typ, value, inUTF8(slices.Concat(first, labels))...)
		})
	}
}

// bit returns 1 for true and 0 for false.
func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
