package daemon

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// chatting is a conversation that grows with each turn.
type chatting struct {
	id       int
	model    string // "" = sim
	messages []map[string]string
}

// turn sends the next turn, and returns the worker that answered and the share of the prompt that it had cached.
func (c *chatting) turn(t *testing.T, r *running, fields ...string) (worker string, cached float64) {
	t.Helper()
	text := strings.Repeat(fmt.Sprintf("line %d of conversation %d says this and that. ", len(c.messages), c.id), 30)
	c.messages = append(c.messages, map[string]string{"role": "user", "content": text})
	body, _ := json.Marshal(map[string]any{"model": cmp.Or(c.model, "sim"), "max_tokens": 8, "messages": c.messages})
	s := r.do("POST", "/v1/chat/completions", string(body), append(fields, "X-Warmpath-Explain", "1")...)
	var answer struct {
		Choices []struct{ Message struct{ Content string } }
		Usage   struct {
			Prompt  int `json:"prompt_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	if err := json.Unmarshal([]byte(s.body), &answer); err != nil || s.status != http.StatusOK {
		t.Fatalf("%d %s", s.status, s.body)
	}
	c.messages = append(c.messages, map[string]string{"role": "assistant", "content": answer.Choices[0].Message.Content})
	return s.header.Get("X-Warmpath-Worker"), float64(answer.Usage.Details.Cached) / float64(answer.Usage.Prompt)
}

// drainMoving drains the worker by the admin API, moves its conversations, and waits until none is left to move.
func drainMoving(t *testing.T, r *running, worker string) (moves int) {
	t.Helper()
	url := "http://" + r.AdminAddr() + "/api/v1/pools/main/workers/" + worker + "/drain?hand_over=30s"
	s := do(t, "POST", url, "")
	var answer struct{ Moves int }
	if err := json.Unmarshal([]byte(s.body), &answer); err != nil || s.status != http.StatusOK {
		t.Fatalf("%d %s", s.status, s.body)
	}
	eventually(t, "the conversations have moved", func() bool {
		return r.metric(`warmpath_conversation_moves_total{pool="main",result="moved"}`) >= float64(answer.Moves)
	})
	return answer.Moves
}

// TestHandOver: a worker is drained while conversations without names live on it. Their next turns find their prompts
// cached at other workers. Without a hand-over they do not.
func TestHandOver(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"prefixaware", "session"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			f := sims(t, 3, vllmsim.Config{})
			r := start(t, withHandOver(strategy, f.URLs()...), 3)
			var all []*chatting
			at := map[string][]*chatting{}
			for i := range 12 {
				c := &chatting{id: i}
				name := []string{"X-Session-Id", fmt.Sprint("talk-", i)}
				if strategy == "prefixaware" {
					name = nil
				}
				c.turn(t, r, name...)
				w, _ := c.turn(t, r, name...)
				at[w] = append(at[w], c)
				all = append(all, c)
			}
			leaves := "w1"
			if len(at[leaves]) == 0 {
				t.Fatalf("no conversation lives at %s", leaves)
			}
			if n := drainMoving(t, r, leaves); n != len(at[leaves]) {
				t.Errorf("%d conversations move; want %d", n, len(at[leaves]))
			}
			for _, c := range at[leaves] {
				var name []string
				if strategy == "session" {
					name = []string{"X-Session-Id", fmt.Sprint("talk-", c.id)}
				}
				if w, cached := c.turn(t, r, name...); w == leaves || cached < .6 {
					t.Errorf("conversation %d: its next turn went to %s, which had %.2f of it cached", c.id, w, cached)
				}
			}
			used := r.metric(`warmpath_conversation_moves_total{pool="main",result="used"}`)
			if used != float64(len(at[leaves])) {
				t.Errorf("%v moves were of use; want %d", used, len(at[leaves]))
			}
			if n := r.metric("warmpath_requests_total"); n != float64(2*len(all)+len(at[leaves])) {
				t.Errorf("%v requests are counted: the moves are none", n)
			}
		})
	}
}

func withHandOver(strategy string, urls ...string) string {
	return strings.Replace(settings(strategy, urls...), "[[pools.workers]]", "hand_over_bytes = 16777216\n[[pools.workers]]", 1)
}

// TestHandOverKeepsThemUntilTheyMove: what has not been moved goes on at the worker that leaves.
func TestHandOverKeepsThemUntilTheyMove(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	r := start(t, withHandOver("prefixaware", f.URLs()...), 2)
	c := &chatting{}
	c.turn(t, r)
	home, _ := c.turn(t, r)
	p := r.state.Load().pools[0]
	held := p.route.Book.Leave(home, time.Now())
	p.route.Workers.Drain(home, true, time.Now())
	if w, cached := c.turn(t, r); w != home || cached < .6 {
		t.Errorf("a turn before the move went to %s, which had %.2f of it cached", w, cached)
	}
	if w, _ := (&chatting{id: 7}).turn(t, r); w == home {
		t.Error("a new conversation went to the worker that leaves")
	}
	if len(held) != 1 {
		t.Fatalf("%d conversations are held; want 1", len(held))
	}
	p.route.Book.Release(held)
	if w, _ := c.turn(t, r); w == home {
		t.Error("after the time for moves is over it still goes to the worker that leaves")
	}
}

// TestHandOverToAPausedWorker: the log says which worker took nothing.
func TestHandOverToAPausedWorker(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{DevMode: true})
	r, lines := startLogged(t, withHandOver("roundrobin", f.URLs()...), 2)
	for i := range 2 {
		(&chatting{id: i}).turn(t, r)
	}
	if s := do(t, "POST", f.URLs()[1]+"/pause?mode=keep", ""); s.status != 200 {
		t.Fatalf("%+v", s)
	}
	do(t, "POST", "http://"+r.AdminAddr()+"/api/v1/pools/main/workers/w1/drain?hand_over=1s", "")
	if got := lines.wait(t, "conversations have moved"); got["last_error"] != "worker w2 did not answer in time" {
		t.Errorf("%v", got)
	}
}

// TestHandOverThroughATier: the workers share a tier, which has lost all when one of them is drained. It stores its
// conversations there, and the others load them.
func TestHandOverThroughATier(t *testing.T) {
	t.Parallel()
	c := vllmsim.Config{}
	c.Shared = vllmsim.NewTier(1_000_000, c)
	f := sims(t, 3, c)
	text := strings.Replace(withHandOver("prefixaware", f.URLs()...), "[[pools.workers]]",
		"shared_kv_tokens = 1_000_000\n[[pools.workers]]", 1)
	r := start(t, text, 3)
	at := twoTurns(t, r, 9)
	const leaves = "w1"
	if len(at[leaves]) == 0 {
		t.Fatal("no conversation lives at the worker that leaves")
	}
	c.Shared.Clear()
	drainMoving(t, r, leaves)
	theirs := 0.
	for _, w := range f[1:] {
		theirs += float64(w.Stats().SharedTokens)
	}
	loaded := r.metric(`warmpath_conversation_move_tokens_total{pool="main",result="loaded"}`)
	if moved := r.metric(`warmpath_conversation_move_tokens_total{pool="main",result="moved"}`); loaded < .9*moved || theirs < .8*loaded {
		t.Errorf("%v of %v tokens count as loaded; the workers loaded %v", loaded, moved, theirs)
	}
	for _, way := range []string{"store", "load"} {
		if r.metric(`warmpath_conversation_move_seconds_total{pool="main",way="`+way+`"}`) == 0 {
			t.Errorf("no time for %s", way)
		}
	}
	for _, c := range at[leaves] {
		if w, cached := c.turn(t, r); w == leaves || cached < .6 {
			t.Errorf("conversation %d: its next turn went to %s, which had %.2f of it cached", c.id, w, cached)
		}
	}
}

// TestMovesAreCountedInBytes: where LMCache's chunks show how large a token of the model is, the KV that moves is counted
// in bytes too. Where they do not, tokens alone are.
func TestMovesAreCountedInBytes(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"sim", "another"} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			f := sims(t, 2, vllmsim.Config{})
			r := start(t, "[kv_cache]\nresp = '127.0.0.1:0'\nmax_bytes = 33554432\n"+
				withHandOver("prefixaware", f.URLs()...), 2)
			putChunk(t, r.kvCache.RESPAddr(), model+"@1@0@ab@half")
			c := &chatting{}
			c.turn(t, r)
			leaves, _ := c.turn(t, r)
			drainMoving(t, r, leaves)
			c.turn(t, r)
			all := do(t, "GET", "http://"+r.AdminAddr()+"/metrics", "").body
			for _, result := range []string{"moved", "used"} {
				labels := `{pool="main",result="` + result + `"}`
				tokens := r.metric("warmpath_conversation_move_tokens_total" + labels)
				is := strings.Contains(all, "warmpath_conversation_move_bytes_total"+labels)
				if bytes := r.metric("warmpath_conversation_move_bytes_total" + labels); tokens == 0 || is != (model == "sim") ||
					is && math.Abs(bytes-1024*tokens) > 200 {
					t.Errorf("%s: %v tokens, %v bytes", result, tokens, bytes)
				}
			}
			said := r.describe()[0].Moves
			if !strings.HasPrefix(said, "1 conversations moved (") || strings.Contains(said, "of KV") != (model == "sim") ||
				!strings.Contains(said, "1 of them had their next turn where they moved to") {
				t.Errorf("the status says %q", said)
			}
		})
	}
}

// TestHandOverIsOff: a pool that keeps no conversations says so, and drains nothing.
func TestHandOverIsOff(t *testing.T) {
	t.Parallel()
	f := sims(t, 1, vllmsim.Config{})
	r := start(t, settings("prefixaware", f.URLs()...), 1)
	url := "http://" + r.AdminAddr() + "/api/v1/pools/main/workers/w1/drain?hand_over="
	if s := do(t, "POST", url+"30s", ""); s.status != http.StatusConflict || !strings.Contains(s.body, "hand_over_bytes") {
		t.Errorf("%d %s", s.status, s.body)
	}
	if s := do(t, "POST", url+"soon", ""); s.status != http.StatusBadRequest {
		t.Errorf("%d %s", s.status, s.body)
	}
	if s := r.describe()[0].Workers[0].State; s != "up" {
		t.Errorf("the worker is %s", s)
	}
}

// TestHandOverOfAKey: conversations of a key with labels and limits, under a name that leads to two models, move to
// workers that the key may use, with the model that they had, and take nothing of the key's limits.
func TestHandOverOfAKey(t *testing.T) {
	t.Parallel()
	f := sims(t, 3, vllmsim.Config{Models: []string{"sim", "other"}})
	text := withHandOver("prefixaware", f.URLs()...)
	for i, zone := range []string{"a", "a", "b"} {
		id := fmt.Sprintf("id = \"w%d\"\n", i+1)
		text = strings.Replace(text, id, id+fmt.Sprintf("labels = { zone = %q }\n", zone), 1)
	}
	r := start(t, limited(t, "team", "workers = \"zone=a\"\nexplain = true\nmax_in_flight = 1\nrequests_per_minute = 1000\n")+
		"[[models]]\nname = \"name\"\nto = [{ model = \"sim\" }, { model = \"other\" }]\n"+text, 3)
	at := map[string][]*chatting{}
	for i := range 8 {
		c := &chatting{id: i, model: "name"}
		c.turn(t, r, "X-Api-Key", "team-secret")
		w, _ := c.turn(t, r, "X-Api-Key", "team-secret")
		at[w] = append(at[w], c)
	}
	leaves, other := "w1", "w2"
	if len(at[leaves]) == 0 {
		leaves, other = other, leaves
	}
	requests, tokens, _ := r.taken("team")
	if n := drainMoving(t, r, leaves); n != len(at[leaves]) {
		t.Errorf("%d conversations move; want %d", n, len(at[leaves]))
	}
	if n, used, now := r.taken("team"); n != requests || used != tokens || now != 0 {
		t.Errorf("the moves took %d requests and %v tokens of the key, %d are in flight", n-requests, used-tokens, now)
	}
	for _, c := range at[leaves] {
		if w, cached := c.turn(t, r, "X-Api-Key", "team-secret"); w != other || cached < .6 {
			t.Errorf("conversation %d: its next turn went to %s, which had %.2f of it cached; want %s", c.id, w, cached, other)
		}
	}
}

// TestHandOverAgain: the command is repeated while conversations move, then the worker is put back.
func TestHandOverAgain(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{Speed: 1})
	r := start(t, withHandOver("prefixaware", f.URLs()...), 2)
	var all []*chatting
	home := ""
	for i := 0; len(all) < 4; i++ {
		c := &chatting{id: i}
		w, _ := c.turn(t, r)
		if home = cmp.Or(home, w); w == home {
			all = append(all, c)
		}
	}
	p := r.state.Load().pools[0]
	for range 3 { // each ends the one before, and what that has not moved is moved
		if _, _, known, err := p.HandOver(home, time.Minute); !known || err != nil {
			t.Fatal(known, err)
		}
	}
	eventually(t, "all have moved", func() bool {
		return p.route.Book.Counts().Moved == len(all) && len(p.route.Book.Leave(home, time.Now())) == 0
	})
	for _, c := range all {
		if w, cached := c.turn(t, r); w == home || cached < .4 {
			t.Errorf("conversation %d: its next turn went to %s, which had %.2f of it cached", c.id, w, cached)
		}
	}
	p.Stay(home)
	eventually(t, "nothing is kept of moves that are over", func() bool {
		p.leaving.mu.Lock()
		defer p.leaving.mu.Unlock()
		return len(p.leaving.moves) == 0
	})
}

// TestHandOverStreams: other workers go on with the streams of a worker that is to stop, and it is held to have failed
// in nothing.
func TestHandOverStreams(t *testing.T) {
	t.Parallel()
	f := sims(t, 3, vllmsim.Config{ReplyTokens: 4000, Speed: 1})
	calm := sims(t, 1, vllmsim.Config{ReplyTokens: 4000, Speed: 1000})[0].URL()
	r := start(t, strings.Replace(settings("roundrobin", f.URLs()...), "health_interval", "continue = 1\nhealth_interval", 1), 3)
	const streams = 12
	var begun, all sync.WaitGroup
	begun.Add(streams)
	got, errs := make([]gotten, streams), make([]error, streams)
	body := func(i int) string {
		return continuable[i%4].body(fmt.Sprintf("Question %d: what is the tide?", i), 500)
	}
	for i := range streams {
		all.Go(func() {
			once := sync.OnceFunc(begun.Done)
			defer once()
			got[i], errs[i] = readGotten("http://"+r.Addr(), continuable[i%4].path, body(i), func(s *gotten) {
				if len(s.text) > 20 {
					once()
				}
			})
		})
	}
	begun.Wait()
	began, at := time.Now(), r.describe()[0].Workers[0].InFlight
	s := do(t, "POST", "http://"+r.AdminAddr()+"/api/v1/pools/main/workers/w1/drain?hand_over=2s", "")
	var answer struct{ Moves, Streams int }
	if err := json.Unmarshal([]byte(s.body), &answer); err != nil || s.status != http.StatusOK || answer.Moves != 0 ||
		answer.Streams != at || at < 2 {
		t.Fatalf("%d %s; %d requests are at the worker", s.status, s.body, at)
	}
	eventually(t, "the worker has nothing to do", func() bool { return r.describe()[0].Workers[0].InFlight == 0 })
	if took := time.Since(began); took < 200*time.Millisecond || took > 4*time.Second {
		t.Errorf("its streams go on elsewhere after %v", took)
	}
	all.Wait()
	for i := range streams {
		want, err := readGotten(calm, continuable[i%4].path, body(i), nil)
		if err != nil {
			t.Fatal(err)
		}
		if g := &got[i]; errs[i] != nil || g.text != want.text || g.out != want.out || g.prompt != want.prompt || g.ended != want.ended {
			t.Errorf("%d: %v %+v; want %+v", i, errs[i], *g, want)
		}
	}
	if n := r.metric("warmpath_continuations_total", `result="done"`); int(n) != at {
		t.Errorf("%v continuations; want %d", n, at)
	}
	if w := r.describe()[0].Workers[0]; w.State != "draining" {
		t.Errorf("the worker is %s: %s", w.State, w.WhyOf())
	}
}

// TestHandOverOfAConversationWhoseStreamGoesOn: another worker goes on with the answer while the conversation is moved. It
// has all of it, and the next turn goes there.
func TestHandOverOfAConversationWhoseStreamGoesOn(t *testing.T) {
	t.Parallel()
	f := sims(t, 3, vllmsim.Config{ReplyTokens: 4000, Speed: 1})
	toml := strings.Replace(withHandOver("prefixaware", f.URLs()...), "health_interval", "continue = 1\nhealth_interval", 1)
	r := start(t, toml, 3)
	const streams = 9
	var begun, all sync.WaitGroup
	begun.Add(streams)
	got, errs := make([]gotten, streams), make([]error, streams)
	prompt := func(i int) string { return strings.Repeat(fmt.Sprintf("Question %d. ", i), 20) }
	for i := range streams {
		all.Go(func() {
			once := sync.OnceFunc(begun.Done)
			defer once()
			got[i], errs[i] = readGotten("http://"+r.Addr(), continuable[0].path, continuable[0].body(prompt(i), 400),
				func(s *gotten) {
					if len(s.text) > 20 {
						once()
					}
				})
		})
	}
	begun.Wait()
	if s := do(t, "POST", "http://"+r.AdminAddr()+"/api/v1/pools/main/workers/w1/drain?hand_over=6s", ""); s.status != 200 {
		t.Fatal(s.status, s.body)
	}
	all.Wait()
	if n := r.metric("warmpath_continuations_total", `result="done"`); n == 0 {
		t.Fatal("no other worker has gone on with a stream")
	}
	for i := range streams {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		c := &chatting{id: i, messages: []map[string]string{{"role": "system", "content": "Be brief."},
			{"role": "user", "content": prompt(i)}, {"role": "assistant", "content": got[i].text}}}
		if w, cached := c.turn(t, r); w == "w1" || cached < .4 { // of which the first prompt is a tenth
			t.Errorf("conversation %d: its next turn went to %s, which had %.2f of it cached", i, w, cached)
		}
	}
}

// idOf returns the id of the worker at a URL in inFile's file.
func idOf(url string) string { return "w" + url[strings.LastIndex(url, ":")+1:] }

// inFile starts a daemon whose workers come from a file, and returns what writes the file anew: the workers' URLs, the
// drained ones with a minus sign before.
func inFile(t *testing.T, workers int, urls ...string) (r *running, set func(urls ...string)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "workers.toml")
	set = func(urls ...string) {
		t.Helper()
		text := ""
		for _, u := range urls {
			url, drained := strings.CutPrefix(u, "-")
			text += fmt.Sprintf("[[workers]]\nurl = %q\nid = %q\ndrain = %t\n", url, idOf(url), drained)
		}
		write(t, file, text)
	}
	set(urls...)
	toml, _, _ := strings.Cut(withHandOver("prefixaware", urls[0]), "[[pools.workers]]")
	return start(t, toml+fmt.Sprintf("workers_file = %q\n", file), workers), set
}

// twoTurns has conversations of two turns each, by the worker that has them.
func twoTurns(t *testing.T, r *running, n int) map[string][]*chatting {
	t.Helper()
	at := map[string][]*chatting{}
	for i := range n {
		c := &chatting{id: i}
		c.turn(t, r)
		w, _ := c.turn(t, r)
		at[w] = append(at[w], c)
	}
	return at
}

// TestHandOverWithoutACommand: the file of workers drains one, as a pod that ends does, or leaves it out. Its
// conversations move to the others.
func TestHandOverWithoutACommand(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"drained", "gone"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			urls := sims(t, 3, vllmsim.Config{}).URLs()
			r, set := inFile(t, 3, urls...)
			at := twoTurns(t, r, 9)
			leaves := idOf(urls[0])
			if len(at[leaves]) == 0 {
				t.Fatal("no conversation lives at the worker that leaves")
			}
			time.Sleep(2 * time.Second) // it has been seen undrained
			if how == "drained" {
				set("-"+urls[0], urls[1], urls[2])
			} else {
				set(urls[1], urls[2])
			}
			eventually(t, "its conversations have moved", func() bool {
				return r.metric(`warmpath_conversation_moves_total{pool="main",result="moved"}`) >= float64(len(at[leaves]))
			})
			for _, c := range at[leaves] {
				if w, cached := c.turn(t, r); w == leaves || cached < .6 {
					t.Errorf("conversation %d: its next turn went to %s, which had %.2f of it cached", c.id, w, cached)
				}
			}
		})
	}
}

// TestAWorkerThatComesGetsConversations: the file of workers has one more. It gets its share of the conversations, and
// finds their next turns cached.
func TestAWorkerThatComesGetsConversations(t *testing.T) {
	t.Parallel()
	urls := sims(t, 3, vllmsim.Config{}).URLs()
	r, set := inFile(t, 2, urls[:2]...)
	at := twoTurns(t, r, 18)
	time.Sleep(2 * time.Second)
	set(urls...)
	eventually(t, "it has a third of them", func() bool {
		return r.metric(`warmpath_conversation_moves_total{pool="main",result="moved"}`) >= 4
	})
	comes, its := idOf(urls[2]), 0
	for _, all := range at {
		for _, c := range all {
			w, cached := c.turn(t, r)
			if w == comes {
				its++
			}
			if cached < .6 {
				t.Errorf("conversation %d: its next turn went to %s, which had %.2f of it cached", c.id, w, cached)
			}
		}
	}
	if its < 4 || its > 8 {
		t.Errorf("the worker that came has %d of 18 conversations; want 6", its)
	}
}

// TestAWorkerDiesDuringItsHandOver: each next turn is answered elsewhere, those that have moved find their prompts
// cached, and the worker that comes back with an empty cache gets requests again once it is put back.
func TestAWorkerDiesDuringItsHandOver(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{Speed: 1})
	r := start(t, withHandOver("prefixaware", f.URLs()...), 2)
	at := twoTurns(t, r, 8)
	const leaves = "w1"
	if len(at[leaves]) < 2 {
		t.Fatalf("%d conversations live at the worker that leaves", len(at[leaves]))
	}
	url := "http://" + r.AdminAddr() + "/api/v1/pools/main/workers/" + leaves + "/drain"
	if s := do(t, "POST", url+"?hand_over=30s", ""); s.status != http.StatusOK {
		t.Fatalf("%d %s", s.status, s.body)
	}
	if err := f[0].Kill(); err != nil {
		t.Fatal(err)
	}
	first := at[leaves][0]
	if w, _ := first.turn(t, r); w != "w2" { // at once, moved or not
		t.Errorf("the next turn went to %s", w)
	}
	eventually(t, "the others have moved", func() bool {
		return len(r.state.Load().pools[0].Moving()) == 0
	})
	for _, c := range at[leaves][1:] {
		if w, cached := c.turn(t, r); w != "w2" || cached < .6 {
			t.Errorf("conversation %d: its next turn went to %s, which had %.2f of it cached", c.id, w, cached)
		}
	}
	if err := f[0].Restart(); err != nil {
		t.Fatal(err)
	}
	if s := do(t, "DELETE", url, ""); s.status != http.StatusOK {
		t.Fatalf("%d %s", s.status, s.body)
	}
	eventually(t, "the worker gets requests again", func() bool {
		w, _ := (&chatting{id: 100 + int(time.Now().UnixNano()%1e6)}).turn(t, r)
		return w == leaves
	})
	if w, _ := first.turn(t, r); w == "" {
		t.Error("no worker answers a conversation that has moved")
	}
}
