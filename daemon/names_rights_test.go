package daemon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// keysOf makes keys of these models, each by its name and with a cache_salt.
func keysOf(t *testing.T, models map[string]string) (toml string) {
	t.Helper()
	dir := t.TempDir()
	for name, list := range models {
		write(t, filepath.Join(dir, name), name+"-secret")
		toml += fmt.Sprintf("[[keys]]\nname = %q\nfile = %q\ncache_salt = \"salt-of-%[1]s\"\n", name, filepath.Join(dir, name))
		if list != "" {
			toml += "models = [" + list + "]\n"
		}
	}
	return toml
}

// TestNamesByKey: what a key may use, what it sees in lists, and that its salt is written beside the target.
func TestNamesByKey(t *testing.T) {
	t.Parallel()
	w := newSpeaker(t, `{"id":"the-cat","object":"model","root":"/models/cat","max_model_len":9}`, `{"id":"dog","object":"model"}`,
		`{"id":"bi\u0072d","object":"model"}`)
	w.says(200, "application/json", `{"model":"the-cat"}`)
	r := start(t, keysOf(t, map[string]string{"all": "", "alias": `"pet"`, "target": `"the-cat"`, "other": `"dog"`})+
		settings("roundrobin", w.url)+petIsCat+"[[models]]\nname = \"old\"\nto = [{ model = \"bird\" }]\nhidden = true\n"+
		"[[models]]\nname = \"new\"\nto = [{ model = \"bird\" }]\n[[models]]\nname = \"dog\"\nhidden = true\n", 1)
	for who, want := range map[string]struct {
		list     string
		pet, cat int
	}{
		"all": {"the-cat bird pet new", 200, 200}, "alias": {"pet", 200, 403}, "target": {"the-cat pet", 200, 200}, "other": {"", 403, 403},
	} {
		for model, status := range map[string]int{"pet": want.pet, "the-cat": want.cat} {
			got := r.as(who, "POST", "/v1/chat/completions", `{"model":"`+model+`","messages":[]}`)
			if got.status != status {
				t.Errorf("%s asks %s: %d %s; want %d", who, model, got.status, got.body, status)
				continue
			}
			if status != 200 {
				continue
			}
			var sent map[string]any
			_, body, _ := strings.Cut(w.last(t), "{")
			if err := json.Unmarshal([]byte("{"+body), &sent); err != nil || sent["model"] != "the-cat" ||
				!strings.HasPrefix(fmt.Sprint(sent["cache_salt"]), "salt-of-"+who) {
				t.Errorf("%s asks %s: the worker got %s, %v", who, model, body, err)
			}
		}
		var list struct {
			Data []struct{ ID, Root string }
		}
		_ = json.Unmarshal([]byte(r.as(who, "GET", "/v1/models", "").body), &list)
		var ids []string
		for _, m := range list.Data {
			ids = append(ids, m.ID)
			if m.ID == "pet" && m.Root != "/models/cat" {
				t.Errorf("%s sees pet with the root %s", who, m.Root)
			}
		}
		if got := strings.Join(ids, " "); got != want.list {
			t.Errorf("%s sees %s; want %s", who, got, want.list)
		}
		for _, id := range []string{"the-cat", "bird", "pet", "new", "old", "dog"} {
			if got := r.as(who, "GET", "/v1/models/"+id, ""); (got.status == 200) != (" "+want.list+" " != strings.Replace(" "+want.list+" ", " "+id+" ", "", 1)) {
				t.Errorf("%s asks for %s: %d %s", who, id, got.status, got.body)
			}
		}
	}
	if got := r.as("all", "POST", "/v1/chat/completions", `{"model":"old","messages":[]}`); got.status != 200 {
		t.Errorf("a hidden name: %d %s", got.status, got.body)
	}
}

// TestNamesAfterAReload: other weights go for sessions that begin then.
func TestNamesAfterAReload(t *testing.T) {
	w := newSpeaker(t, `{"id":"a"},{"id":"b"}`)
	w.says(200, "application/json", `{}`)
	weights := func(a, b float64) string {
		return settings("roundrobin", w.url) + fmt.Sprintf("[[models]]\nname = \"x\"\nto = [{ model = \"a\", weight = %v }, { model = \"b\", weight = %v }]\n", a, b)
	}
	r := start(t, weights(1, 1), 1)
	model := func(i int) string {
		return r.do("POST", "/v1/chat/completions", `{"model":"x","messages":[]}`, "X-Session-Id", fmt.Sprint(i)).header.Get("X-Warmpath-Model")
	}
	var before []string
	at := map[string]int{}
	for i := range 100 {
		before = append(before, model(i))
		at[before[i]]++
	}
	if at["a"] < 25 || at["b"] < 25 || len(at) != 2 {
		t.Fatalf("equal weights: %v", at)
	}
	if err := os.WriteFile(r.file, []byte(weights(0.001, 1e6)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	for i, was := range before {
		if is := model(i); is != was {
			t.Errorf("session %d moved from %s to %s", i, was, is)
		}
		if is := model(1000 + i); is != "b" {
			t.Errorf("a new session got %s", is)
		}
	}
}

// TestFallbackBetweenPools: what leads from one pool to another, under a key that is fenced.
func TestFallbackBetweenPools(t *testing.T) {
	cat, dog := newSpeaker(t, `{"id":"the-cat"}`), newSpeaker(t, `{"id":"dog"}`)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "k"), "k-secret")
	var b strings.Builder
	fmt.Fprintf(&b, "[[keys]]\nname = \"k\"\nfile = %q\nmodels = [\"*\"]\n[[keys]]\nname = \"f\"\nfile = %q\nworkers = \"of=f\"\n", filepath.Join(dir, "k"), filepath.Join(dir, "f"))
	write(t, filepath.Join(dir, "f"), "f-secret")
	b.WriteString(freePorts)
	addPool(&b, "cats", "roundrobin", "the-cat", cat.url)
	b.WriteString("labels = { of = \"f\" }\n")
	addPool(&b, "dogs", "roundrobin", "dog", dog.url)
	addPool(&b, "birds", "roundrobin", "bird", "http://"+porttest.Address(t))
	b.WriteString(strings.Replace(petIsCat, "\nto", "\nfallback = \"dog\"\nto", 1))
	b.WriteString("[[models]]\nname = \"chain\"\nto = [{ model = \"bird\" }]\nfallback = \"pet\"\n")
	r := start(t, strings.Replace(b.String(), "[[pools]]\nname = \"cats\"", "[[pools]]\nmax_in_flight = 1\nqueue.max_requests = 0\nname = \"cats\"", 1), 2)
	dog.says(200, "application/json", `{"model":"dog"}`)
	ask := func(what, who, model string, status int, by, why string) {
		t.Helper()
		got := r.as(who, "POST", "/v1/chat/completions", `{"model":"`+model+`","messages":[]}`)
		if got.status != status || got.header.Get("X-Warmpath-Model") != by || got.header.Get("X-Warmpath-Fallback") != why ||
			status == 200 && got.body != `{"model":"`+model+`"}` || strings.Contains(got.body, "the-cat") {
			t.Errorf("%s: %d %s by %q for %q", what, got.status, got.body, got.header.Get("X-Warmpath-Model"), got.header.Get("X-Warmpath-Fallback"))
		}
	}
	cat.says(400, "application/json", `{"error":{"message":"The maximum context length of the-cat is 8 tokens."}}`)
	ask("too long", "k", "pet", 200, "dog", "context")
	cat.says(400, "application/json", `{"error":{"message":"the-cat: bad temperature"}}`)
	ask("the client's own 400", "k", "pet", 400, "the-cat", "")
	cat.says(200, "application/json", `{"model":"the-cat"}`)
	ask("good", "k", "pet", 200, "the-cat", "")
	ask("a pool that is down", "k", "chain", 200, "the-cat", "down")
	ask("a fenced key", "f", "pet", 200, "the-cat", "")
	busy, free := make(chan struct{}), make(chan struct{})
	cat.mu.Lock()
	cat.answer = func(rw http.ResponseWriter, _ string) { close(busy); <-free }
	cat.mu.Unlock()
	ended := make(chan seen, 1)
	go func() { ended <- r.as("k", "POST", "/v1/chat/completions", `{"model":"pet","messages":[]}`) }()
	<-busy
	ask("full", "k", "pet", 200, "dog", "full")
	ask("full after down", "k", "chain", 200, "dog", "full")
	got := r.as("f", "POST", "/v1/chat/completions", `{"model":"pet","messages":[]}`)
	if got.status < 429 || strings.Contains(got.body, `"pet"`) {
		t.Errorf("a fenced key whose fallback is outside of its fence: %d %s", got.status, got.body)
	}
	close(free)
	<-ended
}

// TestFallbackBeforeTheQueue: a request whose model is full goes to the other model at once, where that has room.
func TestFallbackBeforeTheQueue(t *testing.T) {
	t.Parallel()
	cat, dog := newSpeaker(t, `{"id":"the-cat"}`), newSpeaker(t, `{"id":"dog"}`)
	busy, free := make(chan struct{}), make(chan struct{})
	cat.answer = func(http.ResponseWriter, string) { close(busy); <-free }
	dog.says(200, "application/json", `{"model":"dog"}`)
	var b strings.Builder
	b.WriteString(freePorts)
	addPool(&b, "cats", "roundrobin", "the-cat", cat.url)
	addPool(&b, "dogs", "roundrobin", "dog", dog.url)
	b.WriteString(strings.Replace(petIsCat, "\nto", "\nfallback = \"dog\"\nto", 1))
	r := start(t, strings.Replace(b.String(), "name = \"cats\"", "name = \"cats\"\nmax_in_flight = 1\nqueue.wait = \"20s\"", 1), 2)
	const body = `{"model":"pet","messages":[]}`
	first := make(chan seen, 1)
	go func() { first <- r.do("POST", "/v1/chat/completions", body) }()
	<-busy
	second := r.do("POST", "/v1/chat/completions", body)
	if second.status != 200 || second.header.Get("X-Warmpath-Fallback") != "full" || second.body != `{"model":"pet"}` {
		t.Errorf("while its model is full: %d %v %s", second.status, second.header, second.body)
	}
	if e, ok := r.ring.Find(second.header.Get("X-Request-Id")); !ok || e.Queued != nil {
		t.Errorf("it waited first: %+v", e.Queued)
	}
	close(free)
	allGood(t, 1, first)
}

// TestListedNames: the list has the names that somebody serves now: by a target, or by a fallback of any depth.
func TestListedNames(t *testing.T) {
	t.Parallel()
	big, small := sims(t, 1, vllmsim.Config{Models: []string{"big"}}), sims(t, 1, vllmsim.Config{Models: []string{"small"}})
	var b strings.Builder
	b.WriteString("[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n")
	addPool(&b, "b", "roundrobin", "big", big.URLs()...)
	addPool(&b, "s", "roundrobin", "small", small.URLs()...)
	for _, m := range []string{`name = "big"` + "\n" + `fallback = "near"`, `name = "near"` + "\n" + `to = [{ model = "big" }]` + "\n" + `fallback = "small"`,
		`name = "lone"` + "\n" + `to = [{ model = "big" }]`, `name = "full"` + "\n" + `to = [{ model = "big" }]` + "\n" + `fallback = "small"` + "\n" + `on = ["full"]`} {
		fmt.Fprintf(&b, "[[models]]\n%s\n", m)
	}
	r := start(t, b.String(), 2)
	ids := func() string {
		var list struct{ Data []struct{ ID string } }
		_ = json.Unmarshal([]byte(r.do("GET", "/v1/models", "").body), &list)
		var all []string
		for _, m := range list.Data {
			all = append(all, m.ID)
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	eventually(t, "all are listed", func() bool { return ids() == "big full lone near small" })
	big[0].Close()
	eventually(t, "those are listed that somebody serves", func() bool { return ids() == "big near small" })
	for name, want := range map[string]int{"big": 200, "near": 200, "lone": 503, "full": 503} {
		if s := r.do("POST", "/v1/completions", fmt.Sprintf(`{"model":%q,"prompt":"x","max_tokens":1}`, name)); s.status != want {
			t.Errorf("%s: %d %s", name, s.status, s.body)
		}
	}
}
