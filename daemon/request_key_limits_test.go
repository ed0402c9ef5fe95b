package daemon

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// limited are [[keys]] tables with these limits, by the names of the keys.
func limited(t *testing.T, limits ...string) string {
	t.Helper()
	dir, toml := t.TempDir(), ""
	for i := 0; i < len(limits); i += 2 {
		write(t, filepath.Join(dir, limits[i]), limits[i]+"-secret")
		toml += fmt.Sprintf("[[keys]]\nname = %q\nfile = %q\n%s\n", limits[i], filepath.Join(dir, limits[i]), limits[i+1])
	}
	return toml
}

// TestLimitsOfKeys: what a client of a key with limits sees below them and above them, in OpenAI's and in Anthropic's shape.
// Another key and its answers stay as they are.
func TestLimitsOfKeys(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	r := start(t, limited(t, "few", "requests_per_minute = 2", "small", "tokens_per_minute = 200", "free", "")+
		settings("prefixaware", f.URLs()...), 2)
	chat := `{"model":"sim","max_tokens":8,"messages":[{"role":"user","content":"hello"}]}`
	for _, path := range []string{"/v1/chat/completions", "/v1/messages"} {
		prefix := map[bool]string{true: "Anthropic-Ratelimit-", false: "X-Ratelimit-"}[path == "/v1/messages"]
		got := r.as("few", "POST", path, chat)
		if got.status != 200 || len(fieldsOf(got, prefix)) != 3 || len(fieldsOf(got, "X-Warmpath-Dropped")) > 0 {
			t.Errorf("%s: %d with %v", path, got.status, fieldsOf(got, "-Ratelimit-", prefix))
		}
		if free := r.as("free", "POST", path, chat); free.status != 200 || len(fieldsOf(free, prefix)) > 0 {
			t.Errorf("%s without limits: %d with %v", path, free.status, fieldsOf(free, prefix))
		}
	}
	over := r.as("few", "POST", "/v1/chat/completions", chat)
	wait, _ := strconv.Atoi(over.header.Get("Retry-After"))
	if over.status != 429 || over.code() != "rate_limit_exceeded" || wait < 1 || wait > 60 ||
		over.header.Get("X-Warmpath-Dropped") != "limit" || over.header.Get("X-Should-Retry") != "" ||
		over.header.Get("X-Ratelimit-Limit-Requests") != "2" || over.header.Get("X-Ratelimit-Remaining-Requests") != "0" ||
		!regexp.MustCompile(`^(\d+m)?\d+(\.\d+)?m?s$`).MatchString(over.header.Get("X-Ratelimit-Reset-Requests")) {
		t.Errorf("above the requests: %d %s, %v", over.status, over.body, over.header)
	}
	over = r.as("few", "POST", "/v1/messages", chat)
	reset, err := time.Parse(time.RFC3339, over.header.Get("Anthropic-Ratelimit-Requests-Reset"))
	if in := time.Until(reset); over.status != 429 || !strings.Contains(over.body, `"type":"rate_limit_error"`) || err != nil ||
		in < 0 || in > 2*time.Minute {
		t.Errorf("above the requests, Anthropic: %d %s, %v, %v", over.status, over.body, over.header, err)
	}
	huge := fmt.Sprintf(`{"model":"sim","max_tokens":8,"messages":[{"role":"user","content":%q}]}`, strings.Repeat("tide ", 2000))
	never := r.as("small", "POST", "/v1/chat/completions", huge)
	if never.status != 429 || never.code() != "rate_limit_exceeded" || never.header.Get("Retry-After") != "" ||
		never.header.Get("X-Should-Retry") != "false" {
		t.Errorf("a request that never fits: %d %s, %v", never.status, never.body, never.header)
	}
	if got := r.as("small", "POST", "/v1/chat/completions", chat); got.status != 200 {
		t.Errorf("one that fits: %d %s", got.status, got.body)
	}
}

// fieldsOf are the fields of an answer whose names begin so.
func fieldsOf(s seen, prefixes ...string) (all []string) {
	for name, v := range s.header {
		for _, p := range prefixes {
			if strings.HasPrefix(name, p) {
				all = append(all, name+": "+v[0])
			}
		}
	}
	return all
}

// taken is what the daemon has counted for a key.
func (r *running) taken(key string) (requests uint64, tokens float64, inFlight int) {
	for _, s := range r.limits.Counts(time.Now()) {
		if s.Key == key {
			return s.Used.Requests, s.Used.Tokens, s.InFlight
		}
	}
	return 0, 0, -1
}

// counted is what the engines have computed by their own metrics: prompts without what was found in a cache, and answers.
func counted(t *testing.T, f vllmsim.Fleet) (tokens float64) {
	t.Helper()
	for _, url := range f.URLs() {
		for line := range strings.Lines(do(t, "GET", url+"/metrics", "").body) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			name, _, _ = strings.Cut(name, "{")
			n, _ := strconv.ParseFloat(value, 64)
			switch name {
			case "vllm:prompt_tokens_total", "vllm:generation_tokens_total":
				tokens += n
			case "vllm:prefix_cache_hits_total":
				tokens -= n
			}
		}
	}
	return tokens
}

// bodies are requests to the endpoints that generate; %q is a text.
var bodies = [][2]string{
	{"/v1/chat/completions", `{"model":"sim","max_tokens":40,"messages":[{"role":"user","content":%q}]}`},
	{"/v1/chat/completions", `{"model":"sim","max_tokens":40,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":%q}]}`},
	{"/v1/chat/completions", `{"model":"sim","max_tokens":40,"stream":true,"messages":[{"role":"user","content":%q}]}`},
	{"/v1/completions", `{"model":"sim","max_tokens":30,"prompt":%q}`},
	{"/v1/completions", `{"model":"sim","max_tokens":30,"stream":true,"prompt":%q}`},
	{"/v1/messages", `{"model":"sim","max_tokens":40,"messages":[{"role":"user","content":%q}]}`},
	{"/v1/messages", `{"model":"sim","max_tokens":40,"stream":true,"messages":[{"role":"user","content":%q}]}`},
	{"/v1/responses", `{"model":"sim","max_output_tokens":40,"input":%q}`},
	{"/v1/responses", `{"model":"sim","max_output_tokens":40,"stream":true,"input":%q}`},
}

// TestSettledAsTheEnginesCount: after requests to all endpoints that generate, two of nine of them streams that ask for no
// usage, what a key has used differs from what the engines have computed by 2 % at most. Nothing of it is in flight.
func TestSettledAsTheEnginesCount(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	r := start(t, limited(t, "team", "tokens_per_minute = 100000000\nmax_in_flight = 100")+settings("prefixaware", f.URLs()...), 2)
	before := counted(t, f)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 60 {
				b := bodies[(i+n)%len(bodies)]
				text := fmt.Sprintf("Client %d, %s: ", i, b[1]) + strings.Repeat("the tide comes in twice a day. ", 80+4*n)
				if got := r.as("team", "POST", b[0], fmt.Sprintf(b[1], text)); got.status != 200 || got.err != nil {
					t.Errorf("%s: %d %.200s %v", b[0], got.status, got.body, got.err)
				}
			}
		})
	}
	all.Wait()
	eventually(t, "all have ended", func() bool { _, _, n := r.taken("team"); return n == 0 })
	requests, used, _ := r.taken("team")
	r.as("team", "POST", "/v1/embeddings", `{"model":"sim","input":"the tide"}`)
	r.as("team", "POST", "/tokenize", `{"model":"sim","prompt":"the tide"}`)
	eventually(t, "they have ended", func() bool { n, _, _ := r.taken("team"); return n == requests+2 })
	if _, more, _ := r.taken("team"); more <= used || more > used+20 {
		t.Errorf("an embedding used %.0f tokens, with a question for tokens", more-used)
	}
	computed := counted(t, f) - before
	off := math.Abs(used/computed - 1)
	t.Logf("%d requests used %.0f tokens; the engines have computed %.0f: %.2f %% off", requests, used, computed, 100*off)
	if requests != 240 || off > .02 {
		t.Errorf("%d requests used %.0f tokens; the engines have computed %.0f", requests, used, computed)
	}
}

// TestNoPlaceIsLost: aborts in every phase, workers that break off, answer 500 or reset, 400s and sessions that are
// refused leave nothing in flight.
func TestNoPlaceIsLost(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	broken := fakeWorker(t, func(rw http.ResponseWriter, req *http.Request) {
		_, _ = io.ReadAll(req.Body)
		switch n.Add(1) % 6 {
		case 0:
			panic(http.ErrAbortHandler)
		case 1:
			http.Error(rw, "{}", 500)
		case 2:
			http.Error(rw, `{"error":{"message":"no"}}`, 400)
		case 3:
			rw.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(rw, "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\n")
			rw.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case 4:
			time.Sleep(30 * time.Millisecond)
			http.Error(rw, "{}", http.StatusServiceUnavailable)
		default:
			rw.Header().Set("Content-Type", "application/json")
			io.WriteString(rw, `{"id":"x","choices":[{"index":0,"text":"a","finish_reason":"stop"}]}`)
		}
	})
	f := sims(t, 1, vllmsim.Config{Speed: 1})
	r := start(t, limited(t, "team", "max_in_flight = 8\ntokens_per_minute = 100000000\nrequests_per_minute = 1000000")+
		settings("roundrobin", f.URLs()[0], broken.URL), 2)
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			for k := range 40 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+(i*40+k)*7%90)*time.Millisecond)
				body := fmt.Sprintf(`{"model":"sim","max_tokens":400,"stream":%v,"prompt":"tide %d %d"}`, k%2 == 0, i, k)
				if k%13 == 0 {
					body = body[:len(body)/2]
				}
				req, _ := http.NewRequestWithContext(ctx, "POST", "http://"+r.Addr()+"/v1/completions", strings.NewReader(body))
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("X-Api-Key", "team-secret")
				if resp, err := testClient.Do(req); err == nil {
					_, _ = bufio.NewReader(resp.Body).ReadString('\n')
					if k%3 > 0 {
						_, _ = io.Copy(io.Discard, resp.Body)
					}
					resp.Body.Close()
				}
				cancel()
			}
		})
	}
	all.Wait()
	eventually(t, "nothing is in flight", func() bool { _, _, n := r.taken("team"); return n == 0 })
	if requests, tokens, _ := r.taken("team"); requests < 100 || tokens <= 0 {
		t.Errorf("%d requests of 240 have counted, with %.0f tokens", requests, tokens)
	}
	for range 8 { // all places are there
		if got := r.as("team", "GET", "/v1/responses/none", ""); got.status == 429 {
			t.Errorf("refused: %s", got.body)
		}
	}
}

// TestRoutersShareALimit: two routers of one Redis let in a key's requests as one router does. When Redis is gone each
// gives out half.
func TestRoutersShareALimit(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	f := sims(t, 1, vllmsim.Config{})
	toml := fmt.Sprintf("[cache]\nredis = %q\n", redis.URL()) + limited(t, "team", "max_in_flight = 10\nrequests_per_minute = 60") +
		settings("roundrobin", f.URLs()...)
	routers := []*running{start(t, toml, 1), start(t, toml, 1)}
	eventually(t, "the routers know of each other", func() bool {
		a := routers[0].limits.Counts(time.Now())[0]
		b := routers[1].limits.Counts(time.Now())[0]
		return a.Requests.Remaining < 60 && b.Requests.Remaining < 60
	})
	let := 0
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, r := range routers {
			if got := r.as("team", "POST", "/v1/completions", `{"model":"sim","max_tokens":1,"prompt":"a"}`); got.status == 200 {
				let++
			}
		}
	}
	if let < 10 || let > 60 { // each spreads its requests over the minute: nine at once, then one a second
		t.Errorf("two routers let in %d requests of 60 a minute in 6 s", let)
	}
	redis.Kill()
	eventually(t, "they have found out", func() bool { return routers[0].limits.Lost() && routers[1].limits.Lost() })
	eventually(t, "each gives out half", func() bool {
		s := routers[0].limits.Counts(time.Now())[0]
		requests, _, _ := routers[0].taken("team")
		return s.Requests.Remaining <= 30-int(requests)+1
	})
}
