package lab

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/trial"
)

// A router that knows of the CPU tier and of the shared one chooses at least as well as one that takes the GPU to be as
// large as the CPU tier, and far better than round robin. The whole table stands in package route.
func TestTiersAreWorthKnowing(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates some minutes of a fleet")
	}
	runs := compare(t, []string{"G", "L"}, 500, "prefixaware", "prefixaware@flat", "roundrobin")
	for i := 0; i < len(runs); i += 3 {
		mean := func(k int) float64 { return trial.Mean(runs[i+k].Values((*trial.Outcome).TTFT)) }
		told, flat, robin := mean(0), mean(1), mean(2)
		t.Logf("%s: %.2f s told, %.2f s not, %.2f s by round robin; hits %.2f, %.2f, %.2f", runs[i].Scenario, told, flat,
			robin, figures(runs[i]).HitRate(), figures(runs[i+1]).HitRate(), figures(runs[i+2]).HitRate())
		if told > 1.05*flat || robin < 1.3*told {
			t.Errorf("%s: mean TTFT %.2f s, with the CPU tier's size as kv_tokens %.2f s, by round robin %.2f s",
				runs[i].Scenario, told, flat, robin)
		}
		if runs[i].Scenario != "G" {
			continue
		}
		cpu := int64(0)
		for _, w := range runs[i].Workers {
			cpu += w.CPUTokens
		}
		if cpu == 0 {
			t.Error("nothing was loaded from the CPU tier: the test tries too little")
		}
	}
}
