package trial

import (
	"math"
	"testing"
	"time"
)

func TestSumsOfARun(t *testing.T) {
	const s = time.Second
	r := Run{Ended: 100 * s, GPUSeconds: 7200, Workers: []Worker{{PrefillSeconds: 3}, {PrefillSeconds: 1, Preemptions: 2}},
		Outcomes: []Outcome{
			{Arrived: 1 * s, First: 2 * s, Ended: 4 * s, Prompt: 100, Cached: 60, Output: 5},
			{Arrived: 2 * s, First: 5 * s, Ended: 6 * s, Prompt: 100, Cached: 20, Output: 1},
			{Arrived: 3 * s, Ended: 3 * s, Prompt: 100, Status: Refused, Worker: -1},
			{Arrived: 4 * s, First: 5 * s, Ended: 6 * s, Prompt: 100, Output: 7, Status: Broken},
		}}
	f := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %v; want %v", what, got, want)
		}
	}
	ttft := r.Values((*Outcome).TTFT)
	f("mean TTFT", Mean(ttft), 5./3)
	f("median TTFT", Quantile(ttft, .5), 1)
	f("P90 TTFT", Quantile(ttft, .9), 2.6)
	f("TPOT", Mean(r.Values((*Outcome).TPOT)), .5)
	f("imbalance", r.Imbalance(), 1.5)
	f("preemptions", float64(r.Preemptions()), 2)
	f("answered", float64(r.Count(Answered)), 2)
	if q := Quantile(nil, .5); !math.IsNaN(q) {
		t.Errorf("the median of nothing is %v", q)
	}
}
