package daemon

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
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

// asks sends a streamed request with header fields, and has cut called once with so many bytes of the answer. It returns
// all of that, and the error of its end.
func (r *running) asks(body string, n int, cut func(), header ...string) (text string, err error) {
	r.t.Helper()
	req, err := http.NewRequest("POST", "http://"+r.Addr()+continuable[0].path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	begin := make([]byte, n)
	if _, err := io.ReadFull(resp.Body, begin); err != nil {
		r.t.Fatalf("%v: %s", err, begin)
	}
	cut()
	rest, err := io.ReadAll(resp.Body)
	return string(begin) + string(rest), err
}

// killBusy kills the workers that have requests.
func (r *running) killBusy(workers []*vllmsim.Server) {
	for i, w := range r.describe()[0].Workers {
		if w.InFlight > 0 {
			_ = workers[i].Kill()
		}
	}
}

// TestContinuedIsNoTurn: the rest of an answer is no further turn of its session.
func TestContinuedIsNoTurn(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{ReplyTokens: 4000, Speed: 1})
	log := filepath.Join(t.TempDir(), "access.log")
	r := start(t, withServer(continues(settings("roundrobin", f.URLs()...)), fmt.Sprintf("access_log = %q", log)), 2)
	if _, err := r.asks(continuable[0].body("What is the tide?", 80), 2000, func() { r.killBusy(f) }, "X-Session-Id", "s"); err != nil {
		t.Error(err)
	}
	if r.metric("warmpath_continuations_total", `result="done"`) != 1 {
		t.Errorf("not continued: %v", continuations(r))
	}
	if s := r.do("POST", "/v1/completions", hello, "X-Session-Id", "s"); s.status != 200 {
		t.Errorf("%d %s", s.status, s.body)
	}
	eventually(t, "the lines", func() bool { return len(logged(t, log)) == 2 })
	for i, line := range logged(t, log) {
		if line["turn"] != float64(i+1) {
			t.Errorf("turn %d is logged as %v", i+1, line["turn"])
		}
	}
}

// TestContinuedLate: the time in which the client wants the first token does not bound the wait for another worker, as
// that token has come.
func TestContinuedLate(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{ReplyTokens: 4000, Speed: 1})
	r := start(t, withPool(continues(settings("roundrobin", f.URLs()...)), "max_in_flight = 1"), 2)
	body, busy := continuable[0].body("What is the tide?", 100), make(chan error, 1)
	text, err := r.asks(body, 1000, func() {
		go func() {
			_, err := readGotten("http://"+r.Addr(), continuable[0].path, continuable[0].body("Keep it busy.", 150), nil)
			busy <- err
		}()
		eventually(t, "both are busy", func() bool { return r.metric("warmpath_worker_in_flight") == 2 })
		_ = f[0].Kill()
	}, "X-Slo-Ttft-Ms", "500")
	if err != nil || !strings.HasSuffix(text, "data: [DONE]\n\n") || r.metric("warmpath_continuations_total", `result="done"`) != 1 {
		t.Errorf("%v, %v: %.300s", err, continuations(r), text[max(0, len(text)-300):])
	}
	if err := <-busy; err != nil {
		t.Errorf("the stream at the other worker: %v", err)
	}
}

// TestFileDrainsStreams: other workers go on with the streams of a worker that workers_file drains, in a pool that keeps
// no conversations too.
func TestFileDrainsStreams(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{ReplyTokens: 4000, Speed: 1})
	file := filepath.Join(t.TempDir(), "workers")
	list := func(drained string) {
		text := ""
		for i, url := range f.URLs() {
			id := fmt.Sprint("w", i+1)
			text += fmt.Sprintf("[[workers]]\nurl = %q\nid = %q\ndrain = %t\n", url, id, id == drained)
		}
		write(t, file, text)
	}
	list("")
	r := start(t, withPool(settings("roundrobin"), fmt.Sprintf("continue = 1\nworkers_file = %q", file)), 2)
	time.Sleep(2 * time.Second) // both have been seen undrained
	text, err := r.asks(continuable[0].body("What is the tide?", 400), 1000, func() {
		for _, w := range r.describe()[0].Workers {
			if w.InFlight > 0 {
				list(w.ID)
			}
		}
	})
	if err != nil || !strings.HasSuffix(text, "data: [DONE]\n\n") || r.metric("warmpath_continuations_total", `result="done"`) != 1 {
		t.Errorf("%v, %v: %.300s", err, continuations(r), text[max(0, len(text)-300):])
	}
}

// TestContinuedAndBrokenIsCharged: a stream that breaks off at its second worker too costs its key what both have sent.
func TestContinuedAndBrokenIsCharged(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{ReplyTokens: 4000, Speed: 1})
	r := start(t, continues(settings("roundrobin", f.URLs()...))+limited(t, "team", "tokens_per_minute = 100000"), 2)
	text, err := r.asks(continuable[0].body("What is the tide?", 1000), 2000, func() {
		r.killBusy(f)
		eventually(t, "the other worker goes on", func() bool { return r.metric("warmpath_worker_in_flight") == 1 && r.describe()[0].Up == 1 })
		time.Sleep(time.Second) // which is a hundred tokens
		r.killBusy(f)
	}, "Authorization", "Bearer team-secret")
	got, number := gotten{ids: map[string]bool{}}, 0
	for event := range strings.SplitSeq(text, "\n\n") {
		if data, ok := strings.CutPrefix(event, "data: "); ok {
			_ = got.event(&number, data)
		}
	}
	if err == nil || r.metric("warmpath_continuations_total", `result="broken"`) != 1 {
		t.Errorf("%v, %v", err, continuations(r))
	}
	if _, tokens, now := r.taken("team"); float64(tokens) < float64(len(got.text))/4 || now != 0 {
		t.Errorf("%v tokens are charged for a text of %d bytes, 4 a token; %d are in flight", tokens, len(got.text), now)
	}
}
