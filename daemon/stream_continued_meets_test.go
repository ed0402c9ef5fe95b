package daemon

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// continues is a pool in which another worker goes on with a stream.
func continues(toml string) string { return withPool(toml, "continue = 1") }

// killUnder kills the worker that has a request, once the client has some text. It may be given to readGotten.
func killUnder(r *running, workers []*vllmsim.Server) func(*gotten) {
	killed := false
	return func(s *gotten) {
		if killed || len(s.text) < 60 {
			return
		}
		killed = true
		for i, w := range r.describe()[0].Workers {
			if w.InFlight > 0 {
				_ = workers[i].Kill()
			}
		}
	}
}

// TestContinuedKeys: a continued stream costs its key what an undisturbed one costs, and holds its one place until its
// end.
func TestContinuedKeys(t *testing.T) {
	t.Parallel()
	sim := vllmsim.Config{ReplyTokens: 4000, Speed: 1}
	at := continuable[0]
	used := func(kill bool) (n [3]float64) {
		f := sims(t, 2, sim)
		toml := continues(settings("roundrobin", f.URLs()...)) + limited(t, "team",
			"max_in_flight = 1\ntokens_per_minute = 100000\nrequests_per_minute = 100")
		r := start(t, toml, 2)
		req, err := http.NewRequest("POST", "http://"+r.Addr()+at.path, strings.NewReader(at.body("What is the tide?", 150)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer team-secret")
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(err, resp)
		}
		defer resp.Body.Close()
		piece := make([]byte, 1000)
		if _, err := io.ReadFull(resp.Body, piece); err != nil {
			t.Fatal(err)
		}
		if kill {
			killUnder(r, f)(&gotten{text: string(piece)})
		}
		time.Sleep(300 * time.Millisecond)
		if s := r.do("POST", at.path, at.body("Another?", 1), "Authorization", "Bearer team-secret"); s.status != 429 {
			t.Errorf("kill %v: a second request gets %d while the stream has the key's place", kill, s.status)
		}
		if text, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(text), "[DONE]") {
			t.Errorf("kill %v: the stream ends with %v", kill, err)
		}
		eventually(t, "the key holds nothing", func() bool {
			return r.metric("warmpath_key_used_ratio", `limit="max_in_flight"`) == 0
		})
		if kill && r.metric("warmpath_continuations_total", `result="done"`) != 1 {
			t.Errorf("not continued: %v", continuations(r))
		}
		if n := r.metric("warmpath_account_leaks_total"); n != 0 {
			t.Errorf("%v leaks", n)
		}
		return [3]float64{r.metric("warmpath_key_used_total", `limit="tokens_per_minute"`),
			r.metric("warmpath_key_used_total", `limit="requests_per_minute"`), r.metric("warmpath_requests_total")}
	}
	if calm, got := used(false), used(true); got != calm || calm[0] < 150 {
		t.Errorf("tokens, requests of the key and requests: %v; undisturbed %v", got, calm)
	}
}

// TestContinuedAlias: the second half has the alias too, and a LoRA adapter goes on at a worker that lists it.
func TestContinuedAlias(t *testing.T) {
	t.Parallel()
	f := sims(t, 3, vllmsim.Config{ReplyTokens: 4000, Speed: 1, MaxLoras: 2, Loras: []string{"tides"}})
	calm := sims(t, 1, vllmsim.Config{ReplyTokens: 4000, Speed: 1000, MaxLoras: 2, Loras: []string{"tides"}})[0].URL()
	r := start(t, continues(settings("roundrobin", f.URLs()...))+"[[models]]\nname = \"sea\"\nto = [{ model = \"tides\" }]\n", 3)
	at := continuable[1]
	body := at.body("What is the tide?", 150)
	want, err := readGotten(calm, at.path, strings.Replace(body, `"sim"`, `"tides"`, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post("http://"+r.Addr()+at.path, "application/json", strings.NewReader(strings.Replace(body, `"sim"`, `"sea"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text := make([]byte, 4000)
	if _, err := io.ReadFull(resp.Body, text); err != nil {
		t.Fatal(err)
	}
	killUnder(r, f)(&gotten{text: string(text)})
	rest, err := io.ReadAll(resp.Body)
	text = append(text, rest...)
	got, number := gotten{ids: map[string]bool{}}, 0
	for event := range strings.SplitSeq(string(text), "\n\n") {
		if data, ok := strings.CutPrefix(event, "data: "); ok {
			_ = got.event(&number, data)
		}
	}
	if err != nil || got.text != want.text {
		t.Errorf("%v: %q; want %q", err, got.text, want.text)
	}
	if n := strings.Count(string(text), `"model"`); n == 0 || strings.Count(strings.ReplaceAll(string(text), " ", ""), `"model":"sea"`) != n {
		t.Errorf("the client sees other names: %.600s", text)
	}
	if r.metric("warmpath_continuations_total", `result="done"`) != 1 {
		t.Errorf("not continued: %v", continuations(r))
	}
}

// TestContinuedWaits: the continuation waits in the queue like any request while the other worker is full, and the
// client gets comments meanwhile.
func TestContinuedWaits(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{ReplyTokens: 4000, Speed: 1})
	r := start(t, withServer(withPool(continues(settings("roundrobin", f.URLs()...)), "max_in_flight = 1"), "keepalive = \"1s\""), 2)
	at := continuable[0]
	busy := make(chan error, 1)
	go func() {
		_, err := readGotten("http://"+r.Addr(), at.path, at.body("Keep it busy.", 250), nil)
		busy <- err
	}()
	eventually(t, "one worker is busy", func() bool { return r.metric("warmpath_worker_in_flight") == 1 })
	other := 0
	if r.describe()[0].Workers[0].InFlight > 0 {
		other = 1
	}
	body := at.body("What is the tide?", 60)
	got, err := readGotten("http://"+r.Addr(), at.path, body, func(s *gotten) {
		if len(s.text) > 40 {
			_ = f[other].Kill()
		}
	})
	want, _ := readGotten(sims(t, 1, vllmsim.Config{ReplyTokens: 4000, Speed: 1000})[0].URL(), at.path, body, nil)
	if err != nil || got.text != want.text || got.out != want.out || got.comments == 0 {
		t.Errorf("%v: %+v; want %+v, and comments", err, got, want)
	}
	if err := <-busy; err != nil {
		t.Errorf("the stream at the other worker: %v", err)
	}
}

// TestContinuedPair: where prefillers compute the prompts, the decoder alone changes: the rest is a prompt as any other.
func TestContinuedPair(t *testing.T) {
	t.Parallel()
	f := startRolesWith(t, 1, 2, rolesOptions{pool: "continue = 1", sim: vllmsim.Config{ReplyTokens: 4000}})
	calm := sims(t, 1, vllmsim.Config{ReplyTokens: 4000, Speed: 1000})[0].URL()
	at := continuable[1]
	body := at.body(longText("tide", 1500), 1500)
	killed := false
	got, err := readGotten("http://"+f.Addr(), at.path, body, func(s *gotten) {
		if killed || len(s.text) < 200 {
			return
		}
		killed = true
		for i, w := range f.describe()[0].Workers {
			if w.InFlight > 0 && i > 0 {
				_ = f.decode[i-1].Kill()
			}
		}
	})
	want, _ := readGotten(calm, at.path, body, nil)
	if err != nil || got.text != want.text || got.out != want.out || got.prompt != want.prompt {
		t.Errorf("%v: %d bytes, %d and %d tokens; want %d, %d and %d", err, len(got.text), got.prompt, got.out, len(want.text),
			want.prompt, want.out)
	}
	if n := f.metric("warmpath_continuations_total", `result="done"`); n != 1 {
		t.Errorf("not continued: %v", continuations(f.running))
	}
	if n := f.prefill[0].Stats().Finished; n != 2 {
		t.Errorf("%d prompts at the prefiller; want both halves'", n)
	}
	eventually(t, "no block is pinned", func() bool { return f.pinned() == 0 })
}

// TestDeadWorkerIsLoggedOnce: a worker that dies under many streams is a line or two of the log, not two for each stream.
// They have the same prompt, as the samples of a group have: it has ended one worker, and another one goes on with each.
func TestDeadWorkerIsLoggedOnce(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{ReplyTokens: 4000, Speed: 1})
	r, lines := startLogged(t, continues(settings("roundrobin", f.URLs()...)), 2)
	at := continuable[0]
	var all sync.WaitGroup
	var begun atomic.Int32
	for range 8 {
		all.Go(func() {
			once := sync.OnceFunc(func() { begun.Add(1) })
			g, err := readGotten("http://"+r.Addr(), at.path, at.body("What is the tide?", 150), func(s *gotten) {
				if len(s.text) > 20 {
					once()
				}
			})
			if err != nil || g.ended == "" {
				t.Errorf("a stream ends with %v: %+v", err, g)
			}
		})
	}
	eventually(t, "all streams have begun", func() bool { return begun.Load() == 8 })
	_ = f[0].Kill()
	all.Wait()
	for _, msg := range []string{"worker broke off in the middle of an answer", "another worker goes on with a stream"} {
		if n := len(lines.with(t, msg)); n < 1 || n > 2 {
			t.Errorf("%q stands %d times for 4 streams", msg, n)
		}
	}
}
