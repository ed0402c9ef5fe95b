package route

import (
	"fmt"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/sdk/abi"
)

// The pool does what the strategy asks for. What it leaves out or gets wrong the fallback decides, and the reason names
// it.
func TestDecisions(t *testing.T) {
	f := func(fleet string, say int, want, reason string) {
		t.Helper()
		s := newScene(t, fleet)
		c, v := s.choose(s.ask(say, Claim{}))
		if v != Chosen {
			t.Errorf("%q, %d: %v", fleet, say, v)
			return
		}
		if got := orderOf(c); got != want || c.Reason() != reason {
			t.Errorf("%q, %d: %q, %q; want %q, %q", fleet, say, got, c.Reason(), want, reason)
		}
		if c.Left() != strings.Count(want, " ")+1 || !c.MayWiden(s.now) {
			t.Errorf("%q, %d: %d left", fleet, say, c.Left())
		}
	}
	f("a b c", first, "a b c", "obedient says 7")
	f("a b c", first+2, "c a b", "obedient says 7")
	f("a b c", bindTo+1, "b a c", "obedient says 7")
	f("a:busy b c:busy", decline, "b a c", "fallback: decline")
	f("a:busy b:busy c:busy", decline, "a b c", "fallback: decline")
	f("a b c", first+3, "a b c", "fallback: bad_index")
	f("a", first, "a", "obedient says 7")
	f("a:down b c:draining d:ejected e:leaving f:lacks g:full h:slow i:starting j k l", first+1, "j b k l",
		"obedient says 7")
}

// Nobody can take the request: why.
func TestNobody(t *testing.T) {
	f := func(fleet string, want Verdict) {
		t.Helper()
		if _, got := newScene(t, fleet).choose(newScene(t, "").ask(decline, Claim{})); got != want {
			t.Errorf("%q: %v; want %v", fleet, got, want)
		}
	}
	f("", NoWorker)
	f("a:down b:draining", NoWorker)
	f("a:starting", NoWorker)
	f("a:lacks b:lacks", UnknownModel)
	f("a:lacks b:down", NoWorker)
	f("a:full b:full", Full)
	f("a:full b:down c:lacks", Full)
	f("a:full b:lists c:lacks", Chosen)
}

// The strategy turns the client away, in its words.
func TestRejected(t *testing.T) {
	s := newScene(t, "a b")
	c, v := s.choose(s.ask(reject, Claim{}))
	if status, text, wait := c.Rejection(); v != Rejected || status != 403 || text != "too many of yours" ||
		wait.Seconds() != 90 {
		t.Errorf("%v: %d, %q, %v", v, status, text, wait)
	}
	if !c.Explain(new(record.Record)) {
		t.Error("a rejection is not explained")
	}
	c = s.chosen(s.ask(decline, Claim{}))
	if status, text, wait := c.Rejection(); status != 0 || text != "" || wait != 0 {
		t.Errorf("%d, %q, %v of none", status, text, wait)
	}
}

// What a strategy sees of a request.
func TestTheFrame(t *testing.T) {
	s := newScene(t, "a b:busy")
	r := parsed("/v1/completions",
		`{"model":"m","stream":true,"max_tokens":1,"priority":-3,"cache_salt":"tenant","prompt":"`+text("x", 20)+`"}`)
	a := s.asking(r, Claim{Key: key("s")})
	a.Turn, a.Salt = 42, "tenant"
	c := s.chosen(a)
	h := c.fleet.frame.Header
	if h.Seq != 42 || h.Now != s.now.UnixNano() || h.MaxTokens != 1 || h.Priority != -3 || h.Flags&abi.HeaderStream == 0 {
		t.Errorf("%+v", h)
	}
	if h.Model != hashOf("m") || h.Session != hashOf("s") || h.Tenant != hashOf("tenant") || hashOf("m") == 0 ||
		hashOf("") != 0 {
		t.Errorf("names %x %x %x", h.Model, h.Session, h.Tenant)
	}
	if f := &c.fleet.frame; f.Model != "m" || f.Session != "s" || f.Tenant != "tenant" ||
		strings.Join(f.WorkerIDs, " ") != "a b" {
		t.Errorf("%q %q %q %q", f.Model, f.Session, f.Tenant, f.WorkerIDs)
	}
	if h.PromptBlocks != 20 || h.PromptTokens != 640 || h.BlockTokens != 32 || h.Bound != -1 || h.BestRow != -1 ||
		h.BestMatch != 0 {
		t.Errorf("%d blocks, %d tokens, %v a block, bound %d, best %d of row %d", h.PromptBlocks, h.PromptTokens,
			h.BlockTokens,
			h.Bound, h.BestMatch, h.BestRow)
	}
	if h.C1 <= 0 || h.C2 <= 0 || h.Lambda < 0 {
		t.Errorf("c1 %v, c2 %v, lambda %v", h.C1, h.C2, h.Lambda)
	}
	c = s.chosen(s.asking(parsed("/v1/embeddings", `{"model":"m"}`), Claim{}))
	if h := c.fleet.frame.Header; h.PromptBlocks != 0 || h.PromptTokens != 0 || h.Flags != 0 || h.BestRow != -1 {
		t.Errorf("without a prompt: %+v", h)
	}
}

// A worker is believed to hold what it was sent, for that model and that salt.
func TestMatches(t *testing.T) {
	s := newScene(t, "a b c")
	sent := text("system ", 10)
	f := func(what string, r *prompt.Request, salt string, row, blocks, tokens int) {
		t.Helper()
		a := s.asking(r, Claim{})
		a.Salt = salt
		c := s.chosen(a)
		h := &c.fleet.frame.Header
		if int(h.BestRow) != row || int(h.BestMatch) != blocks {
			t.Errorf("%s: %d blocks at row %d; want %d at %d", what, h.BestMatch, h.BestRow, blocks, row)
		}
		to, _ := c.Next(s.now)
		if got := c.believed(to); got != tokens {
			t.Errorf("%s: %d tokens believed at %s; want %d", what, got, to.Worker.ID(), tokens)
		}
	}
	s.served(s.asking(completion(first+1, sent), Claim{}))
	f("the same", completion(first+1, sent), "", 1, 10, 319) // one token is always computed
	f("its beginning", completion(decline, sent[:6*prompt.BlockBytes]), "", 1, 6, 191)
	f("a continuation", completion(first+1, sent+text("more", 3)), "", 1, 10, 320)
	f("a continuation, elsewhere", completion(first, sent+text("more", 3)), "", 1, 10, 0)
	f("another salt", completion(first+1, sent), "salt", -1, 0, 0)
	f("another model", parsed("/v1/completions", `{"model":"n","max_tokens":2,"prompt":"`+sent+`"}`), "", -1, 0, 0)
	f("past the cache",
		parsed("/v1/completions", `{"model":"m","max_tokens":2,"prompt_logprobs":1,"prompt":"`+sent+`"}`), "", -1, 0, 0)
	f("a list, one of them known", completion(first+1, text("short", 2), sent, text("y", 3)), "", 1, 10, 319)
	f("a list, its longest unknown", completion(first+1, text("z", 30), sent, sent), "", -1, 0, 638)
	f("a list, past the cache",
		parsed("/v1/completions", fmt.Sprintf(`{"model":"m","max_tokens":2,"echo":true,"logprobs":1,"prompt":[%q,"b"]}`,
			sent)), "", -1, 0, 0)
}

// Token ids are in blocks of their own size, and counted as they are.
func TestTokenIDs(t *testing.T) {
	s := newScene(t, "a b")
	ids := strings.TrimSuffix(strings.Repeat("17,", 100), ",")
	r := parsed("/v1/completions", `{"model":"m","max_tokens":1,"prompt":[`+ids+`]}`)
	c := s.served(s.asking(r, Claim{}))
	if c.size.all != 100 || c.size.longest != 100 || c.size.block != 16 {
		t.Errorf("%+v", c.size)
	}
	c = s.chosen(s.asking(r, Claim{}))
	if got := c.fleet.frame.Header.BestMatch; got != 6 {
		t.Errorf("%d blocks", got)
	}
}

// A row has the room in a worker's cache, and how soon the next evicted blocks would be wanted again.
func TestRoom(t *testing.T) {
	s := sceneOf(t, "a b", worker.Config{})
	s.Workers.Update([]worker.Spec{{ID: "a", URL: "http://a", KVTokens: 3200}, {ID: "b", URL: "http://b"}}, s.now)
	row := func(i int) abi.Row { return s.chosen(s.ask(decline, Claim{})).fleet.frame.Rows[i] }
	if a, b := row(0), row(1); a.FreeGPU != 3200 || b.FreeGPU != unknownTokens || a.ReuseGPU != 0 {
		t.Errorf("free %v and %v, reuse %v", a.FreeGPU, b.FreeGPU, a.ReuseGPU)
	}
	s.served(s.asking(completion(first, text("x", 40)), Claim{}))
	if a, b := row(0), row(1); a.FreeGPU != 3200-40*32 || a.ReuseGPU <= 0 || a.ReuseGPU > 1 || b.ReuseGPU != 0 {
		t.Errorf("free %v, reuse %v and %v", a.FreeGPU, a.ReuseGPU, b.ReuseGPU)
	}
	s.served(s.asking(completion(first, text("y", 90)), Claim{}))
	if a := row(0); a.FreeGPU != 0 {
		t.Errorf("free %v of a full cache", a.FreeGPU)
	}
	s.become("a", "down")
	s.heal("a")
	if a := row(0); a.FreeGPU != 3200 {
		t.Errorf("free %v after its death", a.FreeGPU)
	}
}

// Choose may use a Choice again, as it does while a first health check is awaited: nothing of the last is left.
func TestAChoiceIsUsedAgain(t *testing.T) {
	s := newScene(t, "a b c")
	s.enter(opened("s"), "c", true)
	c := new(Choice)
	first := s.ask(decline, Claim{Opened: opened("s")})
	s.Choose(c, &first)
	to, _ := c.Next(s.now)
	s.send(c, to)
	second := s.asking(parsed("/v1/embeddings", `{"model":"m"}`), Claim{})
	if v := s.Choose(c, &second); v != Chosen {
		t.Fatal(v)
	}
	var r record.Record
	if c.Explain(&r); r.Believed != 0 || r.PromptTokens != 0 || c.space != nil || c.Left() != 3 || len(c.Tried()) != 0 ||
		!c.MayWiden(s.now) {
		t.Errorf("%+v, %d left, tried %v, second look %v", r, c.Left(), c.Tried(), c.MayWiden(s.now))
	}
	if c.sent != 0 || c.Session().ID != "" {
		t.Errorf("sent %d, session %v", c.sent, c.Session())
	}
}

// Verdicts are words.
func TestVerdictsAreWords(t *testing.T) {
	seen := map[string]bool{}
	for v := Chosen; v <= Held; v++ {
		seen[v.String()] = true
	}
	if len(seen) != int(Held)+1 || Verdict(200).String() != Held.String() {
		t.Errorf("%v", seen)
	}
}

// The models that are listed, for one who looks for a name.
func TestListedModels(t *testing.T) {
	s := newScene(t, "a:lists b:lacks c:lists d")
	if got := s.Listed(s.now, 8, func(m string) bool { return m == "m" }); strings.Join(got, " ") != "other" {
		t.Errorf("listed without m: %v", got)
	}
	shown := func(string) bool { return false }
	if got := s.Listed(s.now, 8, shown); strings.Join(got, " ") != "m other" {
		t.Errorf("%q", got)
	}
	if got := s.Listed(s.now, 1, shown); strings.Join(got, " ") != "m" {
		t.Errorf("%q", got)
	}
}

// The fallback answers for a strategy that fails, and the record names the error.
func TestAStrategyThatTraps(t *testing.T) {
	h, _ := shared()
	s := sceneBy(t, "a:busy b", worker.Config{}, load(h, "traps", obedient))
	c := s.chosen(s.ask(trap, Claim{}))
	var r record.Record
	if c.Explain(&r); orderOf(c) != "b a" || r.Reason != "fallback: trap" || r.Fallback != "trap" || r.Strategy != "traps" {
		t.Errorf("%q, %+v", orderOf(c), r)
	}
}

// The fallback answers for a strategy that is closed.
func TestAStrategyThatIsClosed(t *testing.T) {
	h, _ := shared()
	gone := load(h, "gone", obedient)
	s := sceneBy(t, "a:busy b", worker.Config{}, gone)
	gone.Close(t.Context())
	c := s.chosen(s.ask(first, Claim{}))
	if orderOf(c) != "b a" || c.Reason() != "fallback: closed" || c.strategy.Name() != "gone" {
		t.Errorf("%q, %q by %s", orderOf(c), c.Reason(), c.strategy.Name())
	}
}
