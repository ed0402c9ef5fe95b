package lab

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/setup"
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

// TestScaleOut: a worker that comes serves its share of the conversations from its 30th second on, and finds them cached.
// Without a hand-over it serves half of that.
func TestScaleOut(t *testing.T) {
	const least, points = .9, .05
	c, sum := Config{Seeds: []uint64{7, 8, 9, 10, 11, 12}}, map[string]float64{}
	for _, run := range compareSeeds(t, c, []string{"scale-out"}, 0, "native:prefixaware", "native:prefixaware@hand-over") {
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
		sum[run.Strategy] += share / float64(len(c.Seeds))
		hits := [2]float64{float64(cached[0]) / float64(prompt[0]), float64(cached[1]) / float64(max(1, prompt[1]))}
		t.Logf("%s, seed %d: %.2f of its share of turns, hit rate %.3f beside %.3f; %+v", run.Strategy, run.Seed, share, hits[1],
			hits[0], run.Left)
		if run.Strategy == "native:prefixaware@hand-over" && (share < least || hits[1] < hits[0]-points) {
			t.Errorf("seed %d: the worker that came serves %.2f of its share with a hit rate of %.3f; the others have %.3f", run.Seed,
				share, hits[1], hits[0])
		}
	}
	t.Logf("on average %v", sum)
}

// TestMovesDelay: what moves cost clients at half load. A turn that comes while its worker computes a piece of a move
// waits for the step, and another one that is computed together with a piece.
func TestMovesDelay(t *testing.T) {
	const begins, ends, part = 300 * time.Second, 670 * time.Second, .05
	sc, err := setup.Read("rolling")
	if err != nil {
		t.Fatal(err)
	}
	for i := range sc.Classes {
		sc.Classes[i].Rate /= 2
	}
	with, err := Find("native:prefixaware@hand-over")
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Seeds: []uint64{7, 8, 9, 10}, Processors: 2, Scenarios: []*setup.Scenario{sc}, Strategies: with}
	runs, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		var ttft, behind []float64
		for i := range run.Outcomes {
			if o := &run.Outcomes[i]; o.Arrived >= begins && o.Arrived < ends {
				ttft, behind = append(ttft, o.TTFT()), append(behind, o.Behind.Seconds())
			}
		}
		p50, delayed := trial.Quantile(ttft, .5), 0
		for _, s := range behind {
			if s > part*p50 {
				delayed++
			}
		}
		share := float64(delayed) / float64(len(behind))
		t.Logf("seed %d: moves delay %.3f of the turns by more than %.2f of P50, all by %.3f of it on average", run.Seed, share, part,
			trial.Mean(behind)/p50)
		if delayed == 0 || share > .1 {
			t.Errorf("seed %d: moves delay %.3f of the turns", run.Seed, share)
		}
	}
}
