package daemon

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// agreement sums what was believed cached against what the engine found.
type agreement struct{ least, most, errors, prompt, within, n float64 }

func (a *agreement) add(believed, cached, prompt, block int) {
	a.least += float64(min(believed, cached))
	a.most += float64(max(believed, cached))
	a.errors += math.Abs(float64(believed-cached)) / float64(prompt)
	a.prompt += float64(prompt)
	if d := believed - cached; d >= -block && d <= block {
		a.within++
	}
	a.n++
}

func (a *agreement) String() string {
	return fmt.Sprintf("%.1f %% of tokens agree, mean error %.1f %% of the prompt, within a block %.0f %%, %v requests",
		100*a.least/a.most, 100*a.errors/a.n, 100*a.within/a.n, a.n)
}

// What prefixaware believes cached is what the engine finds: whole blocks of the worker's, never the last token, and
// what the null block takes from the capacity. Chats in turns over two workers that hold a few of them, so that they
// evict all the time.
func TestBeliefFollowsTheEngine(t *testing.T) {
	t.Parallel()
	for _, block := range []int{16, 48, 128} {
		t.Run(fmt.Sprint("block=", block), func(t *testing.T) { beliefs(t, block) })
	}
}

func beliefs(t *testing.T, block int) {
	const kv = 6144
	r := start(t, settings("prefixaware", sims(t, 2, vllmsim.Config{Speed: 100, KVTokens: kv, BlockTokens: block}).URLs()...), 2)
	eventually(t, "capacities known", func() bool {
		for _, w := range r.describe()[0].Workers {
			if w.KVTokens != kv-block {
				return false
			}
		}
		return true
	})
	rng := rand.New(rand.NewPCG(1, 9))
	systems := []string{words(rng, 110), words(rng, 110), words(rng, 110)}
	chats := make([][]chatMessage, 12)
	var rounded, raw agreement
	for range 300 {
		i := rng.IntN(len(chats))
		if len(chats[i]) == 0 || len(chats[i]) > 12 {
			chats[i] = []chatMessage{{"system", systems[rng.IntN(3)]}}
		}
		chats[i] = append(chats[i], chatMessage{"user", words(rng, 15+rng.IntN(55))})
		body, _ := json.Marshal(map[string]any{"model": "sim", "messages": chats[i], "max_tokens": 20 + rng.IntN(40)})
		s := r.do("POST", "/v1/chat/completions", string(body), "X-Warmpath-Explain", "1")
		if s.status != 200 || s.err != nil {
			t.Fatal(s.status, s.err, s.body)
		}
		content, cached := s.text(t)
		chats[i] = append(chats[i], chatMessage{"assistant", content})
		var u struct {
			Usage struct {
				Prompt int `json:"prompt_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(s.body), &u); err != nil {
			t.Fatal(err)
		}
		blocks, _ := strconv.Atoi(s.header.Get("X-Warmpath-Matched-Blocks"))
		raw.add(min(u.Usage.Prompt, int(float64(blocks)*r.state.Load().pools[0].route.TokensPerByte()*prompt.BlockBytes)), cached, u.Usage.Prompt, block)
		tokens, _ := strconv.Atoi(s.header.Get("X-Warmpath-Matched-Tokens"))
		rounded.add(tokens, cached, u.Usage.Prompt, block)
		if tokens%block != 0 || tokens >= u.Usage.Prompt {
			t.Fatalf("%d of %d tokens believed cached; want whole blocks of %d, and less than all", tokens, u.Usage.Prompt, block)
		}
	}
	t.Logf("by blocks of text: %v", &raw)
	t.Logf("as believed: %v", &rounded)
	if rounded.least/rounded.most < .95 || rounded.errors/rounded.n > .035 || rounded.within/rounded.n < .9 {
		t.Errorf("%v; want 95 %%, at most 3.5 %% and at least 90 %%", &rounded)
	}
}

// explained sends a body with the explain header and returns what the answer says of the cache.
func (r *running) explained(path, body string) (s seen, believed, cached int) {
	r.t.Helper()
	s = r.do("POST", path, body, "X-Warmpath-Explain", "1")
	if s.status != 200 || s.err != nil {
		r.t.Fatal(s.status, s.err, s.body)
	}
	believed, err := strconv.Atoi(s.header.Get("X-Warmpath-Matched-Tokens"))
	if err != nil {
		r.t.Fatalf("X-Warmpath-Matched-Tokens: %v", err)
	}
	_, cached = s.text(r.t)
	return s, believed, cached
}

// A request for the logprobs of its prompt reads nothing from the cache, and what it computes is there for the next
// one.
func TestPromptLogprobsMatchNothing(t *testing.T) {
	r := start(t, settings("prefixaware", sims(t, 2, vllmsim.Config{}).URLs()...), 2)
	r.waitBlockSize()
	f := func(fields string, hit bool) {
		t.Helper()
		s, believed, cached := r.explained("/v1/completions", fmt.Sprintf(`{"model":"sim","max_tokens":2,"prompt":%q%s}`, strings.Repeat("low tide ", 100), fields))
		if believed != cached || (cached > 0) != hit {
			t.Errorf("%s: %d tokens believed cached, %d were; want hit %v; %v", fields, believed, cached, hit, s.header)
		}
	}
	f("", false)
	f("", true)
	f(`,"echo":true,"logprobs":0`, false)
	f(`,"logprobs":2,"echo":true`, false)
	f(`,"prompt_logprobs":1`, false)
	f(`,"prompt_logprobs":null,"echo":true`, true)
	f(`,"logprobs":2`, true)
	r = start(t, settings("prefixaware", sims(t, 2, vllmsim.Config{}).URLs()...), 2)
	r.waitBlockSize()
	f(`,"prompt_logprobs":1`, false)
	f("", true)
}

// waitBlockSize waits until all workers' metrics have been read.
func (r *running) waitBlockSize() {
	r.t.Helper()
	eventually(r.t, "metrics read", func() bool {
		for _, w := range r.describe()[0].Workers {
			if w.KVTokens == 0 {
				return false
			}
		}
		return true
	})
}

// Of a list of prompts the explanation names the blocks and tokens of the longest, and what all have together.
func TestExplainOfAList(t *testing.T) {
	r := start(t, settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...), 1)
	r.waitBlockSize()
	rng := rand.New(rand.NewPCG(3, 3))
	texts := []string{words(rng, 60), words(rng, 300), words(rng, 100)}
	prompts, _ := json.Marshal(texts)
	body := fmt.Sprintf(`{"model":"sim","max_tokens":2,"prompt":%s}`, prompts)
	r.explained("/v1/completions", body)
	s, believed, cached := r.explained("/v1/completions", body)
	want := fmt.Sprintf("blocks=%d tokens=%d prompts=3 all_tokens=%d", len(texts[1])/128, len(texts[1])/4, (len(texts[0])+len(texts[1])+len(texts[2]))/4)
	if got := s.header.Get("X-Warmpath-Prompt"); got != want {
		t.Errorf("X-Warmpath-Prompt %q; want %q", got, want)
	}
	if d := cached - believed; d < 0 || d > 3*48 { // three ends of blocks of 128 bytes
		t.Errorf("%d tokens believed cached, %d were", believed, cached)
	}
	if matched := s.header.Get("X-Warmpath-Matched-Blocks"); matched != strconv.Itoa(len(texts[1])/128) {
		t.Errorf("%s blocks matched of the longest; want all of its %d", matched, len(texts[1])/128)
	}
}
