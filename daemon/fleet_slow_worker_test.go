package daemon

import (
	"math/rand/v2"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// A fleet that streams nothing learns who is slow from the workers' own metrics: 60 JSON requests one after another,
// different prompts of about 2,000 tokens, to two workers of which one is eight times slower. At the default
// intervals, in real time.
func TestJSONFleetLearnsWhoIsSlow(t *testing.T) {
	t.Parallel()
	fast, slow := sims(t, 1, vllmsim.Config{Speed: 1}), sims(t, 1, vllmsim.Config{Speed: 1, Slowness: 8})
	r := start(t, defaults(fast.URLs()[0], slow.URLs()[0]), 2)
	rng := rand.New(rand.NewPCG(60, 8))
	last, all := map[string]int{}, map[string]int{}
	for i := range 60 {
		s := r.do("POST", "/v1/chat/completions", shortBody(false, words(rng, 1333)), "X-Warmpath-Explain", "1")
		if s.status != 200 || s.err != nil {
			t.Fatal(s.status, s.err, s.body)
		}
		w := s.header.Get("X-Warmpath-Worker")
		all[w]++
		if i >= 20 {
			last[w]++
		}
	}
	slowness := map[string]float64{}
	for _, w := range r.describe()[0].Workers {
		slowness[w.ID] = w.Slowness
	}
	t.Logf("fast and slow got %v of 60, %v of the last 40; slowness %v", all, last, slowness)
	if last["w2"] > 10 {
		t.Errorf("%d of the last 40 went to the slow worker; want at most 10", last["w2"])
	}
	if ratio := slowness["w2"] / slowness["w1"]; ratio < 4 || ratio > 12 {
		t.Errorf("the slow worker's slowness is %.2f times the fast one's; want about 8", ratio)
	}
}
