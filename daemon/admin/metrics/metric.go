package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// metric is the declaration of a Prometheus name, and the only place for one. A package variable, or a row of a table
// of readings, declares and registers it, lists it in docs/metrics.md, and frees its series with its worker or pool.
type metric struct {
	name, help string
	kind       kind
	labels     []string
	buckets    []float64 // of a histogram
}

// kind is Prometheus's word for the type of a metric.
type kind string

const (
	isCounter   kind = "counter"
	isGauge     kind = "gauge"
	isHistogram kind = "histogram"
)

// declared holds every metric of this package. Only package variables add to it.
var declared []*metric

func declare(m metric) *metric {
	if !strings.Contains(m.name, ":") { // else it is another system's, passed on
		m.name = "warmpath_" + m.name
	}
	if slices.ContainsFunc(declared, func(d *metric) bool { return d.name == m.name }) {
		panic("BUG: metrics: two metrics are called " + m.name)
	}
	declared = append(declared, &m)
	return &m
}

// counter and histogram are metrics counted with the requests, with a vector of series in each process. Their values
// are the indexes of these vectors.
type (
	counter   int
	histogram int
)

var (
	counters   []*metric
	histograms []*metric
)

func newCounter(name, help string, labels ...string) counter {
	counters = append(counters, declare(metric{name: name, help: help, kind: isCounter, labels: labels}))
	return counter(len(counters) - 1)
}

func newHistogram(name, help string, buckets []float64, labels ...string) histogram {
	histograms = append(histograms,
		declare(metric{name: name, help: help, kind: isHistogram, labels: labels, buckets: buckets}))
	return histogram(len(histograms) - 1)
}

// vectors holds the series of all counters and histograms.
type vectors struct {
	counters   []*prometheus.CounterVec
	histograms []*prometheus.HistogramVec
}

func newVectors(registry *prometheus.Registry) *vectors {
	v := &vectors{}
	for _, m := range counters {
		vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.name, Help: m.help}, m.labels)
		v.counters = append(v.counters, vec)
		registry.MustRegister(vec)
	}
	for _, m := range histograms {
		vec := prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: m.name, Help: m.help, Buckets: m.buckets}, m.labels)
		v.histograms = append(v.histograms, vec)
		registry.MustRegister(vec)
	}
	return v
}

// counter returns the series with these labels.
func (v *vectors) counter(c counter, labels ...string) prometheus.Counter {
	return v.counters[c].WithLabelValues(inUTF8(labels)...)
}

// histogram returns the series with these labels.
func (v *vectors) histogram(h histogram, labels ...string) prometheus.Observer {
	return v.histograms[h].WithLabelValues(inUTF8(labels)...)
}

// inUTF8 makes label values valid, in place: what clients, workers and modules write may be any bytes, and the library
// panics at others.
func inUTF8(labels []string) []string {
	for i, l := range labels {
		labels[i] = strings.ToValidUTF8(l, "\uFFFD")
	}
	return labels
}

// remove removes the series with these labels. A metric without one of the labels keeps all its series.
func (v *vectors) remove(labels prometheus.Labels) {
	for _, vec := range v.counters {
		vec.DeletePartialMatch(labels)
	}
	for _, vec := range v.histograms {
		vec.DeletePartialMatch(labels)
	}
}
