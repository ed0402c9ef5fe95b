package exchange

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/adapters"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/message"
)

// lists is what the workers of a scene list, and which of them were asked.
type lists struct {
	mu    sync.Mutex
	of    map[uint64][]string
	asked []int
}

// listing has the scene's workers list models, one text of names for each worker: first what the pool knows, after an
// arrow what a reading from now on finds. "hangs" as the latter never answers.
func (s *scene) listing(texts ...string) *lists {
	all := &lists{of: map[uint64][]string{}}
	for i, text := range texts {
		known, now, _ := strings.Cut(text, " -> ")
		s.tell(s.numbers[i], strings.Fields(known))
		all.of[s.numbers[i]] = strings.Fields(now)
	}
	s.prober.list = func(id uint64) {
		all.mu.Lock()
		all.asked = append(all.asked, slices.Index(s.numbers, id))
		models := all.of[id]
		all.mu.Unlock()
		s.pool.Workers.Listing(id)
		if slices.Contains(models, "hangs") {
			return
		}
		time.Sleep(30 * time.Millisecond)
		s.tell(id, models)
	}
	return all
}

func (s *scene) tell(id uint64, models []string) {
	entries := make([]json.RawMessage, len(models))
	for i, m := range models {
		entries[i] = json.RawMessage(`{"id":"` + m + `"}`)
	}
	s.pool.Workers.Listed(id, models, entries)
}

// who returns the workers that were asked, in order of their number.
func (l *lists) who() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(slices.Values(l.asked))
}

const noModel = `{"error":{"message":"The model does not exist.","code":404}}`

// TestAnUnlistedModelHasTheListsRead: the lists are read anew before a request for a model that nobody lists is refused.
func TestAnUnlistedModelHasTheListsRead(t *testing.T) {
	f := func(what string, status int, by string, texts ...string) {
		t.Helper()
		answer := []string{whole(200, good)}
		s := newScene(t, answer, answer)
		s.listing(texts...)
		began := time.Now()
		a := s.ask(inbound("POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
		if a.status != status || a.by != by || time.Since(began) > 2*time.Second {
			t.Errorf("%s: %d by %q after %v; want %d by %q", what, a.status, a.by, time.Since(began), status, by)
		}
		get := s.ask(inbound("GET", "/v1/models/m", ""))
		if get.status != status {
			t.Errorf("%s: the model's own page is %d; want %d", what, get.status, status)
		}
	}
	f("it was loaded at the second", 200, "w1", "x -> x", "x -> x m")
	f("it was loaded at the second, and the first does not answer", 200, "w1", "x -> hangs", "x -> m")
	f("nobody has it", 404, "", "x -> x", "x -> y")
	f("nobody answers", 404, "", "x -> hangs", "x -> hangs")
}

// TestAModelsPageHasTheListsRead: a client may ask whether a model is there before it sends a prompt.
func TestAModelsPageHasTheListsRead(t *testing.T) {
	s := newScene(t, []string{whole(200, good)})
	s.listing("x -> x m")
	if a := s.ask(inbound("GET", "/v1/models/m", "")); a.status != 200 || !strings.Contains(a.body, `"m"`) {
		t.Errorf("%d %s; want the entry of m", a.status, a.body)
	}
}

// TestNonsenseAsksOnceASecond: requests for a model that nobody has do not have the lists read each.
func TestNonsenseAsksOnceASecond(t *testing.T) {
	s := newScene(t, []string{whole(200, good)}, []string{whole(200, good)})
	all := s.listing("x -> x", "x -> x")
	began := time.Now()
	for range 20 {
		if a := s.chat(); a.status != 404 {
			t.Fatalf("status %d; want 404", a.status)
		}
	}
	if took := time.Since(began); took > time.Second {
		t.Skipf("the requests took %v", took)
	}
	if got := all.who(); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("asked %v; want each once", got)
	}
}

// TestAWorkerThatLacksItsModel: a 404 for a model that the worker lists has its list read anew, and another is tried. It
// is no sign against the worker.
func TestAWorkerThatLacksItsModel(t *testing.T) {
	s := newScene(t, []string{whole(200, good), whole(404, noModel), whole(200, good)}, []string{whole(200, good)})
	all := s.listing("m -> x", "x m -> x m")
	s.pool.Workers.Drain("w1", true, time.Now()) // the first must have accepted one of the kind
	s.chat()
	s.pool.Workers.Drain("w1", false, time.Now())
	first := func() worker.Stats { return s.pool.Workers.Stats(time.Now())[0] }
	for i := 0; first().Sent < 2; i++ { // until one goes there again
		if a := s.chat(); a.status != 200 || i == 100 {
			t.Fatalf("chat %d: %d %s", i, a.status, a.body)
		}
	}
	time.Sleep(100 * time.Millisecond)
	if got := all.who(); len(got) != 1 || got[0] != 0 {
		t.Errorf("asked %v; want the first alone", got)
	}
	if got := first(); got.Ejections != 0 || slices.Contains(got.Models, "m") {
		t.Errorf("the first worker: %+v", got)
	}
}

// TestTheLast404OfAModelReachesTheClient: if no worker has the model, the client gets the worker's own words.
func TestTheLast404OfAModelReachesTheClient(t *testing.T) {
	s := newScene(t, []string{whole(404, noModel)}, []string{whole(404, noModel)})
	all := s.listing("m -> x", "m -> x")
	if a := s.chat(); a.status != 404 || a.body != noModel {
		t.Errorf("%d %s; want the worker's 404", a.status, a.body)
	}
	time.Sleep(100 * time.Millisecond)
	if got := all.who(); len(got) == 0 {
		t.Error("no list was read anew")
	}
}

// TestA404OfAnotherKindAsksNobody: it is not the model that the worker lacks.
func TestA404OfAnotherKindAsksNobody(t *testing.T) {
	f := func(what string, in *message.Inbound) {
		t.Helper()
		s := newScene(t, []string{whole(404, `{}`)})
		all := s.listing("m -> m")
		if a := s.ask(in); a.status != 404 {
			t.Errorf("%s: %d", what, a.status)
		}
		time.Sleep(50 * time.Millisecond)
		if got := all.who(); len(got) > 0 {
			t.Errorf("%s: asked %v", what, got)
		}
	}
	f("a response", inbound("GET", "/v1/responses/resp_1", ""))
	f("a previous response", inbound("POST", "/v1/responses", `{"model":"m","input":"x","previous_response_id":"resp_1"}`))
	f("a path that no worker has", inbound("POST", "/v1/nothing", `{"model":"m"}`))
}

const adapterCall = `{"lora_name":"m","lora_path":"/x"}`

// TestAnAdapterCallHasTheListRead: the worker's list is new before the client has the answer.
func TestAnAdapterCallHasTheListRead(t *testing.T) {
	s := newScene(t, []string{whole(200, `"Success"`), whole(200, good)})
	all := s.listing("x -> x m")
	if a := s.ask(inbound("POST", "/v1/load_lora_adapter", adapterCall)); a.status != 200 {
		t.Fatalf("load: %d", a.status)
	}
	if got := s.pool.Workers.Stats(time.Now())[0].Models; !slices.Contains(got, "m") {
		t.Errorf("at the answer the worker is known to list %v; want m", got)
	}
	if got := all.who(); len(got) != 1 {
		t.Errorf("asked %v; want once", got)
	}
	if a := s.chat(); a.status != 200 {
		t.Errorf("the adapter's first chat: %d", a.status)
	}
}

// TestAnAdapterCallGoesToAllWorkers: it is no single worker's, and the client has one answer.
func TestAnAdapterCallGoesToAllWorkers(t *testing.T) {
	f := func(what, path string, status int, words string, answers ...string) {
		t.Helper()
		var scripts [][]string
		for _, a := range answers {
			scripts = append(scripts, []string{a})
		}
		s := newScene(t, scripts...)
		all := s.listing(slices.Repeat([]string{"x -> x m"}, len(answers))...)
		a := s.ask(inbound("POST", path, adapterCall))
		if a.status != status || !strings.Contains(a.body, words) {
			t.Errorf("%s: %d %s; want %d with %q", what, a.status, a.body, status, words)
		}
		var good []int
		for i, w := range s.pool.Workers.Stats(time.Now()) {
			if strings.Contains(answers[i], " 200 ") {
				good = append(good, i)
				if !slices.Contains(w.Models, "m") {
					t.Errorf("%s: at the answer %s is known to list %v", what, w.ID, w.Models)
				}
			}
			if w.Ejections > 0 {
				t.Errorf("%s: %s was set aside", what, w.ID)
			}
		}
		if got := all.who(); !slices.Equal(got, good) {
			t.Errorf("%s: asked %v for their lists; want %v", what, got, good)
		}
	}
	absent, success := whole(404, `{"error":{"message":"not found"}}`), whole(200, `"Success"`)
	loaded := whole(400, `{"error":{"message":"The lora adapter 'm' has already been loaded."}}`)
	f("all load", adapters.LoadPath, 200, "Success", success, success, success)
	f("one has it", adapters.LoadPath, 200, "Success", loaded, success)
	f("all have it", adapters.LoadPath, 400, "already", loaded, loaded)
	f("nobody finds it", adapters.LoadPath, 404, "not found", absent, absent)
	f("one does not find it", adapters.LoadPath, 502, `"worker":"w1","status":404,`, success, absent)
	f("one does not answer", adapters.LoadPath, 502, `"worker":"w1","error":"`, success, "refuse")
	f("all unload", adapters.UnloadPath, 200, "Success", success, success)
	f("one of three has it", adapters.UnloadPath, 200, "Success", absent, absent, success)
	f("nobody has it", adapters.UnloadPath, 404, "not found", absent, absent)
	f("a single worker", adapters.LoadPath, 404, "not found", absent)
}

// sent counts the requests that the workers got.
func (s *scene) sent() (n uint64) {
	for _, w := range s.pool.Workers.Stats(time.Now()) {
		n += w.Sent
	}
	return n
}
