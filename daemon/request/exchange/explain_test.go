package exchange

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// TestExplainIsAskedForAndAllowed: a client gets the decision where the operator allows it, in the form that it asked
// for.
func TestExplainIsAskedForAndAllowed(t *testing.T) {
	f := func(allowed bool, how, want string) {
		t.Helper()
		in := inbound("POST", "/v1/chat/completions", "", "x-warmpath-explain", how)
		in.Seen.Retries = 2
		e := Exchange{req: admission.Request{In: in, Epoch: &epoch.Epoch{Explain: allowed}, Pool: &epoch.Pool{Pool: &route.Pool{Name: "p"}}}}
		var out message.Outbound
		e.explain(&out)
		if got := lines(out.Header); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%q, allowed %v:\n%s\nwant:\n%s", how, allowed, got, want)
		}
	}
	const ignored = "X-Warmpath-Ignored: X-Warmpath-Explain: want 1 or json, and a client that may ask for it"
	f(false, "1", ignored)
	f(false, "json", ignored)
	f(true, "", "")
	f(true, "yes", ignored)
	f(true, "1", "X-Warmpath-Retries: 2\nX-Warmpath-Pool: p\n")
	f(true, "json", `X-Warmpath-Decision: {"id":"",`)
}

func TestExplainInFields(t *testing.T) {
	f := func(seen message.Seen, want string) {
		t.Helper()
		var out message.Outbound
		explainInFields(&out, &seen, "p")
		if got := lines(out.Header); got != want {
			t.Errorf("%+v:\n%s\nwant:\n%s", seen, got, want)
		}
	}
	seen := message.Seen{Retries: 1, Record: record.Record{Strategy: "prefixaware", Reason: "longest match", PromptBlocks: 3, PromptTokens: 50}}
	const head = "X-Warmpath-Retries: 1\nX-Warmpath-Pool: p\nX-Warmpath-Strategy: prefixaware\nX-Warmpath-Reason: longest match\n"
	f(seen, head+"X-Warmpath-Prompt: blocks=3 tokens=50\n")
	seen.Worker, seen.Matched, seen.Believed = "w1", 2, 32
	seen.Candidates = []record.Candidate{{Worker: "w1", GPU: 2, Wait: 0.0126, InFlight: 4}, {Worker: "w2", Skipped: "full"}, {Worker: "w3"}}
	seen.More = 7
	f(seen, head+"X-Warmpath-Prompt: blocks=3 tokens=50\n"+
		"X-Warmpath-Candidates: w1;matched=2;wait=0.013;inflight=4, w3;matched=0;wait=0.000;inflight=0, and 7 more\n"+
		"X-Warmpath-Worker: w1\nX-Warmpath-Matched-Blocks: 2\nX-Warmpath-Matched-Tokens: 32\n")
}

func TestPromptSize(t *testing.T) {
	f := func(r record.Record, want string) {
		t.Helper()
		if got := promptSize(&r); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
	f(record.Record{}, "blocks=0 tokens=0")
	f(record.Record{PromptBlocks: 2, PromptTokens: 40, Prompts: 1, LongestPrompt: 9}, "blocks=2 tokens=40")
	f(record.Record{PromptBlocks: 2, PromptTokens: 70, Prompts: 3, LongestPrompt: 40}, "blocks=2 tokens=40 prompts=3 all_tokens=70")
}

// TestDeadline: the client's header counts if it is a number of seconds.
func TestDeadline(t *testing.T) {
	at := time.Unix(1000, 0)
	f := func(given string, want time.Duration) {
		t.Helper()
		got := inbound("POST", "/v1/chat/completions", "", "x-stainless-timeout", given).Deadline(at)
		if want == 0 && !got.IsZero() || want > 0 && !got.Equal(at.Add(want)) {
			t.Errorf("%q: %v; want %v later", given, got, want)
		}
	}
	f("600", 10*time.Minute)
	f("0.5", time.Second/2)
	for _, none := range []string{"", "0", "-1", "soon", "NaN", "Inf", "1e6"} {
		f(none, 0)
	}
}

// TestDeadlineOfMostRequestsIsFree: most clients set no deadline, and parsing "" would allocate an error.
func TestDeadlineOfMostRequestsIsFree(t *testing.T) {
	in := inbound("POST", "/v1/chat/completions", "", "Content-Type", "application/json")
	if n := testing.AllocsPerRun(100, func() { in.Deadline(time.Time{}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestDecisionFitsAHeader: the record in a header field has few candidates and the number left out.
func TestDecisionFitsAHeader(t *testing.T) {
	r := record.Record{Candidates: make([]record.Candidate, 40), More: 2}
	text := decision(r)
	if strings.Count(text, `"worker":`) != maxShown || !strings.Contains(text, `"more":26`) || len(r.Candidates) != 40 {
		t.Errorf("%s", text)
	}
	r.Candidates[0].Cost = math.NaN()
	if text := decision(r); !strings.HasPrefix(text, `{"error":`) {
		t.Errorf("%s", text)
	}
}
