package daemon

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// prefilled is how many tokens of prompts the engines have got, and computed.
func prefilled(t *testing.T, f vllmsim.Fleet) (got, computed float64) {
	t.Helper()
	for _, url := range f.URLs() {
		for line := range strings.Lines(do(t, "GET", url+"/metrics", "").body) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			name, _, _ = strings.Cut(name, "{")
			n, _ := strconv.ParseFloat(value, 64)
			switch name {
			case "vllm:prompt_tokens_total":
				got, computed = got+n, computed+n
			case "vllm:prefix_cache_hits_total":
				computed -= n
			}
		}
	}
	return got, computed
}

// TestGroupsShareAPrefill: eight samples of each prompt come at once, and its prefill is computed once. Groups go to
// different workers.
func TestGroupsShareAPrefill(t *testing.T) {
	t.Parallel()
	const samples = 8
	for _, strategy := range []string{"prefixaware", "kvaware"} {
		thrice(t, strategy, func(t *testing.T) float64 {
			f := sims(t, 4, vllmsim.Config{Speed: 1})
			r := start(t, settings(strategy, f.URLs()...), 4)
			for wave := range 4 {
				var all sync.WaitGroup
				for i := range 4 * samples {
					all.Go(func() {
						text := strings.Repeat(fmt.Sprintf("wave %d, prompt %d; ", wave, i/samples), 600)
						if s := r.do("POST", "/v1/completions", fmt.Sprintf(`{"model":"sim","prompt":%q,"max_tokens":8,"stream":%v}`, text, i%2 == 0)); s.status != 200 {
							t.Errorf("%d %s", s.status, s.body)
						}
					})
				}
				all.Wait()
			}
			busy := 0
			for _, w := range r.describe()[0].Workers {
				if w.TTFT > 0 {
					busy++
				}
			}
			if busy < 3 {
				t.Errorf("%s: %d of 4 workers have served the groups", strategy, busy)
			}
			got, computed := prefilled(t, f)
			return computed * samples / got
		})
	}
}

// thrice plays groups until they compute at most 1.15 of one prefill each, three times at most: an engine of a machine
// that is busy otherwise is behind what is known of it, so that its queue looks longer.
func thrice(t *testing.T, name string, play func(t *testing.T) float64) {
	t.Helper()
	const most = 1.15
	for try := range 3 {
		ratio := play(t)
		t.Logf("%s: %.3f of one prefill per group", name, ratio)
		if ratio <= most {
			return
		}
		if try == 2 {
			t.Errorf("%s: %.3f of one prefill per group; want at most %v", name, ratio, most)
		}
	}
}

// TestANamedGroup: prompts that differ at their end share what they have in common.
func TestANamedGroup(t *testing.T) {
	t.Parallel()
	const samples = 8
	thrice(t, "by name", func(t *testing.T) float64 {
		f := sims(t, 4, vllmsim.Config{Speed: 1})
		r := start(t, settings("prefixaware", f.URLs()...), 4)
		for n := range 4 {
			var all sync.WaitGroup
			for i := range samples {
				all.Go(func() {
					text := strings.Repeat(fmt.Sprintf("group %d; ", n), 1500) + fmt.Sprint("sample ", i)
					if s := r.do("POST", "/v1/completions", fmt.Sprintf(`{"model":"sim","prompt":%q,"max_tokens":8}`, text), "X-Warmpath-Group", fmt.Sprint("g", n)); s.status != 200 {
						t.Errorf("%d %s", s.status, s.body)
					}
				})
			}
			all.Wait()
		}
		got, computed := prefilled(t, f)
		return computed * samples / got
	})
}
