package lab

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/setup"
	"github.com/warmpath/warmpath/daemon/lab/trial"
)

// TestAWorkerThatJoinsIsFilled: where all requests begin with a text that the others hold, a worker that comes
// computes it while it is idle, and relieves them within seconds.
func TestAWorkerThatJoinsIsFilled(t *testing.T) {
	sc, err := setup.Read("hot-join")
	if err != nil {
		t.Fatal(err)
	}
	joins := sc.Fates[0]
	for _, run := range compare(t, []string{"hot-join"}, 8_100, "native:prefixaware", "native:kvaware") {
		all, its := 0, 0
		var ttft []float64
		for i := range run.Outcomes {
			o := &run.Outcomes[i]
			if since := o.Arrived.Seconds() - joins.At; since < 15 || since > 45 {
				continue
			}
			all++
			if o.Worker == joins.Worker {
				its++
			}
			ttft = append(ttft, o.TTFT())
		}
		share := float64(its*sc.Workers) / float64(max(1, all))
		t.Logf("%s: %.2f of its share of %d requests, TTFT %.3f s", run.Strategy, share, all, trial.Mean(ttft))
		if all < 1000 || share < .3 {
			t.Errorf("%s: the worker that joined gets %.2f of its share of %d requests; want .3 and more", run.Strategy, share, all)
		}
	}
}
