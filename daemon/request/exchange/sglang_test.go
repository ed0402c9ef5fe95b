package exchange

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// sgl is a scene of SGLang's servers: prefillers p0 and p1, decoders d0 and d1, and b0 if one serves alone. A decoder
// answers 400 to what has no room (scheduler.py: "Disaggregated request received without bootstrap room id"), and else
// waits for a prefiller in each of its rooms. Of n answers to a prompt all share its room, so that they wait for ever
// (sglang 30723).
type sgl struct {
	*scene

	mu    sync.Mutex        // guards all below
	seen  []string          // "p0" for each request at a worker
	used  []string          // the rooms of all prefills
	by    map[string]string // the prefiller of a room
	rooms map[string]chan struct{}
	once  string            // the worker that does so with one request
	slow  int               // prefills of a prompt with the word slowly
	fails map[string]string // what a worker does with a request, by its id: a status, "reset" or "" = it serves
}

// newSGL makes one with these workers.
func newSGL(t *testing.T, ids ...string) *sgl {
	t.Helper()
	g := &sgl{scene: newScene(t), by: map[string]string{}, rooms: map[string]chan struct{}{}, fails: map[string]string{}}
	roles := map[byte]worker.Role{'p': worker.Prefills, 'd': worker.Decodes, 'b': worker.Both}
	labels := map[byte]map[string]string{'p': {"role": "prefill"}, 'd': {"role": "decode"}}
	var specs []worker.Spec
	clients := map[string]*upstream.Client{}
	for _, id := range ids {
		l := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(id, w, r) }))
		t.Cleanup(l.Close)
		t.Cleanup(l.CloseClientConnections)
		specs = append(specs, worker.Spec{ID: id, URL: l.URL, Role: roles[id[0]], Labels: labels[id[0]]})
		client, err := upstream.New(upstream.Config{URL: l.URL})
		if err != nil {
			t.Fatal(err)
		}
		clients[l.URL] = client
	}
	g.pool.Pairing = &epoch.Pairing{Connector: pair.SGLang, Threshold: 100, Bootstrap: 8998,
		Prefillers: worker.Fence{"role=prefill"}, Decoders: worker.Fence{"!role=prefill"}}
	g.pool.Clients.Set(clients)
	g.pool.Workers.Configure(worker.Config{Watcher: g.prober, SlowStart: time.Nanosecond, RetryBudget: 1})
	g.pool.Workers.Update(specs, time.Now())
	healthy := func() {
		for _, id := range g.prober.ids {
			g.pool.Workers.Healthy(id, time.Now())
		}
	}
	healthy()
	stop, tick := make(chan struct{}), time.NewTicker(10*time.Millisecond)
	t.Cleanup(func() { close(stop) })
	go func() {
		for {
			select {
			case <-tick.C:
				healthy()
			case <-stop:
				return
			}
		}
	}()
	return g
}

// serve plays a server.
func (g *sgl) serve(id string, w http.ResponseWriter, r *http.Request) {
	var b struct {
		N      int             `json:"n"`
		Prompt json.RawMessage `json:"prompt"`
		Host   json.RawMessage `json:"bootstrap_host"`
		Port   json.RawMessage `json:"bootstrap_port"`
		Room   json.RawMessage `json:"bootstrap_room"`
	}
	if json.NewDecoder(r.Body).Decode(&b) != nil {
		http.Error(w, `{"message":"no JSON"}`, 400)
		return
	}
	if id[0] == 'p' && strings.Contains(string(b.Prompt), "slowly") {
		g.mu.Lock()
		g.slow++
		g.mu.Unlock()
		select {
		case <-time.After(3 * leastLimit):
		case <-r.Context().Done():
			return
		}
	}
	var prompts, rooms []json.RawMessage
	if json.Unmarshal(b.Prompt, &prompts) != nil || len(prompts) > 0 && prompts[0][0] != '"' && prompts[0][0] != '[' {
		prompts = []json.RawMessage{b.Prompt}
	}
	if json.Unmarshal(b.Room, &rooms) != nil {
		rooms = []json.RawMessage{b.Room}
	}
	g.mu.Lock()
	g.seen = append(g.seen, id)
	fails, waits := g.fails[id], []chan struct{}{}
	if g.once == id {
		g.once, g.fails[id] = "", ""
	}
	for i, room := range rooms {
		if id[0] == 'p' {
			g.used = append(g.used, string(room))
			if by := g.by[string(room)]; by != "" {
				g.t.Errorf("%s and then %s have one room", by, id)
			}
			g.by[string(room)] = id
		}
		both := fmt.Sprintf("%s %s", room, map[bool]string{true: string(b.Host)}[i == 0])
		if g.rooms[both] == nil {
			g.rooms[both] = make(chan struct{})
		}
		waits = append(waits, g.rooms[both])
	}
	g.mu.Unlock()
	switch {
	case fails == "hang":
		<-r.Context().Done()
		return
	case fails == "reset":
		panic(http.ErrAbortHandler)
	case fails != "":
		var status int
		_, _ = fmt.Sscan(fails, &status)
		http.Error(w, `{"error":{"message":"refused by `+id+`"}}`, status)
		return
	case id[0] == 'b':
		give(w, `{"cached_tokens":1}`, "")
		return
	case b.Room == nil || len(rooms) != max(1, len(prompts)):
		http.Error(w, `{"object":"error","message":"Disaggregated request received without bootstrap room id"}`, 400)
		return
	case id[0] == 'p':
		for _, c := range waits {
			close(c)
		}
		give(w, `{"cached_tokens":7}`, "")
		return
	}
	for _, c := range waits {
		select {
		case <-c:
		case <-r.Context().Done():
			return
		}
	}
	if b.N > 1 {
		<-r.Context().Done()
		return
	}
	give(w, `{"cached_tokens":896}`, "")
}

// fail sets what a worker does with requests.
func (g *sgl) fail(id, how string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fails[id] = how
}

// failOnce is fail for one request.
func (g *sgl) failOnce(id, how string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.once = id
	g.fails[id] = how
}

// took returns at which workers requests came since the last call, sorted.
func (g *sgl) took() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	slices.Sort(g.seen)
	defer func() { g.seen = nil }()
	return strings.Join(g.seen, " ")
}

// post sends a body, and returns the status and the text of the answer. The end of a long body is in its tail.
func (g *sgl) post(path, body, tail string) (int, string, *message.Inbound) {
	in := inbound("POST", path, body)
	in.Epoch, in.ID = g.epoch, "id-1"
	if tail != "" {
		in.Tail, in.Left = &rest{Reader: *strings.NewReader(tail)}, int64(len(tail))
	}
	life := new(message.Life)
	alone.Begin(life)
	defer life.Leave()
	out := g.Serve(life, in)
	text := string(out.Body)
	if out.Stream != nil {
		all, _ := io.ReadAll(out.Stream)
		text = string(all)
		_ = out.Stream.Close()
	}
	return out.Status, text, in
}

const shortChat = `{"messages":[{"role":"user","content":"hi"}]}`

// TestSGLangWhole: what cannot be split goes to a server that serves alone, and is refused in words where there is none.
func TestSGLangWhole(t *testing.T) {
	t.Parallel()
	f := func(path, body, tail, says string) {
		t.Helper()
		g := newSGL(t, "p0", "d0")
		status, text, _ := g.post(path, body, tail)
		if status != 400 || !strings.Contains(text, says) || !strings.Contains(text, `role = \"both\"`) || g.took() != "" {
			t.Errorf("%s, %.60s: %d %s", path, body, status, text)
		}
		g = newSGL(t, "p0", "d0", "b0")
		for range 3 {
			if status, text, _ := g.post(path, body, tail); status != 200 || g.took() != "b0" {
				t.Errorf("%s, %.60s: %d %s", path, body, status, text)
			}
		}
	}
	words := strings.Repeat("word ", 2000)
	f(chatPath, `{"n":2,"messages":[{"role":"user","content":"hi"}]}`, "", "several answers (n)")
	f("/v1/completions", `{"n":3,"prompt":["a","b"]}`, "", "several answers (n)")
	f("/v1/responses", `{"input":"hi","previous_response_id":"resp_1"}`, "", "previous_response_id")
	f(chatPath, `{"messages":[{"role":"user","content":"`+words, words+`"}]}`, "server.buffer_body_bytes")
	f("/v1/responses", `{"input":"hi","truncation":"auto"}`, "", "truncation")
}

// TestSGLangSplits: all that has one answer to a prompt is split, short or cached, and several prompts have a room each.
// A server that serves alone joins no pair, also if a strategy names it.
func TestSGLangSplits(t *testing.T) {
	t.Parallel()
	g := newSGL(t, "p0", "d0")
	for _, c := range []struct{ path, body string }{
		{chatPath, shortChat}, {chatPath, shortChat},
		{"/v1/completions", `{"prompt":"hi","prompt_logprobs":1}`},
		{"/v1/completions", `{"prompt":["hi"]}`},
		{"/v1/completions", `{"prompt":[1,2,3]}`},
		{"/v1/completions", `{"prompt":["hi","ho","ha"]}`},
		{"/v1/completions", `{"prompt":[[1,2],[3]],"bootstrap_room":5}`},
		{"/v1/messages", `{"max_tokens":5,"messages":[{"role":"user","content":"hi"}]}`},
		{"/v1/responses", `{"input":"hi"}`},
	} {
		status, text, _ := g.post(c.path, c.body, "")
		if got := g.took(); status != 200 || got != "d0 p0" {
			t.Errorf("%s: %d %s, at %s", c.body, status, text, got)
		}
	}
	slices.Sort(g.used)
	if n := len(g.used); n != 12 || len(slices.Compact(g.used)) != n {
		t.Errorf("rooms %v; want 12 of their own", g.used)
	}
	g = newSGL(t, "p0", "d0", "b0")
	g.pool.Strategy.Replace(pairsOf("b0", "p0"))
	if status, text, _ := g.post(chatPath, shortChat, ""); status != 200 || g.took() != "b0" {
		t.Errorf("a pair with a server that serves alone: %d %s", status, text)
	}
}

// TestSGLangPrefillFails: a prefill that fails goes to another prefiller, in another room. If none is left the client gets
// 503 in words, or a server that serves alone. What a prefiller finds wrong with a request its client gets.
func TestSGLangPrefillFails(t *testing.T) {
	t.Parallel()
	f := func(how string, others, want int, workers ...string) {
		t.Helper()
		g := newSGL(t, workers...)
		g.pool.Strategy.Replace(pairsOf("d0", "p0"))
		g.fail("p0", how)
		if others != 200 {
			g.fail("p1", fmt.Sprint(others))
		}
		status, text, in := g.post(chatPath, shortChat, "")
		says := map[int]string{200: "hi", 400: "refused by p0", 503: "no prefiller"}[want]
		if status != want || !strings.Contains(text, says) || in.Seen.Split == nil && want != 200 {
			t.Errorf("%s, then %d, of %v: %d %s, %+v", how, others, workers, status, text, in.Seen.Split)
		}
		if log := g.log.String(); strings.Contains(log, "the decode servers of its pool compute no prompts") == (how[0] == '4') {
			t.Errorf("%s, then %d: the log: %s", how, others, log)
		}
	}
	all := []string{"p0", "p1", "d0", "d1"}
	for _, how := range []string{"500", "503", "reset"} {
		f(how, 200, 200, all...)
		f(how, 500, 503, all...)
		f(how, 200, 503, "p0", "d0", "d1")
		f(how, 200, 200, "p0", "d0", "b0")
	}
	f("400", 200, 400, all...)
	f("422", 200, 422, all...)
	f("none", 200, 503, "d0", "d1")
	f("none", 200, 200, "d0", "b0")
}

// TestSGLangPrefillerCloses: the only prefiller closes the connection without an answer. It gets the prompt once more, in
// another room, as it may just have closed an idle connection.
func TestSGLangPrefillerCloses(t *testing.T) {
	t.Parallel()
	g := newSGL(t, "p0", "d0")
	g.failOnce("p0", "reset")
	if status, text, _ := g.post(chatPath, shortChat, ""); status != 200 || strings.Count(g.took(), "p0") != 2 {
		t.Errorf("%d %s", status, text)
	}
}

// TestSGLangPrefillHangs: a prefiller that hangs is given up in seconds, and another one gets the prompt; later prompts do
// not wait for it. If all hang, the client gets 503 in words.
func TestSGLangPrefillHangs(t *testing.T) {
	t.Parallel()
	f := func(want int, workers ...string) {
		t.Helper()
		g := newSGL(t, workers...)
		g.pool.HeaderTimeout = time.Minute
		g.pool.Strategy.Replace(pairsOf("d0", "p0"))
		for i := range 4 {
			if status, text, _ := g.post(chatPath, strings.Replace(shortChat, "hi", fmt.Sprint(i), 1), ""); status != 200 {
				t.Fatalf("%d %s", status, text)
			}
		}
		g.fail("p0", "hang")
		for range 3 {
			began := time.Now()
			status, text, _ := g.post(chatPath, shortChat, "")
			if took := time.Since(began); status != want || took > 5*time.Second {
				t.Errorf("%v: %d after %v: %s", workers, status, took, text)
			}
		}
	}
	f(200, "p0", "p1", "d0")
	f(503, "p0", "d0")
}

// leastLimit is after how long a prefiller may be given up.
const leastLimit = 500 * time.Millisecond

// TestSGLangPrefillerIsBusy: a prefiller that takes long for a prompt, and works on for others, keeps it: no decode server
// could compute it.
func TestSGLangPrefillerIsBusy(t *testing.T) {
	t.Parallel()
	g := newSGL(t, "p0", "d0")
	for range 20 { // how long prefills take is learnt
		if status, text, _ := g.post(chatPath, shortChat, ""); status != 200 {
			t.Fatalf("%d %s", status, text)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if status, text, _ := g.post("/v1/completions", `{"prompt":"slowly"}`, ""); status != 200 {
			t.Errorf("%d %s", status, text)
		}
	}()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		case <-time.After(leastLimit / 10):
			if status, text, _ := g.post(chatPath, shortChat, ""); status != 200 {
				t.Errorf("another one: %d %s", status, text)
			}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.slow != 1 {
		t.Errorf("the prefiller got it %d times", g.slow)
	}
}

// TestSGLangDecoderFails: a decoder that fails gets the request once more, with another prefiller. Then it is taken for
// the one at fault.
func TestSGLangDecoderFails(t *testing.T) {
	t.Parallel()
	g := newSGL(t, "p0", "d0")
	g.failOnce("d0", "500")
	if status, text, _ := g.post(chatPath, shortChat, ""); status != 200 {
		t.Errorf("a decoder that fails once, with one prefiller: %d %s", status, text)
	}
	g = newSGL(t, "p0", "p1", "d0")
	g.fail("d0", "500")
	if status, text, _ := g.post(chatPath, shortChat, ""); status != 500 || !strings.Contains(text, "refused by d0") {
		t.Errorf("%d %s", status, text)
	}
	if n := strings.Count(g.took(), "d0"); n != 2 {
		t.Errorf("the decoder was asked %d times", n)
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		g.fail("d0", "")
		if status, _, _ := g.post(chatPath, shortChat, ""); status == 200 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("%d once it serves again", status)
		}
	}
}
