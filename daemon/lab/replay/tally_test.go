package replay

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func TestPercentile(t *testing.T) {
	f := func(p, want float64, v ...float64) {
		t.Helper()
		if got := percentile(v, p); got != want {
			t.Errorf("p%v of %v is %v, want %v", p, v, got, want)
		}
	}
	f(50, 7, 7)
	f(99, 7, 7)
	f(50, 1, 1, 2)
	f(50, 2, 1, 2, 3)
	f(90, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	f(91, 10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	f(0, 1, 1, 2)
	f(100, 2, 1, 2)

	// Against the definition: the smallest value that p percent do not exceed.
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		v := make([]float64, 1+r.IntN(300))
		for i := range v {
			v[i] = float64(r.IntN(100))
		}
		d := distribution(v)
		for p, got := range map[int]float64{50: d.P50, 90: d.P90, 99: d.P99} {
			want := math.Inf(1)
			for _, x := range v {
				n := 0
				for _, y := range v {
					if y <= x {
						n++
					}
				}
				if 100*n >= p*len(v) {
					want = min(want, x)
				}
			}
			if got != want {
				t.Fatalf("p%d of %v is %v, want %v", p, v, got, want)
			}
		}
		if d.Max != slices.Max(v) || d.Count != len(v) {
			t.Fatalf("distribution %+v of %v", d, v)
		}
	}
}

func TestPrefillSeconds(t *testing.T) {
	f := func(prompt, cached int, want float64) {
		t.Helper()
		if got := PrefillSeconds(prompt, cached); math.Abs(got-want) > 5e-4 {
			t.Errorf("%d tokens, %d cached: %v s, want %v", prompt, cached, got, want)
		}
	}
	f(0, 0, 0)
	f(15000, 0, 1.229)
	f(15000, 15000, 0)
	f(65536, 0, 2*65536/15000.)
	f(65536, 65535, 3/15000.)
	// What is left of a prompt costs what the whole costs less what is held.
	for _, held := range []int{1, 16, 5000, 29999} {
		if got, want := PrefillSeconds(30000, held), PrefillSeconds(30000, 0)-PrefillSeconds(held, 0); !near(got, want) {
			t.Errorf("with %d held: %v s, want %v", held, got, want)
		}
	}
}

func use(prompt, cached int) *usage {
	u := &usage{Prompt: prompt}
	u.Details.Cached = cached
	return u
}

func TestTally(t *testing.T) {
	ms := time.Millisecond
	o := outcome{
		model: "A",
		speed: 10,
		wall:  2 * time.Second,
		trace: make([]Request, 6),
		samples: []sample{
			{sent: true, ttft: 100 * ms, total: 200 * ms, usage: use(1000, 0), worker: "a"},
			{sent: true, ttft: 300 * ms, total: 400 * ms, usage: use(1000, 500), worker: "b", late: 20 * ms},
			{sent: true, ttft: 200 * ms, total: 300 * ms, usage: nil, worker: "b"},
			{sent: true, total: 50 * ms, err: errors.New("no worker"), kind: "status 503"},
			{sent: true, ttft: 400 * ms, total: 500 * ms, err: errTruncated, kind: "stream cut short", worker: "a"},
			{},
		},
		counts: newCounts(6, 3),
	}
	o.counts.peak.Store(3)
	for i := range o.trace {
		o.trace[i].InputTokens = 1000
	}
	o.counts.sent.Store(5)
	o.counts.answered.Store(3)
	got := tally(o)

	if got.TTFT != (Distribution{Count: 4, Mean: 2.5, P50: 2, P90: 4, P99: 4, Max: 4}) {
		t.Errorf("TTFT %+v", got.TTFT)
	}
	if got.Total.Count != 3 || !near(got.Total.Mean, 3) {
		t.Errorf("total %+v", got.Total)
	}
	if got.PromptBlocks != 124 || got.CachedBlocks != 31 || got.BlockHitRate != .25 || got.TokenHitRate != .25 ||
		got.TraceTokens != 2000 {
		t.Errorf("hits %+v", got)
	}
	a, b := PrefillSeconds(1000, 0), PrefillSeconds(1000, 500)
	if got.Workers != 2 || !near(got.WorkBusiestOverMean, 2*a/(a+b)) || !near(got.RequestsBusiestOverMean, 4./3) {
		t.Errorf("busiest %+v", got)
	}
	if len(got.Errors) != 3 || got.Errors["not sent"] != 1 || got.Errors["status 503"] != 1 ||
		got.Errors["stream cut short"] != 1 || got.FirstError != "no worker" {
		t.Errorf("errors %v, first %q", got.Errors, got.FirstError)
	}
	if got.NoUsage != 1 || !near(got.LateSecondsMax, .2) || got.WallSeconds != 2 || got.PeakInFlight != 3 {
		t.Errorf("client %+v", got)
	}
}

func TestTallyOfNothing(t *testing.T) {
	res := tally(outcome{trace: make([]Request, 2), samples: make([]sample, 2), counts: newCounts(2, 1)})
	var out strings.Builder
	report := Report{Results: []Result{res}}
	if err := report.WriteText(&out); err != nil || strings.Contains(out.String(), "NaN") {
		t.Errorf("%v:\n%s", err, out.String())
	}
	if err := report.WriteJSON(&out); err != nil { // NaN has no JSON
		t.Error(err)
	}
}
