package main

import (
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/decisions"
	"github.com/warmpath/warmpath/daemon/operator"
)

// An unknown value is a dash, and not a time of 0.
func TestTopOfWhatIsNotKnown(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		if got = strings.ReplaceAll(got, "\t", " "); got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	}
	var none, some operator.Span
	none.Arrived, none.Refused = 2, 1
	some.Streams, some.TTFT50, some.TTFT99 = 1, .25, .5
	f(lastMinute(&operator.PoolHour{Pool: "p", Spans: []operator.Span{none}}), "p 2 1 0 - - - - 0")
	f(lastMinute(&operator.PoolHour{Pool: "p", Spans: []operator.Span{none, some}}), "p 2 1 0 0.250s 0.500s - - 0")
	var d decisions.Decision
	d.At, d.Status, d.End = time.Now(), 503, "no_worker"
	f(lineOf(&d)[len("15:04:05\t"):], "- none named - 0 ~0 - 0.000s 503 no_worker ")
}
