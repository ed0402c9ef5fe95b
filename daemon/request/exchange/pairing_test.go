package exchange

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/queue"
	"github.com/warmpath/warmpath/daemon/request/waiting"
)

// Each connector gets its legs, and a short prompt one worker alone, if that serves anything alone.
func TestPairing(t *testing.T) {
	f := func(c pair.Connector, want ...string) {
		t.Helper()
		d := newDuo(t, c)
		if c.Alone() {
			if _, out := d.ask(40, ""); out.Status != 200 {
				t.Errorf("%s: a short prompt: %d %s", c, out.Status, out.Body)
			}
			if got := d.took(); got != "d0 max=50 stream=false" && got != "d1 max=50 stream=false" {
				t.Errorf("%s: a short prompt: %s", c, got)
			}
		}
		in, out := d.ask(4000, "")
		if out.Status != 200 {
			t.Errorf("%s: %d %s", c, out.Status, out.Body)
		}
		var got string
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if more := d.took(); more != "" {
				got = strings.TrimPrefix(got+"; "+more, "; ")
			}
			if got != "" && strings.Count(got, "max=") >= strings.Count(want[0], "max=") {
				break
			}
		}
		got = strings.NewReplacer("p1", "p0", "d1", "d0").Replace(got)
		if got != want[0] && (len(want) == 1 || got != want[1]) {
			t.Errorf("%s: %s", c, got)
		}
		result := string(journal.PrefillDone)
		if c.AtOnce() {
			result = string(journal.PrefillBegun)
		}
		if s := in.Seen.Split; s == nil || s.Result != result || s.Prefiller == "" || in.Seen.Worker[0] != 'd' {
			t.Errorf("%s: the record has %+v, worker %s", c, s, in.Seen.Worker)
		}
		if d.stranded() != 0 {
			t.Errorf("%s: %d pinned", c, d.stranded())
		}
	}
	f(pair.NIXL, "p0 max=1 stream=false pins; d0 max=50 stream=false pulls")
	f(pair.LMCache, "p0 max=1 stream=false; d0 max=50 stream=false")
	f(pair.Sidecar, "d0 max=50 stream=false sidecar")
	p, dec := "p0 max=1 stream=false transfer=true engine=", "d0 max=50 stream=false transfer=true engine=engine-0"
	f(pair.Mooncake, p+"; "+dec, dec+"; "+p)
	p, dec = "p0 max=1 stream=false again=", "d0 max=50 stream=false again="
	f(pair.SGLang, p+"false; "+dec+"true", dec+"false; "+p+"true")
}

// The client's own fields name no prefiller. What the prefiller held is what counts as cached.
func TestPairingIsTheRoutersAlone(t *testing.T) {
	d := newDuo(t, pair.NIXL)
	own := `,"kv_transfer_params":{"do_remote_prefill":true,"remote_block_ids":"secret"}`
	if _, out := d.ask(40, own); out.Status != 200 {
		t.Errorf("%d %s", out.Status, out.Body)
	}
	if got := d.took(); strings.Contains(got, "pulls") {
		t.Errorf("the client chose what a worker reads: %s", got)
	}
	in, out := d.ask(4000, own)
	if u := in.Seen.Usage; u.Cached != 7 || u.Prompt != 900 || !bytes.Contains(out.Body, []byte(`{"cached_tokens":7}`)) {
		t.Errorf("usage %+v, %s; want what the prefiller held", u, out.Body)
	}
}

// TestCachedTokensOfAPair: with each connector the count of cached tokens is the prefiller's, which leaves it out where it
// has found none: its decoder counts all that it was handed. What a sidecar's prefiller says nobody sees.
func TestCachedTokensOfAPair(t *testing.T) {
	t.Parallel()
	for _, c := range pair.Connectors() {
		for held, want := range map[string]int{"null": 0, `{"cached_tokens":7}`: 7} {
			d := newDuo(t, pair.Connector(c))
			d.locked(func() { d.held = held })
			if d.connector.Within() {
				want = 0
			}
			in, out := d.ask(4000, "")
			if u := in.Seen.Usage; u.Cached != want || !u.CachedKnown || u.Prompt != 900 ||
				!bytes.Contains(out.Body, fmt.Appendf(nil, `{"cached_tokens":%d}`, want)) {
				t.Errorf("%s, %s: usage %+v, %s; want %d", c, held, u, out.Body, want)
			}
		}
	}
}

// TestPairsThatFailAreAsked: where decoders compute no prompt, prompts go to prefillers whose hand-overs all fail, too.
func TestPairsThatFailAreAsked(t *testing.T) {
	t.Parallel()
	d := newDuoOf(t, pair.SGLang, worker.Decodes)
	d.lose("KVTransferError")
	for range 20 {
		if _, out := d.ask(40, ""); out.Status == 200 {
			t.Errorf("a decoder that gets nothing answers %s", out.Body)
		}
	}
	if len(d.pool.Workers.Unpaired(d.pool.Pairing.Prefillers, time.Now())) != 2 {
		t.Fatal("a prefiller is paired whose hand-overs all fail")
	}
	d.lose("")
	if _, out := d.ask(40, ""); out.Status != 200 {
		t.Errorf("%d %s", out.Status, out.Body)
	}
}

// TestEnginesOfOthers: a prefiller whose answer names the engine of another one hands nothing over, as a decoder would
// read another prompt's KV.
func TestEnginesOfOthers(t *testing.T) {
	t.Parallel()
	d := newDuo(t, pair.NIXL)
	d.roles(t)
	d.locked(func() { d.engines = map[string]string{"p0": "e", "p1": "e"} })
	for i, c := range []struct{ prefiller, result string }{{"p0", "done"}, {"p1", "no_parameters"}, {"p0", "no_parameters"}} {
		d.pool.Strategy.Replace(pairsOf("d0", c.prefiller))
		in, out := d.askWith(fmt.Sprint(i), 4000, "")
		if s := in.Seen.Split; out.Status != 200 || s == nil || s.Result != c.result || s.Result != "done" && !strings.Contains(s.Why, "engine of another") {
			t.Errorf("%d, %s: %d, %+v", i, c.prefiller, out.Status, s)
		}
	}
	d.locked(func() { d.engines["p1"] = "f" })
	d.pool.Clients.Restarted(d.urlOf("p1"))
	for i, prefiller := range []string{"p1", "p0"} {
		d.pool.Strategy.Replace(pairsOf("d0", prefiller))
		if in, _ := d.askWith(fmt.Sprint("again", i), 4000, ""); in.Seen.Split.Result != "done" {
			t.Errorf("%s, once they differ: %+v", prefiller, in.Seen.Split)
		}
	}
}

// TestLongAnswersOfPrefillers: parameters of several MB are handed on, and freed if they come late or a decoder refuses them.
func TestLongAnswersOfPrefillers(t *testing.T) {
	t.Parallel()
	d := newDuo(t, pair.NIXL)
	d.locked(func() { d.fill = strings.Repeat("0,", 3<<20) })
	if _, out := d.ask(4000, ""); out.Status != 200 {
		t.Errorf("%d %s", out.Status, out.Body)
	}
	d.freed(t)
	if !strings.Contains(d.took(), "pulls") {
		t.Error("nothing was read")
	}
	d.mu.Lock()
	d.picky = true
	d.mu.Unlock()
	if _, out := d.askWith("more", 4000, ""); out.Status != 400 {
		t.Errorf("%d", out.Status)
	}
	d.freed(t)
}

// TestFreedElsewhere: a decoder that fails before it reads leaves the KV at the prefiller: another decoder frees it.
func TestFreedElsewhere(t *testing.T) {
	t.Parallel()
	d := newDuo(t, pair.NIXL)
	d.roles(t)
	d.pool.Strategy.Replace(pairsOf("d0", "p0"))
	d.locked(func() { d.fails500 = "d0" })
	d.ask(4000, "")
	d.freed(t)
}

// TestADecoderThatServesNothingAlone: SGLang's decode server refuses what no prefiller has, so a short prompt, and one that
// is computed whatever is cached, are split too. With other connectors they are the decoder's.
func TestADecoderThatServesNothingAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []pair.Connector{pair.SGLang, pair.Mooncake, pair.NIXL} {
		for _, extra := range []string{"", `,"prompt_logprobs":1`} {
			d := newDuoOf(t, c, worker.Decodes)
			if _, out := d.ask(40, extra); out.Status != 200 {
				t.Errorf("%s: %d %s", c, out.Status, out.Body)
			}
			got, split := d.took(), false
			for end := time.Now().Add(time.Second); !split && time.Now().Before(end); time.Sleep(time.Millisecond) {
				got += d.took()
				split = strings.Contains(got, "p0 max") || strings.Contains(got, "p1 max")
				if c != pair.SGLang {
					break
				}
			}
			if split != (c == pair.SGLang) {
				t.Errorf("%s, %q: at %q", c, extra, got)
			}
		}
	}
}

// TestADecoderFreesLater: a lone decoder is busy or broken for a while, and its client gets that, or an answer without the
// KV. The prefiller's memory is freed when the decoder reads again.
func TestADecoderFreesLater(t *testing.T) {
	t.Parallel()
	for refusal, status := range map[int]int{429: 429, 503: 503, 502: 200, 500: 200} {
		d := newDuo(t, pair.NIXL)
		d.locked(func() { d.refuses, d.refusal = "d", refusal })
		if _, out := d.ask(4000, ""); out.Status != status || d.stranded() == 0 {
			t.Fatalf("%d: %d, %d pinned: %s", refusal, out.Status, d.stranded(), out.Body)
		}
		time.Sleep(500 * time.Millisecond) // it has been asked in vain
		d.mu.Lock()
		d.refuses = ""
		d.mu.Unlock()
		d.freed(t)
	}
}

// TestASlowDecoderFrees: decoders that take longer than a second for anything read what a prefiller keeps all the same.
func TestASlowDecoderFrees(t *testing.T) {
	t.Parallel()
	d := newDuo(t, pair.NIXL)
	d.compute = func(id string, gone <-chan struct{}) bool {
		if id[0] == 'p' {
			return true
		}
		select {
		case <-time.After(1300 * time.Millisecond):
			return true
		case <-gone:
			return false
		}
	}
	life := new(message.Life)
	alone.Begin(life)
	var once sync.Once
	d.set("", func(string) { once.Do(func() { life.End(message.ErrClientGone) }) })
	in := inbound("POST", "/v1/chat/completions", fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%s"}]}`,
		strings.Repeat("word ", 800)))
	in.Epoch, in.ID = d.epoch, "id-1"
	d.Serve(life, in)
	life.Leave()
	if d.stranded() == 0 {
		t.Error("the client left too late")
	}
	d.freed(t)
}

// TestAnotherDecoderFrees: the decoder that was to read the KV has gone, and another one does.
func TestAnotherDecoderFrees(t *testing.T) {
	d := newDuo(t, pair.NIXL)
	d.locked(func() { d.refuses = "d0" })
	d.pool.Strategy.Replace(pairsOf("d0", "p0"))
	d.roles(t)
	life := new(message.Life)
	alone.Begin(life)
	defer life.Leave()
	d.set("", func(id string) { // its client leaves while the prompt is computed
		if id == "p0" {
			life.End(message.ErrClientGone)
		}
	})
	in := inbound("POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"`+
		strings.Repeat("word ", 800)+`"}]}`)
	in.Epoch, in.ID = d.epoch, "id-1"
	d.Serve(life, in)
	d.freed(t)
	if got := d.took(); !strings.Contains(got, "d0 max=0 stream=false 503") && !strings.Contains(got, "d0 max=1 stream=false 503") ||
		!strings.Contains(got, "d1 max=1 stream=false pulls") {
		t.Errorf("%s; want d0 asked in vain, and then d1", got)
	}
}

// TestALongAnswerOfAPrefiller: the ids of a long prompt's tokens take megabytes in an answer, before the KV's place.
func TestALongAnswerOfAPrefiller(t *testing.T) {
	d := newDuo(t, pair.NIXL)
	d.locked(func() { d.held = `{"cached_tokens":7,"ids":"` + strings.Repeat("x", 5<<20) + `"}` })
	in, out := d.ask(400000, "") // of a short one the prefiller would get half a second, which a busy machine needs to read it
	if s := in.Seen.Split; out.Status != 200 || s.Result != string(journal.PrefillDone) || s.Cached != 7 || d.stranded() > 0 {
		t.Errorf("%d %s, the record has %+v, %d pinned", out.Status, out.Body, s, d.stranded())
	}
}

// A prefiller that fails is replaced once, and then the decoder does it alone; a decoder that fails gets another one.
func TestPairingFails(t *testing.T) {
	for _, c := range []pair.Connector{pair.NIXL, pair.LMCache, pair.Mooncake} {
		d := newDuo(t, c)
		waits := func(id string) {
			if id[0] == 'd' && c.AtOnce() { // it would wait for the KV
				time.Sleep(50 * time.Millisecond)
			}
		}
		d.set("p0", waits)
		for range 4 {
			if _, out := d.ask(4000, ""); out.Status != 200 {
				t.Errorf("%s, p0 fails: %d %s", c, out.Status, out.Body)
			}
			if got := d.took(); c.AtOnce() && strings.Contains(got, "p0") && strings.Contains(got, "p1") {
				t.Errorf("%s: the decoder is told to meet p0, and p1 computes: %s", c, got)
			}
		}
		d.set("p", waits)
		in, out := d.ask(9000, "")
		if s := in.Seen.Split; out.Status != 200 || s == nil || s.Result != string(journal.PrefillFailed) ||
			!c.AtOnce() && !strings.HasSuffix(s.Why, "status 503") {
			t.Errorf("%s, both fail: %d, %+v", c, out.Status, s)
		}
		if !strings.Contains(d.log.String(), "no prefiller computed a prompt") {
			t.Errorf("%s: the log: %s", c, d.log)
		}
		d.set("", func(id string) {
			waits(id)
			if id[0] == 'p' {
				panic(http.ErrAbortHandler)
			}
		})
		if _, out := d.ask(11000, ""); out.Status != 200 || strings.Contains(d.log.String(), "its client gets an error") {
			t.Errorf("%s: the client got its answer, and the log: %s", c, d.log)
		}
		d.set("d0", nil)
		for range 4 {
			if _, out := d.ask(14000, ""); out.Status != 200 {
				t.Errorf("%s, d0 fails: %d %s", c, out.Status, out.Body)
			}
		}
	}
}

// A decoder that waits for one prefiller gets nothing from another: if that one fails, the decoder does it itself, and
// the record says whose failure it was.
func TestPairingAtOnceFails(t *testing.T) {
	const alone = "d0 max=50 stream=false"
	for _, c := range []pair.Connector{pair.Mooncake} {
		d := newDuo(t, c)
		d.roles(t)
		d.pool.Strategy.Replace(pairsOf("d0", "p0"))
		again := make(chan struct{})
		ask := sync.OnceFunc(func() { close(again) })
		d.set("p0", func(id string) {
			d.mu.Lock()
			whole := slices.Contains(d.got, alone)
			d.mu.Unlock()
			if id != "d0" {
				return
			}
			if whole {
				ask()
			}
			select { // before that it waits for what does not come
			case <-again:
			case <-time.After(5 * time.Second):
			}
		})
		in, out := d.ask(4000, "")
		lines := strings.Split(d.took(), "; ")
		s := in.Seen.Split
		if out.Status != 200 || s == nil || s.Result != string(journal.PrefillFailed) || s.Prefiller != "p0" || !s.Named {
			t.Errorf("%s: %d %s, %+v", c, out.Status, out.Body, s)
		}
		if !slices.Contains(lines, alone) {
			t.Errorf("%s: %q; want that d0 is asked again, for all of it", c, lines)
		}
		if n := strings.Count(d.log.String(), "level=WARN"); n != 1 || !strings.Contains(d.log.String(), "no prefiller computed a prompt") {
			t.Errorf("%s: the log: %s", c, d.log)
		}
	}
}

// A decoder that cannot read a prefiller's KV answers 500, or an event of an error: here as vLLM 0.32 with NIXL did whose
// prefiller was not there any more. It is asked again for all of it, and what it counts as cached is its own.
func TestPairingLosesAsRecorded(t *testing.T) {
	why, err := os.ReadFile("../pair/testdata/nixl-lost.json")
	event, err2 := os.ReadFile("../pair/testdata/nixl-lost.sse")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	f := func(c pair.Connector, extra, loses string) {
		t.Helper()
		d := newDuo(t, c)
		d.lose(loses)
		in, out := d.ask(4000, extra)
		if out.Status != 200 || in.Seen.Usage.Cached != 896 {
			t.Errorf("%s, %s: %d %s, %d cached", c, loses, out.Status, out.Body, in.Seen.Usage.Cached)
		}
		if s := in.Seen.Split; s == nil || s.Result != string(journal.PrefillLost) {
			t.Errorf("%s, %s: the record has %+v", c, loses, s)
		}
		lines := strings.Split(d.served(), "; ")
		again := in.Seen.Worker + " max=50 stream=" + strconv.FormatBool(extra != "")
		if !slices.Contains(lines, again) || len(lines) > 3 {
			t.Errorf("%s, %s: %q", c, loses, lines)
		}
		if !strings.Contains(d.log.String(), "a decoder could not load what a prefiller had computed") {
			t.Errorf("%s: the log: %s", c, d.log)
		}
	}
	for _, c := range []pair.Connector{pair.NIXL, pair.Mooncake, pair.Sidecar} {
		f(c, "", string(why))
	}
	f(pair.NIXL, `,"stream":true`, string(event))
}

// A decoder that cannot load what a prefiller has computed gets the whole prompt, and nothing speaks against it: else a
// prefiller that restarts would close the decoders.
func TestPairingLost(t *testing.T) {
	const gone = `{"error":{"message":"Internal server error","code":500}}`
	for stream, lost := range map[string]string{"": gone, `,"stream":true`: "data: " + gone + "\n\ndata: [DONE]\n\n"} {
		d := newDuo(t, pair.NIXL)
		d.lose(lost)
		for i := range 4 { // after three losses in a row a prefiller is not asked for each prompt
			d.lead = fmt.Sprint(i, " ")
			in, out := d.ask(4000, stream)
			text := string(out.Body)
			if out.Stream != nil {
				whole, _ := io.ReadAll(out.Stream)
				text = string(whole)
				_ = out.Stream.Close()
			}
			if out.Status != 200 || !strings.Contains(text, "hi") || strings.Contains(text, "error") {
				t.Errorf("%q: %d %s", stream, out.Status, text)
			}
			if s := in.Seen.Split; s == nil || s.Result != string(journal.PrefillLost) {
				t.Errorf("%q: the record has %+v", stream, s)
			}
			got := strings.NewReplacer("p1", "p0", "d1", "d0", fmt.Sprint(" stream=", stream != ""), "", " stream=false", "").Replace(d.served())
			if got != "p0 max=1 pins; d0 max=50 pulls nothing; d0 max=50" {
				t.Errorf("%q: %s", stream, got)
			}
		}
		for _, w := range d.pool.Workers.Stats(time.Now()) {
			if w.Breaker != 0 || !w.Up {
				t.Errorf("%q: %s is up %v with breaker %v", stream, w.ID, w.Up, w.Breaker)
			}
		}
		if !strings.Contains(d.log.String(), "could not load") {
			t.Errorf("the log: %s", d.log)
		}
	}
}

// A client that leaves in any phase leaves no memory pinned, and no request counted at a worker.
func TestPairingClientLeaves(t *testing.T) {
	for _, name := range pair.Connectors() {
		leavesIn(t, pair.Connector(name))
	}
}

// A decoder serves the model that an alias stands for, also for a client that has left.
func TestPairingAliasLeaves(t *testing.T) {
	d := newDuo(t, pair.NIXL)
	d.locked(func() { d.model = "cat" })
	d.epoch.Names = names.New([]names.Alias{{Name: "m", Targets: []names.Target{{Model: "cat", Weight: 1}}}})
	d.leaves(t)
}

// A request that has gone to the fallback of its model is computed by a prefiller of that model.
func TestPairingOfAFallback(t *testing.T) {
	d := newDuo(t, pair.NIXL)
	d.locked(func() { d.model, d.pool.Patterns = "dog", only("dog") })
	cat := newScene(t, []string{"refuse"})
	cat.pool.Patterns = only("cat")
	d.epoch.Pools = append(d.epoch.Pools, cat.pool)
	d.epoch.Names = names.New([]names.Alias{{Name: "m", Targets: []names.Target{{Model: "cat", Weight: 1}}, Fallback: "dog",
		On: names.Down}})
	in, out := d.ask(4000, "")
	if s := in.Seen.Split; out.Status != 200 || s == nil || s.Result != string(journal.PrefillDone) {
		t.Errorf("%d %s, %+v: %s", out.Status, out.Body, s, d.took())
	}
}

// TestPairingAcrossPools: a request whose decoders are busy falls to the model of another pool, and a decoder of its own
// pool frees what the prefiller there keeps.
func TestPairingAcrossPools(t *testing.T) {
	t.Parallel()
	d := newDuo(t, pair.NIXL)
	d.locked(func() { d.refuses, d.pool.Patterns = "d", only("dog") })
	cat := newScene(t, []string{whole(200, `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant",`+
		`"content":"from the cat"},"finish_reason":"stop"}]}`)})
	cat.pool.Patterns = only("cat")
	d.epoch.Pools = append(d.epoch.Pools, cat.pool)
	d.epoch.Names = names.New([]names.Alias{{Name: "m", Targets: []names.Target{{Model: "dog", Weight: 1}}, Fallback: "cat",
		On: names.Full}})
	if _, out := d.ask(4000, ""); out.Status != 200 || !strings.Contains(string(out.Body), "from the cat") || d.stranded() == 0 {
		t.Errorf("%d %s, %d are pinned", out.Status, out.Body, d.stranded())
	}
	d.mu.Lock()
	d.refuses = ""
	d.mu.Unlock()
	d.freed(t)
}

// What a decoder refuses it does not read: the prefiller's memory is freed all the same, by the one that answers if
// there is one.
func TestPairingRefused(t *testing.T) {
	d := newDuo(t, pair.NIXL)
	d.locked(func() { d.picky = true })
	for range 4 {
		if _, out := d.ask(4000, ""); out.Status != 400 {
			t.Errorf("%d %s", out.Status, out.Body)
		}
	}
	d.freed(t)
	d.took()
	d.locked(func() { d.picky, d.refuses = false, "d0" })
	for i := range 4 {
		d.lead = fmt.Sprint(i, " ")
		if _, out := d.ask(4000, ""); out.Status != 200 {
			t.Errorf("%d %s", out.Status, out.Body)
		}
	}
	d.freed(t)
}

func leavesIn(t *testing.T, c pair.Connector) {
	t.Helper()
	newDuo(t, c).leaves(t)
}

// leaves has clients leave in each phase, and waits until nothing is left of their requests.
func (d *duo) leaves(t *testing.T) {
	t.Helper()
	for i, phase := range []string{"p", "d", "p", "d", "p", "p"} {
		life := new(message.Life)
		alone.Begin(life)
		once := sync.Once{}
		d.set("", func(id string) {
			if strings.HasPrefix(id, phase) {
				once.Do(func() { life.End(message.ErrClientGone) })
			}
		})
		in := inbound("POST", "/v1/chat/completions", fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%d %s"}]}`,
			i, strings.Repeat("word ", 800)))
		in.Epoch, in.ID = d.epoch, "id-1"
		d.Serve(life, in)
		life.Leave()
	}
	d.freed(t)
}

// freed waits until no memory is pinned, and no request counted at a worker.
func (d *duo) freed(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); d.stranded() > 0 || d.busy(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: %d blocks are pinned: %s", d.connector, d.stranded(), d.took())
		}
	}
}

// A prompt is no prompt to split if nobody reads it so.
func TestPairingOfOtherRequests(t *testing.T) {
	d := newDuo(t, pair.NIXL)
	in := inbound("POST", "/v1/embeddings", fmt.Sprintf(`{"model":"m","input":"%s"}`, strings.Repeat("word ", 4000)))
	in.Epoch = d.epoch
	life := new(message.Life)
	alone.Begin(life)
	d.Serve(life, in)
	life.Leave()
	if got := d.took(); !strings.HasPrefix(got, "d") || strings.Contains(got, ";") || in.Endpoint.Kind != prompt.Embedding {
		t.Errorf("%s", got)
	}
}

// Of a request with several prompts or answers a connector names the KV of one: it is not split. LMCache finds each by
// its prompt. A request whose prompt is computed whatever is cached gains nothing.
func TestPairingOfSeveral(t *testing.T) {
	long := strings.Repeat("word ", 4000)
	f := func(c pair.Connector, path, body, want string) {
		t.Helper()
		d := newDuo(t, c)
		in := inbound("POST", path, body)
		in.Epoch, in.ID = d.epoch, "id-1"
		life := new(message.Life)
		alone.Begin(life)
		defer life.Leave()
		if out := d.Serve(life, in); out.Status != 200 {
			t.Errorf("%s, %.40s: %d %s", c, body, out.Status, out.Body)
		}
		workers := ""
		for line := range strings.SplitSeq(d.took(), "; ") {
			workers += line[:1]
		}
		if workers != want {
			t.Errorf("%s, %.40s: went to %q; want %q", c, body, workers, want)
		}
	}
	for _, c := range pair.Connectors() {
		c, split := pair.Connector(c), "d"
		if !c.Alone() { // TestSGLang has its requests
			continue
		}
		if c == pair.LMCache {
			split = "pd"
		}
		f(c, "/v1/chat/completions", `{"n":2,"messages":[{"role":"user","content":"`+long+`"}]}`, split)
		f(c, "/v1/completions", `{"prompt":["`+long+`","`+long+`"]}`, split)
		f(c, "/v1/completions", `{"prompt_logprobs":0,"prompt":"`+long+`"}`, "d")
		f(c, "/v1/completions", `{"echo":true,"logprobs":1,"prompt":"`+long+`"}`, "d")
	}
	f(pair.NIXL, "/v1/completions", `{"n":1,"prompt":["`+long+`"]}`, "pd")
}

// TestALegGivesItsTurnBack: a leg that has waited in the queue for its prefiller has the turn, which nobody else has
// meanwhile. It gives it back when the prompt is at a sidecar, and when the two workers cannot meet.
func TestALegGivesItsTurnBack(t *testing.T) {
	f := func(c pair.Connector, bootstrap int) {
		t.Helper()
		d := newDuo(t, c)
		q := waiting.New(waiting.Config{Config: queue.Config{MaxRequests: 10, MaxBytes: 1 << 30}, Wait: 5 * time.Second})
		d.pool.Queue, d.pool.Limited = q, true
		d.pool.Workers.Configure(worker.Config{MaxInFlight: 1, Room: q})
		d.pool.Workers.Drain("p1", true, time.Now())
		first, second, came := make(chan bool), make(chan bool), make(chan string, 9)
		var answers sync.WaitGroup
		ask := func(bytes int) {
			answers.Go(func() {
				if _, out := d.ask(bytes, ""); out.Status != 200 {
					t.Errorf("%s: %d %s", c, out.Status, out.Body)
				}
			})
		}
		d.set("", func(w string) { came <- w; <-first })
		ask(4000)
		<-came
		if c == pair.Mooncake { // both workers have it
			<-came
		}
		d.pool.Pairing.Bootstrap = cmp.Or(bootstrap, d.pool.Pairing.Bootstrap)
		d.set("", func(w string) { came <- w; <-second })
		ask(4000)
		for q.Depth() == 0 {
			time.Sleep(time.Millisecond)
		}
		close(first)
		<-came
		d.set("", nil)
		if _, out := d.ask(5, ""); out.Status != 200 {
			t.Errorf("%s: beside a prompt that is computed: %d %s", c, out.Status, out.Body)
		}
		close(second)
		answers.Wait()
		if q.Depth() != 0 {
			t.Errorf("%s: %d have the turn", c, q.Depth())
		}
	}
	f(pair.Sidecar, 0)
	f(pair.Mooncake, 1)
}

// TestABootstrapServerIsAskedOutOfTurn: a leg that has waited in the queue asks where its decoder finds the engine once it
// has its place. A bootstrap server that hangs keeps nobody else from a worker.
func TestABootstrapServerIsAskedOutOfTurn(t *testing.T) {
	d := newDuo(t, pair.Mooncake)
	q := waiting.New(waiting.Config{Config: queue.Config{MaxRequests: 10, MaxBytes: 1 << 30}, Wait: 5 * time.Second})
	d.pool.Queue, d.pool.Limited = q, true
	d.pool.Workers.Configure(worker.Config{MaxInFlight: 1, Room: q})
	d.pool.Workers.Drain("p1", true, time.Now())
	asked, hangs := make(chan bool, 9), make(chan bool)
	bootstrap := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- true
		select {
		case <-hangs:
		case <-r.Context().Done():
		}
	}))
	defer bootstrap.Close()
	defer close(hangs)
	u, _ := url.Parse(bootstrap.URL)
	first, came := make(chan bool), make(chan string, 9)
	var answers sync.WaitGroup
	ask := func() {
		answers.Go(func() {
			if _, out := d.ask(4000, ""); out.Status != 200 {
				t.Errorf("%d %s", out.Status, out.Body)
			}
		})
	}
	d.set("", func(w string) { came <- w; <-first })
	ask()
	<-came
	<-came
	d.pool.Pairing.Bootstrap, _ = strconv.Atoi(u.Port())
	d.set("", nil)
	ask()
	for q.Depth() == 0 {
		time.Sleep(time.Millisecond)
	}
	close(first)
	<-asked
	if q.Depth() != 0 {
		t.Errorf("%d have the turn while the bootstrap server is asked", q.Depth())
	}
	began := time.Now()
	if _, out := d.ask(5, ""); out.Status != 200 || time.Since(began) > time.Second {
		t.Errorf("beside a bootstrap server that hangs: %d after %v", out.Status, time.Since(began))
	}
	answers.Wait()
	if q.Depth() != 0 {
		t.Errorf("at the end %d have the turn", q.Depth())
	}
}
