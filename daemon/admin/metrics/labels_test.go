package metrics

import (
	"fmt"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestLabelsAreBounded(t *testing.T) {
	var n names
	for i := range 2 * maxNames {
		n.label(fmt.Sprint(i))
	}
	if got := n.label("new"); got != "other" || n.label("7") != "7" {
		t.Fatalf("the label of a new name is %q", got)
	}
}

// TestLabelsAreUTF8: what clients and workers write may be any bytes; the library panics at a label that is no UTF-8.
func TestLabelsAreUTF8(t *testing.T) {
	var n names
	if got := n.label("m\xff"); got != "m\uFFFD" || n.known("m\xff") != got {
		t.Errorf("%q, then %q", got, n.known("m\xff"))
	}
	m := NewMetrics("test")
	for c, declared := range counters {
		m.series.counter(counter(c), odd(len(declared.labels))...).Inc()
	}
	for h, declared := range histograms {
		m.series.histogram(histogram(h), odd(len(declared.labels))...).Observe(1)
	}
	r := newReadingOnce()
	ch := make(chan prometheus.Metric, 1)
	collect(ch, []reading[string]{r}, "a\xfe", "p\xff")
	<-ch
}

// odd returns n label values that are no UTF-8.
func odd(n int) []string { return slices.Repeat([]string{"x\xff\x1b"}, n) }

// newReadingOnce returns a reading that is declared nowhere, and passes its T on as a label.
func newReadingOnce() reading[string] {
	return reading[string]{metric: &metric{kind: isGauge}, desc: prometheus.NewDesc("warmpath_test", "", []string{"a", "b"}, nil),
		read: func(of string, send func(float64, ...string)) { send(1, of) }}
}
