package tracing

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

func TestTheShareIsTheSDKs(t *testing.T) {
	for _, of := range []float64{0, 1e-9, .01, .5, .999, 1} {
		mine, theirs, taken := newShare(of), sdk.TraceIDRatioBased(of), 0
		for range 10_000 {
			var id ids
			id.draw()
			want := theirs.ShouldSample(sdk.SamplingParameters{ParentContext: t.Context(), TraceID: id.trace}).Decision
			if got := mine.takes(id.trace); got != (want == sdk.RecordAndSample) {
				t.Fatalf("%v: %s is sampled: %v; the SDK: %v", of, id.trace, got, want)
			}
			if mine.takes(id.trace) {
				taken++
			}
		}
		if share := float64(taken) / 10_000; math.Abs(share-of) > .05 {
			t.Errorf("%v: %v were sampled", of, share)
		}
	}
}

// TestARequestThatIsNotSampled pays for one text, the one that its worker gets.
func TestARequestThatIsNotSampled(t *testing.T) {
	tr, _ := tracing(t, newCollector(t).URL, 0)
	in := request()
	if n := testing.AllocsPerRun(100, func() { tr.Begin(in, time.Time{}) }); n != 1 || in.Trace.Parent == "" {
		t.Errorf("%v allocations, and the worker gets %q; want one", n, in.Trace.Parent)
	}
}

// TestWhatSpansHaveInCommon: each span has its own request's fields, whatever the one before it in that memory had.
func TestWhatSpansHaveInCommon(t *testing.T) {
	c := newCollector(t)
	tr, _ := tracing(t, c.URL, 1)
	methods := []string{"POST", "POST", "GET", "BREW", "", "POST"}
	for i, method := range methods {
		in := request()
		tr.Begin(in, time.Now())
		in.Method, in.Seen.Pool, in.Seen.Retries = method, strings.Repeat("p", i/2), int32(i+1)
		in.Seen.Endpoint, in.Seen.Key, in.Seen.Strategy = []string{"chat", ""}[i%2], fmt.Sprint("key", i/3), "s"
		in.Trace.Span.End(in, time.Millisecond, 3)
	}
	tr.Close()
	all := c.Spans()
	if len(all) != len(methods) {
		t.Fatalf("%d spans", len(all))
	}
	f := func(a map[string]any, key, want string) {
		t.Helper()
		if got, _ := a[key].(string); got != want {
			t.Errorf("%v: %s is %q; want %q", a["warmpath.retries"], key, got, want)
		}
	}
	for _, s := range all {
		n, _ := s.Attributes["warmpath.retries"].(int)
		i := n - 1
		f(s.Attributes, "http.request.method", methods[i])
		f(s.Attributes, "warmpath.pool", strings.Repeat("p", i/2))
		f(s.Attributes, "warmpath.key", fmt.Sprint("key", i/3))
		f(s.Attributes, "gen_ai.operation.name", []string{"chat", ""}[i%2])
		if want := []string{"chat", methods[i]}[i%2]; s.Name != want {
			t.Errorf("the name is %q; want %q", s.Name, want)
		}
	}
}
