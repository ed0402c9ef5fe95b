package vllmsim

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/warmpath/warmpath/daemon/vllmsim/engine"
)

// exposition writes Prometheus text with vLLM's labels.
type exposition struct {
	bytes.Buffer
	labels string // engine and model_name
}

// halves returns the label of the engine and that of the model, between which vLLM's other labels stand.
func (x *exposition) halves() (ofEngine, ofModel string) {
	ofEngine, ofModel, _ = strings.Cut(x.labels, ",")
	return ofEngine, ofModel
}

func (x *exposition) family(name, kind, help string) {
	fmt.Fprintf(x, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func (x *exposition) sample(name, labels string, v float64) {
	fmt.Fprintf(x, "%s{%s} %s\n", name, labels, pyFloat(v))
}

func (x *exposition) gauge(name, help string, v float64) {
	x.family(name, "gauge", help)
	x.sample(name, x.labels, v)
}

func (x *exposition) counter(name, help string, v int64) {
	x.family(name, "counter", help)
	x.sample(name, x.labels, float64(v))
}

func (x *exposition) histogram(name, help string, h *engine.Histogram) {
	x.family(name, "histogram", help)
	ofEngine, ofModel := x.halves()
	sum := int64(0)
	for i := range len(h.Bounds) + 1 {
		le := "+Inf"
		if i < len(h.Bounds) {
			le = pyFloat(h.Bounds[i])
		}
		sum += h.Buckets[i]
		x.sample(name+"_bucket", ofEngine+`,le="`+le+`",`+ofModel, float64(sum))
	}
	x.sample(name+"_count", x.labels, float64(h.Count))
	x.sample(name+"_sum", x.labels, h.Sum)
}
