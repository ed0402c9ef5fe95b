package cli

import (
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/admin/operator"
)

// A time above five times the pool's median is marked in status and in top, where its worker stands first, and is red
// on a terminal.
func TestLateTimesAreMarked(t *testing.T) {
	o := &operator.Overview{Ready: true, Pools: make([]operator.PoolOverview, 1)}
	for _, w := range []struct {
		id          string
		first, each float64
	}{{"a", .04, .005}, {"b", .05, .006}, {"c", .05, .006}, {"slow", .26, .04}, {"busy", .2, .02}, {"idle", 0, 0}} {
		o.Pools[0].Workers = append(o.Pools[0].Workers, operator.WorkerState{ID: w.id, State: "up", Breaker: "closed",
			Hits: -1, TTFT: w.first, TPOT: w.each})
	}
	o.Pools[0].Summarize()
	status, err := statusOf(t, o)
	top, drawn := screen{}.draw(o, nil, nil)
	if err != nil || drawn != nil {
		t.Fatal(err, drawn)
	}
	line := func(page, worker string) string {
		_, rest, _ := strings.Cut(page, "\n"+worker+" ")
		text, _, _ := strings.Cut(rest, "\n")
		return text
	}
	for _, page := range []string{status, string(top)} {
		for worker, marks := range map[string]int{"a": 0, "slow": 2, "busy": 0, "idle": 0} {
			if text := line(page, worker); text == "" || strings.Count(text, "!") != marks {
				t.Errorf("%s: %q; want %d marks", worker, text, marks)
			}
		}
	}
	if table := string(top)[strings.Index(string(top), "WORKER"):]; strings.Index(table, "slow") > strings.Index(table, "\na ") {
		t.Errorf("the slow worker is not the first:\n%s", table)
	}
	red := string(redden([]byte("w  0.260s!  40ms!  down!  x1s! 12!")))
	if want := "w  \x1b[31m0.260s!\x1b[0m  \x1b[31m40ms!\x1b[0m  down!  x1s! 12!"; red != want {
		t.Errorf("on a terminal: %q; want %q", red, want)
	}
	var prefillers []operator.WorkerState // they are not compared with those that answer
	for range 3 {
		prefillers = append(prefillers, operator.WorkerState{ID: "p", TTFT: 2, Labels: map[string]string{"role": "prefill"}})
	}
	all := append(prefillers, o.Pools[0].Workers[:3]...)
	if m := operator.MediansOf(all, ""); m != (operator.Medians{First: .05, PerToken: .006}) {
		t.Errorf("beside prefillers the medians are %v", m)
	}
	if m := operator.MediansOf(all, "prefill"); m != (operator.Medians{First: 2}) {
		t.Errorf("the medians of prefillers are %v", m)
	}
	if m := operator.MediansOf(o.Pools[0].Workers[3:], ""); m != (operator.Medians{}) {
		t.Errorf("the medians of two workers are %v; want none", m)
	}
}
