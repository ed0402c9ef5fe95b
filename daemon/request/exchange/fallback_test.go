package exchange

import (
	"cmp"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/queue"
	"github.com/warmpath/warmpath/daemon/request/waiting"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// only is the pattern of one model.
type only string

func (o only) Serves(model string) bool { return model == string(o) }
func (o only) Names(model string) bool  { return model == string(o) }

// falling makes a scene of the pools "cat", "dog" and "owl", each with one worker of that script. "pet" stands for cat,
// and falls back to dog, and that to owl.
func falling(t *testing.T, on names.Reason, cat, dog, owl string) *scene {
	all := newScene(t, []string{cat})
	all.pool.Patterns = only("cat")
	for model, script := range map[string]string{"dog": dog, "owl": owl} {
		p := newScene(t, []string{script}).pool
		p.Patterns = only(model)
		all.epoch.Pools = append(all.epoch.Pools, p)
	}
	all.epoch.Names = names.New([]names.Alias{
		{Name: "pet", Targets: []names.Target{{Model: "cat", Weight: 1}}, Fallback: "dog", On: on},
		{Name: "dog", Fallback: "owl", On: on}})
	return all
}

// fill takes the only place of the pool's worker.
func (s *scene) fill() { fill(s.pool) }

func fill(p *epoch.Pool) {
	p.Limited = true
	p.Workers.Configure(worker.Config{MaxInFlight: 1})
	_, all, _ := p.Workers.Snapshot(worker.Query{At: time.Now()}, nil, nil)
	p.Workers.Begin(new(worker.Ticket), all[0], worker.Dispatch{}, time.Now())
}

// askPet asks for a chat, and returns the answer's header too.
func (s *scene) askPet(path, body string, header ...string) (answer, http.Header) {
	in := inbound("POST", path, body, header...)
	in.Epoch, in.ID = s.epoch, "id-1"
	if s.epoch.Keys != nil {
		in.Caller = s.epoch.Keys.Named("k")
	}
	var all message.Lives
	life := new(message.Life)
	all.Begin(life)
	defer life.Leave()
	out := s.Serve(life, in)
	h := http.Header{}
	for _, f := range out.Header {
		h.Set(f.Name, f.Value)
	}
	text, err := new(fickle).whole(out)
	return answer{status: out.Status, body: text, broken: err != nil, by: in.Seen.Worker, in: in}, h
}

// tallied returns what was counted.
func (s *scene) tallied() string { return strings.Join(s.counted.counted, ", ") }

const (
	chatPath  = "/v1/chat/completions"
	petChat   = `{"model":"pet","messages":[{"role":"user","content":"hi"}]}`
	petStream = `{"model":"pet","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	tooLong   = `{"error":{"message":"This model's maximum context length is 8 tokens.","code":400}}`
	dogSays   = `{"model":"dog"}`
	owlSays   = `{"model":"owl"}`
)

// TestFallback: what leads to another model, and what does not.
func TestFallback(t *testing.T) {
	chunk := "data: {\"model\":\"cat\",\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"
	for _, c := range []struct {
		what, cat, dog string
		full           bool
		on             names.Reason
		path, body     string
		header         []string

		status     int
		model, why string // of the answer's head
		text       string // of its body
	}{
		{what: "down", cat: "refuse", dog: whole(200, dogSays), status: 200, model: "dog", why: "down", text: `"pet"`},
		{what: "down, and not for that", cat: "refuse", dog: whole(200, dogSays), on: names.Full | names.Context,
			status: 503, model: "cat", text: "worker_failed"},
		{what: "full", cat: whole(200, "{}"), full: true, dog: whole(200, dogSays), status: 200, model: "dog", why: "full",
			text: `"pet"`},
		{what: "full by its own word", cat: whole(503, "{}"), dog: whole(200, dogSays), on: names.Down, status: 503,
			model: "cat"},
		{what: "full by 429 of its own", cat: whole(429, "{}"), dog: whole(200, dogSays), status: 200, model: "dog",
			why: "full", text: `"pet"`},
		{what: "full by 503 of its own", cat: whole(503, "{}"), dog: whole(200, dogSays), status: 200, model: "dog",
			why: "full", text: `"pet"`},
		{what: "full by 529 of its own, streamed", cat: whole(529, "{}"), body: petStream, status: 200, model: "dog",
			why: "full", dog: streamed("data: {\"model\":\"dog\",\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n", "data: [DONE]\n\n"),
			text: `"pet"`},
		{what: "full by its own word, and so is the fallback", cat: whole(429, "{}"), dog: whole(429, "{}"), status: 200,
			model: "owl", why: "full", text: `"pet"`},
		{what: "gone from the worker", cat: whole(404, `{"error":{"message":"The model does not exist."}}`),
			dog: whole(200, dogSays), status: 200, model: "dog", why: "down", text: `"pet"`},
		{what: "no such path at the worker", cat: whole(404, `{"detail":"Not Found"}`), dog: whole(200, dogSays), status: 404,
			model: "cat"},
		{what: "full, and not for that", cat: whole(200, "{}"), full: true, on: names.Down, dog: whole(200, dogSays),
			status: 429, model: "cat", text: "workers_full"},
		{what: "context", cat: whole(400, tooLong), dog: whole(200, dogSays), status: 200, model: "dog", why: "context",
			text: `"pet"`},
		{what: "context of a stream", cat: whole(400, tooLong), body: petStream, status: 200, model: "dog", why: "context",
			dog: streamed("data: {\"model\":\"dog\",\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n", "data: [DONE]\n\n"), text: `"pet"`},
		{what: "context, and not for that", cat: whole(400, tooLong), on: names.Down, dog: whole(200, dogSays), status: 400,
			model: "cat", text: "maximum context length"},
		{what: "another 400", cat: whole(400, `{"error":{"message":"bad temperature"}}`), dog: whole(200, dogSays), status: 400,
			model: "cat", text: "bad temperature"},
		{what: "after the first byte", cat: streamed(chunk, pause, "cut"), dog: whole(200, dogSays), body: petStream,
			status: 200, model: "cat", text: `"error"`},
		{what: "chain of two", cat: "refuse", dog: whole(400, tooLong), status: 200, model: "owl", why: "context",
			text: `"pet"`},
		{what: "all fail", cat: whole(400, tooLong), dog: "refuse", on: names.Down | names.Context, status: 200, model: "owl",
			why: "down", text: `"pet"`},
		{what: "a stored response", cat: "refuse", dog: whole(200, dogSays), path: "/v1/responses", status: 503, model: "cat",
			body: `{"model":"pet","input":"hi","previous_response_id":"resp_1"}`, text: "worker_failed"},
		{what: "a named session", cat: "refuse", dog: whole(200, dogSays), header: []string{"X-Session-Id", "s"}, status: 200,
			model: "dog", why: "down", text: `"pet"`},
	} {
		t.Run(c.what, func(t *testing.T) {
			path, body := cmp.Or(c.path, chatPath), cmp.Or(c.body, petChat)
			s := falling(t, cmp.Or(c.on, names.All), c.cat, c.dog, whole(200, owlSays))
			if c.full {
				s.fill()
			}
			a, h := s.askPet(path, body, c.header...)
			if a.status != c.status || h.Get(admission.HeaderModel) != c.model || h.Get(admission.HeaderFallback) != c.why ||
				!strings.Contains(a.body, c.text) || a.in.Seen.Model != c.model {
				t.Errorf("%d %s by %q for %q: %s\n%s", a.status, a.body, h.Get(admission.HeaderModel), h.Get(admission.HeaderFallback),
					s.tallied(), s.log)
			}
			if got := strings.Contains(s.tallied(), "fell "); got != (c.why != "") {
				t.Errorf("counted: %v: %s", got, s.tallied())
			}
			if c.why != "" && strings.Contains(s.log.String(), "gets an error") {
				t.Errorf("the log tells of an error: %s", s.log)
			}
		})
	}
}

// TestFallbackOfTheLast: where no model serves the request the client gets the last one's error, which counts once.
func TestFallbackOfTheLast(t *testing.T) {
	s := falling(t, names.All, "refuse", "refuse", "refuse")
	a, h := s.askPet(chatPath, petChat)
	if a.status != 503 || h.Get(admission.HeaderModel) != "owl" || h.Get(admission.HeaderFallback) != "down" {
		t.Errorf("%d %s of %v", a.status, a.body, h)
	}
	if n := strings.Count(s.tallied(), "refused"); n != 1 {
		t.Errorf("refused %d times: %s", n, s.tallied())
	}
}

// TestFallbackRights: a key that may use the name needs no right on the fallback, and one that may not gets 403.
func TestFallbackRights(t *testing.T) {
	for model, status := range map[string]int{"pet": 200, "cat": 200, "dog": 403} {
		s := falling(t, names.All, "refuse", whole(200, dogSays), whole(200, owlSays))
		s.epoch.Keys = gate.NewKeys([]gate.Key{{Name: "k", Secret: "s", Models: []string{model}}})
		if a, _ := s.askPet(chatPath, petChat); a.status != status {
			t.Errorf("a key for %s: %d %s", model, a.status, a.body)
		}
	}
}

// TestFallbackBeforeTheQueue: a request whose model is full goes to a fallback that has room at once, and waits once if
// none has.
func TestFallbackBeforeTheQueue(t *testing.T) {
	const wait = 400 * time.Millisecond
	for _, c := range []struct {
		what     string
		full     string // pools
		waits    string // pools in whose queue another request waits
		on       names.Reason
		header   []string
		status   int
		model    string
		dropped  string
		atLeast  time.Duration
		lessThan time.Duration
	}{
		{what: "free", full: "cat", status: 200, model: "dog", lessThan: wait},
		{what: "the next is full too", full: "cat dog", status: 200, model: "owl", lessThan: wait},
		{what: "others wait for the next", full: "cat", waits: "dog", status: 200, model: "owl", lessThan: wait},
		{what: "all are full", full: "cat dog owl", status: 429, model: "owl", dropped: "wait", atLeast: wait,
			lessThan: 2 * wait},
		{what: "a deadline", full: "cat", header: []string{"X-Slo-Ttft-Ms", "100"}, status: 200, model: "dog", lessThan: wait},
		{what: "a deadline, and all are full", full: "cat dog owl", header: []string{"X-Slo-Ttft-Ms", "100"}, status: 429,
			model: "owl", dropped: "deadline", lessThan: wait},
		{what: "not for that", full: "cat", on: names.Down, status: 429, model: "cat", dropped: "wait", atLeast: wait,
			lessThan: 2 * wait},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := falling(t, cmp.Or(c.on, names.All), whole(200, "{}"), whole(200, dogSays), whole(200, owlSays))
			for i, p := range s.epoch.Pools {
				p.Queue = waiting.New(waiting.Config{Config: queue.Config{MaxRequests: 10, MaxBytes: 1 << 30}, Wait: wait})
				if name := string(s.epoch.Pools[i].Patterns.(only)); strings.Contains(c.full, name) {
					fill(p)
				} else if strings.Contains(c.waits, name) {
					w := new(waiting.Wait)
					p.Queue.Enter(w, false, time.Now())
					defer w.Leave(time.Now())
				}
			}
			began := time.Now()
			a, h := s.askPet(chatPath, petChat, c.header...)
			took := time.Since(began)
			if a.status != c.status || h.Get(admission.HeaderModel) != c.model || h.Get("X-Warmpath-Dropped") != c.dropped ||
				took < c.atLeast || took > c.lessThan {
				t.Errorf("%d by %q, dropped %q, after %v: %s", a.status, h.Get(admission.HeaderModel), h.Get("X-Warmpath-Dropped"), took, a.body)
			}
		})
	}
}

// TestFallbackOfPairs: prefillers that are full or fail lead to another model where no decoder serves alone, and to none
// where one does.
func TestFallbackOfPairs(t *testing.T) {
	t.Parallel()
	dog := func(pools *[]*epoch.Pool, list **names.List) {
		p := newScene(t, []string{whole(200, dogSays)}).pool
		p.Patterns = only("dog")
		*pools = append(*pools, p)
		*list = names.New([]names.Alias{{Name: "pet", Targets: []names.Target{{Model: "cat", Weight: 1}}, Fallback: "dog", On: names.All}})
	}
	for _, how := range []string{"503", "529", "429", "500"} {
		g := newSGL(t, "p0", "d0")
		g.pool.Patterns = only("cat")
		dog(&g.epoch.Pools, &g.epoch.Names)
		g.fail("p0", how)
		if status, text, in := g.post(chatPath, petChat, ""); status != 200 || text != `{"model":"pet"}` {
			t.Errorf("sglang, a prefiller answers %s: %d %s, %+v", how, status, text, in.Seen.Split)
		}
		d := newDuo(t, pair.NIXL)
		d.pool.Patterns = only("cat")
		dog(&d.epoch.Pools, &d.epoch.Names)
		d.locked(func() { d.breaks = "p" })
		in := inbound("POST", chatPath, strings.Replace(petChat, "hi", strings.Repeat("word ", 800), 1))
		in.Epoch, in.ID = d.epoch, "id-1"
		life := new(message.Life)
		alone.Begin(life)
		if out := d.Serve(life, in); out.Status != 200 || in.Seen.Worker == "" || in.Seen.Worker[0] != 'd' {
			t.Errorf("nixl, prefillers answer 503: %d at %s", out.Status, in.Seen.Worker)
		}
		life.Leave()
	}
}

// TestBusyPrefillersAreFull: where no decode server computes the prompt, busy prefillers have a request fall to the model
// that takes over from a full one, and broken ones to that for a model that is down. Without either the client gets 503.
func TestBusyPrefillersAreFull(t *testing.T) {
	t.Parallel()
	for how, why := range map[string]names.Reason{"429": names.Full, "503": names.Full, "529": names.Full, "full": names.Full,
		"500": names.Down, "reset": names.Down} {
		for _, on := range []names.Reason{names.Down, names.Full} {
			g := newSGL(t, "p0", "p1", "d0")
			g.pool.Patterns = only("dog")
			cat := newScene(t, []string{whole(200, `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":`+
				`{"role":"assistant","content":"from the cat"},"finish_reason":"stop"}]}`)})
			cat.pool.Patterns = only("cat")
			g.epoch.Pools = append(g.epoch.Pools, cat.pool)
			g.epoch.Names = names.New([]names.Alias{{Name: "m", Targets: []names.Target{{Model: "dog", Weight: 1}},
				Fallback: "cat", On: on}})
			for _, id := range []string{"p0", "p1"} {
				g.fail(id, how)
			}
			if how == "full" {
				g.busy(t)
			}
			status, text, _ := g.post(chatPath, strings.Replace(shortChat, "{", `{"model":"m",`, 1), "")
			if falls := strings.Contains(text, "from the cat"); falls != (on == why) || falls != (status == 200) || !falls && status != 503 {
				t.Errorf("prefillers: %s, fallback on %v: %d %s", how, on, status, text)
			}
		}
	}
}

// busy takes the only place of each prefiller.
func (g *sgl) busy(t *testing.T) {
	t.Helper()
	g.pool.Workers.Configure(worker.Config{Watcher: g.prober, SlowStart: time.Nanosecond, RetryBudget: 1, MaxInFlight: 1})
	g.pool.Limited = true
	_, all, _ := g.pool.Workers.Snapshot(worker.Query{At: time.Now(), Fence: g.pool.Pairing.Prefillers}, nil, nil)
	if len(all) != 2 {
		t.Fatalf("%d prefillers", len(all))
	}
	for _, w := range all {
		g.pool.Workers.Begin(new(worker.Ticket), w, worker.Dispatch{}, time.Now())
	}
}
