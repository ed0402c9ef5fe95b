package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// mates are workers with roles and labels that keep who computed what they read. down answers 503 to all prompts; breaks
// resets the connection of each answer, full says 429 to it.
type mates struct {
	*running
	mu           sync.Mutex
	read         map[string][]string // by worker that answers: the prefiller of each prompt; "" = it computed it itself
	down, breaks map[string]bool
	full         map[string]bool
	servers      map[string]*httptest.Server
}

// startMates starts workers, each given as NAME/LABELS: those whose names begin with p are prefillers.
func startMates(t *testing.T, keys string, workers ...string) *mates {
	t.Helper()
	m := &mates{read: map[string][]string{}, down: map[string]bool{}, breaks: map[string]bool{}, full: map[string]bool{},
		servers: map[string]*httptest.Server{}}
	var urls []string
	for _, w := range workers {
		name, _, _ := strings.Cut(w, "/")
		m.servers[name] = fakeWorker(t, func(rw http.ResponseWriter, r *http.Request) {
			var b struct {
				Max    int `json:"max_tokens"`
				Params struct {
					From string `json:"remote_host"`
					Asks bool   `json:"do_remote_decode"`
				} `json:"kv_transfer_params"`
			}
			_ = json.NewDecoder(r.Body).Decode(&b)
			m.mu.Lock()
			down, breaks, full := m.down[name], m.breaks[name], m.full[name]
			if !b.Params.Asks {
				m.read[name] = append(m.read[name], b.Params.From)
			}
			m.mu.Unlock()
			switch {
			case down:
				http.Error(rw, "down", http.StatusServiceUnavailable)
				return
			case breaks && !b.Params.Asks && b.Max > 1:
				panic(http.ErrAbortHandler)
			case full && !b.Params.Asks && b.Max > 1:
				http.Error(rw, "full", http.StatusTooManyRequests)
				return
			}
			rw.Header().Set("Content-Type", "application/json")
			params := "null"
			if b.Params.Asks {
				params = fmt.Sprintf(`{"remote_host":%q}`, name)
			}
			io.WriteString(rw, `{"object":"text_completion","choices":[{"index":0,"text":"x","finish_reason":"length"}],"kv_transfer_params":`+params+`}`)
		})
		urls = append(urls, m.servers[name].URL)
	}
	text := withPool(settings("prefixaware", urls...),
		`disaggregation = { connector = "nixl", rule = "threshold", threshold = 0, `+keys+` }`)
	for i, w := range workers {
		name, labels, _ := strings.Cut(w, "/")
		id, role := fmt.Sprintf("id = \"w%d\"\n", i+1), "decode"
		if name[0] == 'p' {
			role = "prefill"
		}
		text = strings.Replace(text, id, fmt.Sprintf("%srole = %q\nlabels = { %s }\n", id, role, labels), 1)
	}
	m.running = start(t, text, len(workers))
	return m
}

// ask sends prompts that nobody holds.
func (m *mates) ask(t *testing.T, name string, n int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			s := m.do("POST", "/v1/completions", fmt.Sprintf(`{"model":"sim","max_tokens":5,"prompt":%q}`, longText(fmt.Sprint(name, i), 300)))
			if s.status != 200 {
				t.Errorf("%s: %d %s", name, s.status, s.body)
			}
		})
	}
	all.Wait()
}

// pairs returns how often which worker that answers got the KV of which prefiller, and forgets that.
func (m *mates) pairs() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := map[string]int{}
	for d, all := range m.read {
		for _, p := range all {
			n[d+"<"+p]++
		}
	}
	clear(m.read)
	return n
}

// TestSameRevision: a worker of one revision never gets KV of another one: not while its own prefillers are down, and not
// when it takes a request over from a worker that has failed. Those without the label are alike.
func TestSameRevision(t *testing.T) {
	t.Parallel()
	f := func(what string, change func(m *mates), need ...string) {
		t.Helper()
		m := startMates(t, `same = ["revision"]`, `p1/revision = "1"`, `p2/revision = "2"`, `p0/`, `d1/revision = "1"`,
			`d2/revision = "2"`, `d0/`)
		change(m)
		m.ask(t, what, 30)
		eventually(t, "all requests have ended, and what nobody read is freed", func() bool { return m.inFlight() == 0 })
		got := m.pairs()
		for _, pair := range need {
			if got[pair] == 0 {
				t.Errorf("%s: no %s in %v", what, pair, got)
			}
		}
		for pair := range got {
			if d, p, _ := strings.Cut(pair, "<"); p != "" && p[1:] != d[1:] {
				t.Errorf("%s: %v", what, got)
			}
		}
	}
	f("all are well", func(*mates) {}, "d1<p1", "d2<p2", "d0<p0")
	f("a connection breaks", func(m *mates) { m.breaks["d1"] = true }, "d1<p1", "d2<p2", "d0<p0")
	f("one is full", func(m *mates) { m.full["d1"] = true }, "d1<p1", "d2<p2", "d0<p0")
	f("nobody listens any more", func(m *mates) {
		m.servers["d1"].Listener.Close()
		m.servers["d1"].CloseClientConnections()
	}, "d2<p2", "d0<p0")
	f("a prefiller is down", func(m *mates) { m.down["p2"] = true }, "d1<p1", "d2<", "d0<p0")
}

// TestNearZone: a prompt is computed in the zone of the worker that answers, while its prefiller there does not fail, or
// is behind by more than far.
func TestNearZone(t *testing.T) {
	t.Parallel()
	m := startMates(t, `near = "zone", far = "3s"`, `p1/zone = "b"`, `p2/zone = "a"`, `d1/zone = "a"`, `d2/zone = "b"`)
	m.ask(t, "all are well", 20)
	if got := m.pairs(); got["d1<p1"]+got["d2<p2"] > 0 || got["d1<p2"] == 0 || got["d2<p1"] == 0 {
		t.Errorf("all are well: %v", got)
	}
	m.mu.Lock()
	m.down["p2"] = true
	m.mu.Unlock()
	m.ask(t, "p2 is down", 20)
	if got := m.pairs(); got["d1<p1"] == 0 || got["d1<p2"] > 0 {
		t.Errorf("p2 is down: %v", got)
	}
}

// TestPairsOfOneVersion: a decoder that has new weights gets no KV that a prefiller with the old ones has computed.
func TestPairsOfOneVersion(t *testing.T) {
	t.Parallel()
	f := startRolesWith(t, 1, 1, rolesOptions{sim: vllmsim.Config{DevMode: true}})
	split := func(name string) bool {
		t.Helper()
		before := f.metric("warmpath_prefills_total", `result="done"`)
		if err := f.ask(t.Context(), name, 1500, false); err != nil {
			t.Error(err)
		}
		return f.metric("warmpath_prefills_total", `result="done"`) > before
	}
	update := func(i int, w *vllmsim.Server) {
		t.Helper()
		for _, path := range []string{"/pause", "/update_weights", "/finish_weight_update", "/resume"} {
			if s := do(t, "POST", w.URL()+path, `{"update_info":{"names":[]},"weight_version":"7"}`); s.status != 200 {
				t.Fatalf("%s: %d %s", path, s.status, s.body)
			}
		}
		eventually(t, "the router knows of it", func() bool { return f.describe()[0].Workers[i].Weights == "7" })
	}
	if !split("before") {
		t.Error("not split before the update")
	}
	update(1, f.decode[0])
	if split("between") {
		t.Error("the decoder reads what old weights have computed")
	}
	update(0, f.prefill[0])
	if !split("after") {
		t.Error("not split after the update of both")
	}
}
