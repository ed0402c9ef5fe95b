package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// defaults is the smallest configuration that serves: every interval and limit is the one that users have.
func defaults(urls ...string) string {
	var b strings.Builder
	b.WriteString("[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n[[pools]]\nname = \"main\"\nmodels = [\"*\"]\n")
	for i, u := range urls {
		fmt.Fprintf(&b, "[[pools.workers]]\nurl = %q\nid = \"w%d\"\n", u, i+1)
	}
	return b.String()
}

// words is that many random words, about 1.5 simulated tokens each.
func words(rng *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "%05x ", rng.Uint32N(1<<20))
	}
	return b.String()
}

// shortBody is a chat of one message whose answer has two tokens: nearly all of its time is prefill.
func shortBody(stream bool, text string) string {
	return fmt.Sprintf(`{"model":"sim","max_tokens":2,"stream":%v,"messages":[{"role":"user","content":%q}]}`, stream, text)
}

// Of different prompts that come one after another, each worker of an idle fleet gets its share: what was learnt of
// the first to answer must not draw all that follow to it. At speed 100 a prefill takes a millisecond: other tests that run
// beside it would make some workers look ten times as fast as others, so these cases run alone.
func TestIdleFleetSharesDifferentPrompts(t *testing.T) {
	for _, speed := range []float64{1, 100} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("speed=%v,stream=%v", speed, stream), func(t *testing.T) {
				if speed == 1 {
					t.Parallel()
				}
				r := start(t, defaults(sims(t, 3, vllmsim.Config{Speed: speed}).URLs()...), 3)
				rng := rand.New(rand.NewPCG(7, uint64(speed)))
				got := map[string]int{}
				for range 24 {
					s := r.do("POST", "/v1/chat/completions", shortBody(stream, words(rng, 900)), "X-Warmpath-Explain", "1")
					if s.status != 200 || s.err != nil {
						t.Fatal(s.status, s.err, s.body)
					}
					got[s.header.Get("X-Warmpath-Worker")]++
				}
				t.Logf("%v", got)
				if most := max(got["w1"], got["w2"], got["w3"]); most > 12 {
					t.Errorf("%v of 24 requests; want none over 12", got)
				}
			})
		}
	}
}

// instant starts a worker that answers at once: a fleet far faster than the constants that estimates begin with.
func instant(t *testing.T, name string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/health":
		case "/v1/models":
			_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"sim","object":"model"}]}`)
		case "/v1/chat/completions":
			b, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Served-By", name)
			fmt.Fprintf(w, `{"id":"c","object":"chat.completion","model":"sim","choices":[{"index":0,"message":{"role":"assistant",`+
				`"content":"It is as you say, and so it will be tomorrow."},"finish_reason":"stop"}],`+
				`"usage":{"prompt_tokens":%d,"completion_tokens":12,"total_tokens":%d}}`, len(b)/4, len(b)/4+12)
		case "/v1/embeddings":
			b, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Served-By", name)
			fmt.Fprintf(w, `{"object":"list","model":"sim","data":[{"object":"embedding","index":0,"embedding":[0.5]}],`+
				`"usage":{"prompt_tokens":%d,"total_tokens":%[1]d}}`, len(b)/4)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// growing plays chats that grow by a turn at a time, many at once, and counts where their turns go.
type growing struct {
	chats, turns, clients int
	shared                int  // words of a system prompt that every second chat begins with
	embedded              bool // each turn is the whole text so far, to be embedded
}

// request is the next turn of a chat, or its text so far to be embedded.
func (g growing) request(m []chatMessage) (path, body string) {
	path, fields := "/v1/chat/completions", map[string]any{"model": "sim", "messages": m}
	if g.embedded {
		text := ""
		for _, one := range m {
			text += one.Content
		}
		path, fields = "/v1/embeddings", map[string]any{"model": "sim", "input": text}
	}
	b, _ := json.Marshal(fields)
	return path, string(b)
}

// play returns the part of later turns that their chat's worker got, and the busiest worker's requests over the mean.
func (g growing) play(t *testing.T, r *running, workers int) (followed, busiest float64) {
	t.Helper()
	type chat struct {
		m    []chatMessage
		home string
		rng  *rand.Rand
	}
	rng := rand.New(rand.NewPCG(1, 1))
	system := words(rng, g.shared)
	open := make(chan *chat, g.chats)
	for i := range g.chats {
		c := &chat{rng: rand.New(rand.NewPCG(2, uint64(i)))}
		if g.shared > 0 && i%2 == 0 {
			c.m = append(c.m, chatMessage{"system", system})
		}
		open <- c
	}
	var later, home, failed atomic.Int64
	var mu sync.Mutex
	got := map[string]int{}
	turn := func(c *chat) {
		c.m = append(c.m, chatMessage{"user", words(c.rng, 120)})
		path, body := g.request(c.m)
		s := do(t, "POST", "http://"+r.Addr()+path, body)
		if s.status != 200 || s.err != nil {
			failed.Add(1)
			return
		}
		if !g.embedded {
			content, _ := s.text(t)
			c.m = append(c.m, chatMessage{"assistant", content})
		}
		by := s.header.Get("X-Served-By")
		if c.home != "" {
			later.Add(1)
			if c.home == by {
				home.Add(1)
			}
		}
		c.home = by
		mu.Lock()
		got[by]++
		mu.Unlock()
	}
	left := int64(g.chats * g.turns)
	var all sync.WaitGroup
	for range g.clients {
		all.Go(func() {
			for atomic.AddInt64(&left, -1) >= 0 {
				c := <-open
				turn(c)
				open <- c
			}
		})
	}
	all.Wait()
	if n := failed.Load(); n > 0 {
		t.Fatalf("%d requests failed", n)
	}
	most, sum := 0, 0
	for _, n := range got {
		most, sum = max(most, n), sum+n
	}
	followed = float64(home.Load()) / float64(later.Load())
	busiest = float64(most) * float64(workers) / float64(sum)
	t.Logf("%.2f %% of %d later turns at their chat's worker, busiest %.2f of the mean, %v", 100*followed, later.Load(), busiest, got)
	return followed, busiest
}

// Chats stay with the worker that holds them also where it answers at once and nothing is streamed, from the first
// second on.
func TestFastFleetKeepsChatsAtHome(t *testing.T) {
	for _, g := range []growing{{}, {shared: 600}, {embedded: true}, {embedded: true, shared: 600}} {
		g.chats, g.turns, g.clients = 200, 10, 32
		t.Run(fmt.Sprintf("shared=%d,embedded=%v", g.shared, g.embedded), func(t *testing.T) {
			// The best of three: what else the machine runs makes an instant worker slow, and waits of 100 ms are to be
			// heeded. Under the race detector, or on a machine that is full, 130 to 650 requests a second are answered in
			// place of 3,000: that is no instant fleet at all.
			for try := 0; ; try++ {
				followed, busiest, rate := g.playInstant(t)
				want := .985
				if rate < 1000 {
					want = .9
				}
				if followed >= want && busiest <= 1.4 {
					return
				}
				if try == 2 {
					t.Fatalf("%.3f of later turns at their chat's worker, busiest %.2f of the mean; want at least %v and at most 1.4",
						followed, busiest, want)
				}
			}
		})
	}
}

// playInstant plays the chats over four instant workers, and returns the requests a second too.
func (g growing) playInstant(t *testing.T) (followed, busiest, rate float64) {
	var urls []string
	for i := range 4 {
		urls = append(urls, instant(t, fmt.Sprint("w", i+1)))
	}
	r := start(t, defaults(urls...), 4)
	defer r.stop()
	began := time.Now()
	followed, busiest = g.play(t, r, 4)
	rate = float64(g.chats*g.turns) / time.Since(began).Seconds()
	t.Logf("%.0f requests a second", rate)
	return followed, busiest, rate
}
