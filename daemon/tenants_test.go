package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// tenants are [[keys]] for alice, bob and carol, with further lines for each.
func tenants(t *testing.T, lines ...string) string {
	t.Helper()
	dir, toml := t.TempDir(), ""
	for _, name := range []string{"alice", "bob", "carol"} {
		write(t, filepath.Join(dir, name), name+"-secret")
		toml += fmt.Sprintf("[[keys]]\nname = %q\nfile = %q\n%s\n", name, filepath.Join(dir, name), strings.Join(lines, "\n"))
	}
	return toml
}

// TestAFloodOfOpenings: one key opens a hundred thousand sessions, stores as many responses and names as many
// sessions. It gets 429 when its share is full, and takes nothing from another key.
func TestAFloodOfOpenings(t *testing.T) {
	f := sims(t, 2, vllmsim.Config{})
	r := start(t, tenants(t)+"[cache]\nmax_bytes = 2097152\n"+settings("prefixaware", f.URLs()...), 2)
	var opened []string
	open := func(who string) seen {
		s := r.as(who, "POST", "/sessions", "")
		var o struct{ ID string }
		if json.Unmarshal([]byte(s.body), &o) == nil && s.status == 201 && who == "alice" {
			opened = append(opened, o.ID)
		}
		return s
	}
	for range 100 {
		open("alice")
	}
	b, now := r.state.Load().pools[0].served().Sessions, time.Now()
	name := func(k session.Kind, who, id string) session.Name {
		return session.Name{Kind: k, Tenant: who, Owner: who, ID: id}
	}
	b.Bind(name(session.Response, "alice", "resp_1"), "w1", now)
	b.Bind(name(session.Key, "alice", "chat"), "w1", now)
	refused := 0
	for i := range 100_000 {
		id := fmt.Sprint(i)
		if _, err := b.Open(name(session.Opened, "bob", id), session.Binding{Worker: "w1"}, now); err != nil {
			refused++
		}
		b.Bind(name(session.Response, "bob", id), "w1", now)
		b.Bind(name(session.Key, "bob", id), "w1", now)
	}
	if refused < 90_000 {
		t.Errorf("%d of 100,000 openings were refused", refused)
	}
	s := open("bob")
	if s.status != 429 || s.code() != "sessions_full" || s.header.Get("Retry-After") == "" {
		t.Errorf("one more opening: %d %s", s.status, s.body)
	}
	if s := r.as("bob", "POST", invoke, openBody); s.status != 429 {
		t.Errorf("one more by SageMaker's protocol: %d %s", s.status, s.body)
	}
	if len(opened) != 100 {
		t.Fatalf("%d of 100 were opened", len(opened))
	}
	for _, id := range opened {
		if s := r.as("alice", "GET", "/sessions/"+id, ""); s.status != 200 {
			t.Fatalf("another key's session: %d %s", s.status, s.body)
		}
	}
	for _, n := range []session.Name{name(session.Response, "alice", "resp_1"), name(session.Key, "alice", "chat")} {
		if _, s := b.Peek(n, now); s != session.Found {
			t.Errorf("another key's %s: %s", n.Kind, s)
		}
	}
	if s := open("alice"); s.status != 201 {
		t.Errorf("another key's next opening: %d %s", s.status, s.body)
	}
}

// TestOpeningsSpread: sessions that are opened without a request to a worker are spread as requests are.
func TestOpeningsSpread(t *testing.T) {
	f := sims(t, 4, vllmsim.Config{})
	r := start(t, settings("prefixaware", f.URLs()...), 4)
	for range 60 {
		r.do("POST", "/sessions", "")
	}
	for worker, n := range r.state.Load().pools[0].served().Sessions.Live(time.Now()) {
		if n[session.Opened] < 10 || n[session.Opened] > 20 {
			t.Errorf("%s has %d of 60 at four workers", worker, n[session.Opened])
		}
	}
}

// TestExplainIsByKey: whether others have sent a prompt is told to nobody where there are keys, but to those that may
// ask.
func TestExplainIsByKey(t *testing.T) {
	t.Parallel()
	f := sims(t, 1, vllmsim.Config{})
	r := start(t, tenants(t)+settings("prefixaware", f.URLs()...), 1)
	ask := func(r *running, header ...string) seen {
		return r.do("POST", "/v1/completions", `{"model":"sim","prompt":"hello","max_tokens":1}`,
			append(header, "X-Warmpath-Explain", "1")...)
	}
	if s := ask(r, "X-Api-Key", "bob-secret"); s.status != 200 || s.header.Get("X-Warmpath-Prompt") != "" {
		t.Errorf("a key: %d %v", s.status, s.header)
	}
	r = start(t, tenants(t, "explain = true")+settings("prefixaware", f.URLs()...), 1)
	if s := ask(r, "X-Api-Key", "bob-secret"); s.header.Get("X-Warmpath-Prompt") == "" {
		t.Errorf("a key that may ask: %d %v", s.status, s.header)
	}
	r = start(t, settings("prefixaware", f.URLs()...), 1)
	if s := ask(r); s.header.Get("X-Warmpath-Prompt") == "" {
		t.Errorf("without keys: %d %v", s.status, s.header)
	}
}

// spy is a worker that keeps what it is sent.
type spy struct {
	mu     sync.Mutex // guards all below
	bodies []string
	ids    []string
}

func newSpy(t *testing.T) (*spy, string) {
	p := &spy{}
	return p, fakeWorker(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.bodies, p.ids = append(p.bodies, string(b)), append(p.ids, r.Header.Get("X-Request-Id"))
		p.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"cmpl-`+r.Header.Get("X-Request-Id")+`","choices":[]}`)
	}).URL
}

// last returns the last body and the id of its request.
func (p *spy) last() (body, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.bodies) == 0 {
		return "", ""
	}
	return p.bodies[len(p.bodies)-1], p.ids[len(p.ids)-1]
}

// saltIn returns the cache_salt of a body as an engine reads it: of several the last.
func saltIn(t *testing.T, body string) string {
	t.Helper()
	var b struct {
		Salt string `json:"cache_salt"`
	}
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		t.Fatalf("%v: %.200s", err, body)
	}
	return b.Salt
}

// TestSaltsOfKeys: the body of every request with a prompt has the salt of its key, whatever the client writes.
func TestSaltsOfKeys(t *testing.T) {
	p, url := newSpy(t)
	r := start(t, "[server]\nbuffer_body_bytes = 65536\n"+strings.Replace(settings("prefixaware", url), "[server]\n", "", 1)+
		tenants(t, "cache_salt = true"), 1)
	salt := func(who, path, body string) string {
		t.Helper()
		if s := r.as(who, "POST", path, body); s.status != 200 {
			t.Fatalf("%s %.100s: %d %s", path, body, s.status, s.body)
		}
		sent, _ := p.last()
		return saltIn(t, sent)
	}
	const chat = "/v1/chat/completions"
	alice := salt("alice", chat, `{"model":"sim","messages":[]}`)
	if len(alice) != 22 || alice == salt("bob", chat, `{"model":"sim","messages":[]}`) {
		t.Errorf("alice's is %q", alice)
	}
	long := `{"model":"sim","prompt":"` + strings.Repeat("x", 200_000) + `","cache_salt":"bob"}` + " \n"
	for _, c := range [][3]string{{chat, `{}`, ""}, {chat, `{"cache_salt":"","messages":[]}`, ""},
		{chat, `{"cache_salt":"` + "bob" + `","messages":[]}`, "/bob"},
		{chat, `{"cache_salt":"x","cache\u005fsalt":"y"}`, "/y"}, {chat, "\n{ }\n", ""},
		{"/v1/completions", long, "/bob"}, {"/v1/responses", `{"input":"a","cache_salt":"\"}"}`, `/"}`},
		{"/v1/messages", `{"messages":[],"cache_salt":null}`, ""}, {"/v1/embeddings", `{"input":["a"]}`, ""},
		{"/v1/rerank", `{"query":"a","documents":["b"]}`, ""}} {
		if got := salt("alice", c[0], c[1]); got != alice+c[2] {
			t.Errorf("%s %.60s: %q; want %q", c[0], c[1], got, alice+c[2])
		}
	}
	for _, body := range []string{`{"messages":[]`, `{"messages":[]} {"cache_salt":"bob"}`, "[]", ""} {
		before, _ := p.last()
		s := r.as("alice", "POST", chat, body)
		if after, _ := p.last(); s.status != 400 || after != before {
			t.Errorf("%q: %d, and the worker got %q", body, s.status, after)
		}
	}
}

// TestIdsOfTenants: two keys' equal ids are two at the worker, and each client sees its own.
func TestIdsOfTenants(t *testing.T) {
	p, url := newSpy(t)
	r := start(t, tenants(t)+settings("roundrobin", url), 1)
	seenIDs := map[string]bool{}
	for _, who := range []string{"alice", "bob", "alice"} {
		s := r.as(who, "POST", "/v1/completions", `{"model":"sim","prompt":"a"}`, "X-Request-Id", "1")
		_, id := p.last()
		if s.header.Get("X-Request-Id") != "1" || !strings.HasPrefix(id, "1-") || seenIDs[id] {
			t.Errorf("%s sees %q, and the worker got %q", who, s.header.Get("X-Request-Id"), id)
		}
		seenIDs[id] = true
	}
}

// TestNothingIsLearntOfAnother: bob guesses a prompt of alice's a thousand times, every other time rightly. With
// cache_salt neither cached_tokens nor the engine's work tell which guess was right; without it one guess does. The work
// makes the time to the answer, and the machine's noise is not in it.
func TestNothingIsLearntOfAnother(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("the contract of alice says that ", 100)
	wrong := strings.Repeat("the contract of somebody is that", 100)
	for _, salted := range []bool{false, true} {
		f := sims(t, 1, vllmsim.Config{Speed: 20})
		r := start(t, tenants(t, fmt.Sprintf("cache_salt = %v\n", salted))+settings("prefixaware", f.URLs()...), 1)
		ask := func(who, prompt, own string) (cached, spared int) {
			before := f[0].Stats().ComputedTokens
			s := r.as(who, "POST", "/v1/completions",
				fmt.Sprintf(`{"model":"sim","prompt":%q,"max_tokens":1%s}`, prompt, own))
			var a struct {
				Usage struct {
					Prompt  int `json:"prompt_tokens"`
					Details struct {
						Cached int `json:"cached_tokens"`
					} `json:"prompt_tokens_details"`
				}
			}
			if err := json.Unmarshal([]byte(s.body), &a); err != nil || s.status != 200 {
				t.Fatalf("%d %s", s.status, s.body)
			}
			return a.Usage.Details.Cached, a.Usage.Prompt - int(f[0].Stats().ComputedTokens-before)
		}
		ask("alice", secret, "")
		if !salted {
			if cached, spared := ask("bob", secret, ""); cached == 0 || spared != cached {
				t.Errorf("without a salt %d tokens are told and %d spared, so that this test shows nothing", cached, spared)
			}
			continue
		}
		for i := range 1000 { // a salt of its own for each, or later guesses would meet those before
			guess := [...]string{secret, wrong}[i%2]
			if cached, spared := ask("bob", guess, fmt.Sprintf(`,"cache_salt":"%d"`, i)); cached > 0 || spared != 0 {
				t.Fatalf("guess %d: %d cached tokens of another's prompt, and %d that the engine need not compute", i, cached,
					spared)
			}
		}
	}
}
