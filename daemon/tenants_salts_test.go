package daemon

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// TestSaltsOfOneKey: one key sends 5,000 requests, each with a cache_salt of its own, between two turns of others'
// chats. The engines have room for all. The share of the others' later prompts that the engines find cached is within a
// point of that without them, and so is what the router believes, by which it goes where workers differ in load. On a
// busy machine loads differ by chance, so it is played twice at most.
func TestSaltsOfOneKey(t *testing.T) {
	t.Parallel()
	rate := func(salts int) (hits, believed float64) {
		f := sims(t, 4, vllmsim.Config{KVTokens: 4 << 20, Speed: 1000})
		r := start(t, tenants(t, "explain = true")+settings("prefixaware", f.URLs()...), 4)
		var chats others
		for turn := range 5 {
			if turn == 2 {
				flood(t, r, salts)
				chats = others{}
			}
			for i := range 24 {
				chats.turn(t, r, i, turn)
			}
		}
		return float64(chats.cached) / float64(chats.prompt), float64(chats.believed) / float64(chats.prompt)
	}
	for range 2 {
		alone, believed := rate(0)
		beside, still := rate(5000)
		t.Logf("hit rate of the others' later turns: %.4f alone, %.4f beside 5,000 salts; believed %.4f, %.4f",
			alone, beside, believed, still)
		if alone >= .5 && math.Abs(alone-beside) <= .01 && believed >= .5 && math.Abs(believed-still) <= .01 {
			return
		}
	}
	t.Error("want the same to a point")
}

// others are the chats of two keys.
type others struct{ prompt, cached, believed int }

// turn sends a chat with all that was said in it before.
func (o *others) turn(t *testing.T, r *running, chat, turn int) {
	t.Helper()
	var text strings.Builder
	for n := range turn + 1 {
		fmt.Fprintf(&text, "Chat %d, turn %d. %s\n", chat, n, strings.Repeat(fmt.Sprintf("word%d-%d ", chat, n), 60))
	}
	body := fmt.Sprintf(`{"model":"sim","max_tokens":1,"prompt":%q}`, text.String())
	s := r.as([]string{"alice", "carol"}[chat%2], "POST", "/v1/completions", body, "X-Warmpath-Explain", "1")
	var answer struct {
		Usage struct {
			PromptTokens int `json:"prompt_tokens"`
			Details      struct {
				CachedTokens int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	if err := json.Unmarshal([]byte(s.body), &answer); s.status != 200 || err != nil {
		t.Fatalf("%d %s %v", s.status, s.body, err)
	}
	n, _ := strconv.Atoi(s.header.Get("X-Warmpath-Matched-Tokens"))
	o.believed += n
	o.prompt += answer.Usage.PromptTokens
	o.cached += answer.Usage.Details.CachedTokens
}

// flood sends so many requests of bob, each with a cache_salt of its own.
func flood(t *testing.T, r *running, n int) {
	t.Helper()
	var all sync.WaitGroup
	for k := range 8 {
		all.Go(func() {
			for i := k; i < n; i += 8 {
				body := fmt.Sprintf(`{"model":"sim","max_tokens":1,"cache_salt":"salt%d","prompt":%q}`, i, strings.Repeat("a b ", 100))
				if s := r.as("bob", "POST", "/v1/completions", body); s.status != 200 {
					t.Errorf("salt %d: %d %s", i, s.status, s.body)
					return
				}
			}
		})
	}
	all.Wait()
}
