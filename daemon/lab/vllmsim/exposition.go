package vllmsim

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// exposition writes Prometheus text with vLLM's labels, a series for each engine of the worker.
type exposition struct {
	bytes.Buffer
	model   string // label model_name
	engines []engine.Stats
}

func (x *exposition) family(name, kind, help string) {
	fmt.Fprintf(x, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// sample writes one value of engine i. more is a label that stands between that of the engine and that of the model,
// and ends with a comma, or nothing.
func (x *exposition) sample(name string, i int, more string, v float64) {
	for _, part := range [...]string{name, `{engine="`, strconv.Itoa(i), `",`, more, x.model, "} ", pyFloat(v), "\n"} {
		x.WriteString(part)
	}
}

// each calls f with every engine.
func (x *exposition) each(f func(i int, st *engine.Stats)) {
	for i := range x.engines {
		f(i, &x.engines[i])
	}
}

func (x *exposition) gauge(name, help string, value func(*engine.Stats) float64) {
	x.family(name, "gauge", help)
	x.each(func(i int, st *engine.Stats) { x.sample(name, i, "", value(st)) })
}

func (x *exposition) counter(name, help string, value func(*engine.Stats) int64) {
	x.family(name, "counter", help)
	x.each(func(i int, st *engine.Stats) { x.sample(name, i, "", float64(value(st))) })
}

func (x *exposition) histogram(name, help string, of func(*engine.Stats) *engine.Histogram) {
	x.family(name, "histogram", help)
	x.each(func(i int, st *engine.Stats) { x.buckets(name, i, of(st)) })
}

// buckets writes the histogram of one engine.
func (x *exposition) buckets(name string, i int, h *engine.Histogram) {
	bucket, sum := name+"_bucket", int64(0)
	for k := range len(h.Bounds) + 1 {
		le := "+Inf"
		if k < len(h.Bounds) {
			le = pyFloat(h.Bounds[k])
		}
		sum += h.Buckets[k]
		x.sample(bucket, i, `le="`+le+`",`, float64(sum))
	}
	x.sample(name+"_count", i, "", float64(h.Count))
	x.sample(name+"_sum", i, "", h.Sum)
}
