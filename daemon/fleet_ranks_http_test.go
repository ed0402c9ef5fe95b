package daemon

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// Over HTTP two workers of four ranks have the hit rate of eight workers, as in virtual time (TestHitRateOfRanks). The
// figures are printed; what is checked has room for what a busy machine does to the order of requests.
func TestHitRateOfRanksOverHTTP(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds of chats")
	}
	f := func(what string, workers, ranks int, keys string) (rate, stayed float64) {
		sim := sims(t, workers, vllmsim.Config{DataParallel: ranks, KVTokens: 12_288, Speed: 50})
		up := workers * ranks
		if keys != "" {
			up = workers
		}
		r := start(t, strings.ReplaceAll(settings("prefixaware", sim.URLs()...), "[[pools.workers]]\n",
			"[[pools.workers]]\n"+keys), up)
		rate, stayed = r.converse()
		t.Logf("%s: %.1f %% of the prompts' tokens cached, %.1f %% of the turns stay", what, 100*rate, 100*stayed)
		return rate, stayed
	}
	eight, _ := f("eight workers of one rank", 8, 1, "")
	two, stayed := f("two workers of four, each rank chosen", 2, 4, "")
	blind, _ := f("two workers of four, without the header", 2, 4, "data_parallel = 1\n")
	if two < eight-.05 || stayed < .9 || two < blind+.1 {
		t.Error("want as much as eight workers, and more than without the header")
	}
}

// converse has chats in turns, eight at a time. It returns the part of the prompts' tokens that was cached, and that of
// the turns after the first that stayed at the worker, or the rank, of the turn before.
func (r *running) converse() (rate, stayed float64) {
	const atOnce, chats, turns = 8, 6, 7
	var mu sync.Mutex // guards the sums
	var prompt, cached, same int
	var all sync.WaitGroup
	for c := range atOnce {
		all.Go(func() {
			said, at := make([][]chatMessage, chats), make([]string, chats)
			for turn := range turns {
				for k := range chats {
					said[k] = append(said[k], chatMessage{"user", fmt.Sprintf("Chat %d of %d asks %d. ", k, c, turn) +
						strings.Repeat(fmt.Sprintf("word%d.%d.%d ", c, k, turn), 60)})
					s := r.do("POST", "/v1/chat/completions", chatBody(false, said[k]))
					var reply struct {
						Choices []struct{ Message chatMessage }
						Usage   struct {
							Prompt  int `json:"prompt_tokens"`
							Details struct {
								Cached int `json:"cached_tokens"`
							} `json:"prompt_tokens_details"`
						}
					}
					if err := json.Unmarshal([]byte(s.body), &reply); err != nil || len(reply.Choices) != 1 {
						r.t.Errorf("status %d, %v: %s", s.status, err, s.body)
						return
					}
					said[k] = append(said[k], reply.Choices[0].Message)
					worker := s.header.Get("X-Warmpath-Worker")
					mu.Lock()
					prompt, cached = prompt+reply.Usage.Prompt, cached+reply.Usage.Details.Cached
					if turn > 0 && worker == at[k] {
						same++
					}
					mu.Unlock()
					at[k] = worker
				}
			}
		})
	}
	all.Wait()
	return float64(cached) / float64(max(1, prompt)), float64(same) / (atOnce * chats * (turns - 1))
}
