package lab

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/trial"
)

// seen is what clients saw in a part of a run.
type seen struct {
	p90, hits float64
}

// during returns what clients saw of the requests that came between two instants.
func during(run *trial.Run, from, until time.Duration) seen {
	var ttft []float64
	cached, prompt := 0, 0
	for i := range run.Outcomes {
		if o := &run.Outcomes[i]; o.Arrived >= from && o.Arrived < until {
			ttft = append(ttft, o.TTFT())
			cached, prompt = cached+o.Cached, prompt+o.Prompt
		}
	}
	return seen{p90: trial.Quantile(ttft, .9), hits: float64(cached) / float64(prompt)}
}

// TestRolling: eight workers are replaced one by one. Without a hand-over clients wait nearly twice as long meanwhile.
func TestRolling(t *testing.T) {
	const begins, ends = 300 * time.Second, 670 * time.Second
	grows := map[string]float64{}
	for _, run := range compare(t, []string{"rolling"}, 0, "native:prefixaware", "native:prefixaware@hand-over") {
		before, while, m := during(run, begins/2, begins), during(run, begins, ends), &run.Left
		unused := 1 - float64(m.TokensUsed)/float64(max(1, m.TokensMoved))
		t.Logf("%s: P90 %.2f s, then %.2f s; hit rate %.3f, then %.3f; %d moved, %.2f of their tokens unused", run.Strategy,
			before.p90, while.p90, before.hits, while.hits, m.Moved, unused)
		grows[run.Strategy] = while.p90 / before.p90
		if m.Moved > 0 && (unused > .2 || while.hits < before.hits-.02) || run.Count(trial.Answered) != len(run.Outcomes) {
			t.Errorf("%s: %.2f of the tokens moved are unused, the hit rate falls from %.3f to %.3f", run.Strategy, unused,
				before.hits, while.hits)
		}
	}
	if plain, with := grows["native:prefixaware"], grows["native:prefixaware@hand-over"]; with > 1+(plain-1)*.45 {
		t.Errorf("P90 grows to %.2f of before with a hand-over, and to %.2f without", with, plain)
	}
}

// TestScaleOut: a worker that comes serves more of its share of conversations within 30 s than without a hand-over, and
// finds them cached.
func TestScaleOut(t *testing.T) {
	for _, run := range compare(t, []string{"scale-out"}, 0, "native:prefixaware", "native:prefixaware@hand-over") {
		var turns, cached, prompt [2]int // of the others, and of the worker that came
		for i := range run.Outcomes {
			if o := &run.Outcomes[i]; o.Turn > 0 && o.Arrived > 330*time.Second && o.Arrived < 360*time.Second {
				its := 0
				if o.Worker == 7 {
					its = 1
				}
				turns[its]++
				cached[its] += o.Cached
				prompt[its] += o.Prompt
			}
		}
		share := 8 * float64(turns[1]) / float64(turns[0]+turns[1])
		hits := [2]float64{float64(cached[0]) / float64(prompt[0]), float64(cached[1]) / float64(max(1, prompt[1]))}
		t.Logf("%s: %.2f of its share of turns, hit rate %.3f beside %.3f; %+v", run.Strategy, share, hits[1], hits[0], run.Left)
		if run.Strategy == "native:prefixaware@hand-over" && (share < .55 || hits[1] < hits[0]-.05) {
			t.Errorf("the worker that came serves %.2f of its share with a hit rate of %.3f; the others have %.3f", share, hits[1],
				hits[0])
		}
	}
}
