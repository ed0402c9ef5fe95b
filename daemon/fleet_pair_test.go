package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/warmpath/warmpath/daemon/admin/decisions"
	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/lab/otlptest"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/sdk/abi"
)

// TestPairsOfAStrategy: the gallery's pairs names who answers and who computes the prompt, as a module, before simulated
// workers with roles. A short prompt goes to two if it says so, and a long one to one. Decisions name the pair.
func TestPairsOfAStrategy(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pairs.wasm")
	c := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w -buildid=", "-o", file,
		"../docs/strategies/pairs")
	c.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, x := range []struct {
		handover     float64
		tokens, legs int
	}{{-100, 50, 10}, {100, 3000, 0}} {
		table := fmt.Sprintf("[strategies.pairs]\npath = %q\noptions = { handover = %.1f }\n", file, x.handover)
		f := startRolesWith(t, 2, 2, rolesOptions{strategy: "pairs", table: table})
		for i := range 10 {
			if err := f.ask(t.Context(), fmt.Sprint("prompt ", i), x.tokens, i%2 == 0); err != nil {
				t.Fatal(err)
			}
		}
		legs := 0
		for _, w := range f.prefill {
			legs += int(w.Stats().Finished)
		}
		if legs != x.legs {
			t.Errorf("handover %v: %d prompts at prefillers; want %d", x.handover, legs, x.legs)
		}
		eventually(t, "no blocks are pinned", func() bool { return f.pinned() == 0 })
		var kept []decisions.Decision
		f.decided("/api/v1/decisions?limit=20", &kept)
		for _, d := range kept {
			named := d.Split != nil && d.Split.Named && d.Split.Prefiller == d.PairName() && d.PairName() != d.Worker
			if d.PairName() == "" || (x.legs > 0) != named || x.legs == 0 && (d.PairName() != d.Worker || d.Split != nil) {
				t.Errorf("handover %v: by %s, pair %q, %+v", x.handover, d.Worker, d.PairName(), d.Split)
			}
		}
		if len(kept) != 10 {
			t.Errorf("%d decisions", len(kept))
		}
	}
}

// namesPair is a module that chooses a row, and names the last one for the prompt, or the same one if alone.
func namesPair(t *testing.T, row int, alone bool) []byte {
	t.Helper()
	pair := "i32.const 1036 i32.load i32.const 1 i32.sub"
	if alone {
		pair = fmt.Sprint("i32.const ", row)
	}
	wasm, err := wasmtest.Assemble(fmt.Sprintf(`(module (memory (export "memory") 1)
		(func (export "warmpath_abi_1_2"))
		(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
		(func (export "wp_wants") (result i32) i32.const %d)
		(func (export "wp_pick") (result i64)
			i32.const 1036 i32.load i32.const 1248 i32.load i32.sub i32.const 2 i32.lt_u if i64.const 0 return end
			i32.const 1252 %s i32.store
			i64.const %d))`, abi.WantPair, pair, row))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// TestPairsAreTold: the access log, spans, shadows and records say whom each strategy has named, a canary's too. The
// workers are w1 and w2, which compute prompts, and w3 and w4.
func TestPairsAreTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, mine, other := filepath.Join(dir, "access.log"), filepath.Join(dir, "mine.wasm"), filepath.Join(dir, "other.wasm")
	write(t, mine, string(namesPair(t, 0, false)))
	write(t, other, string(namesPair(t, 1, true)))
	c, stop := otlptest.Start()
	t.Cleanup(stop)
	f := startRolesWith(t, 2, 2, rolesOptions{strategy: "mine",
		server: fmt.Sprintf("access_log = %q\nexplain_log = \"all\"", log),
		table: fmt.Sprintf("[[pools.canary]]\nstrategy = \"other\"\nheader = \"X-Canary=1\"\n[[pools.shadow]]\nstrategy = \"other\"\n"+
			"[strategies.mine]\npath = %q\n[strategies.other]\npath = %q\n[tracing]\nendpoint = %q\n", mine, other, c.URL)})
	const own, canary = 3, 2
	for i := range own + canary {
		header := []string{"X-Request-Id", fmt.Sprint("own-", i)}
		if i >= own {
			header = []string{"X-Request-Id", fmt.Sprint("canary-", i), "X-Canary", "1"}
		}
		body := fmt.Sprintf(`{"model":"sim","prompt":%q,"max_tokens":2}`, longText(fmt.Sprint(i), 1000))
		if s := f.do("POST", "/v1/completions", body, header...); s.status != 200 {
			t.Fatal(s.status, s.body)
		}
	}
	var shadows []operator.PoolShadows
	eventually(t, "the shadow has seen all", func() bool {
		b := do(t, "GET", "http://"+f.AdminAddr()+"/api/v1/shadows", "").body
		return json.Unmarshal([]byte(b), &shadows) == nil && len(shadows) == 1 && shadows[0].Shadows[0].Seen == own+canary
	})
	if s := shadows[0].Shadows[0]; s.Agreed != canary || s.Failed+s.Declined > 0 {
		t.Errorf("the shadow: %+v", s)
	}
	eventually(t, "a line each", func() bool { return len(logged(t, log)) == own+canary })
	told := func(what string, id, strategy, worker, pair, prefiller, result any) {
		t.Helper()
		want := [5]any{"mine", "w3", "w2", "w2", "done"}
		if id != "own-0" && id != "own-1" && id != "own-2" {
			want = [5]any{"other", "w4", "w4", nil, nil}
		}
		if got := [5]any{strategy, worker, pair, prefiller, result}; got != want {
			t.Errorf("%s, %v: %v; want %v", what, id, got, want)
		}
	}
	for id, l := range lines(t, log) {
		told("the log", id, l["strategy"], l["worker"], l["pair"], l["prefiller"], l["prefill"])
		if other, is := l["shadow"]; is && (l["strategy"] != "mine" || other != "other=w4+w4") {
			t.Errorf("%s: shadow %v", id, other)
		}
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	r := decidedAgain(t, namesPair(t, 0, false), nil, string(text))
	if r.Decided != own+canary || r.Agreed != own || len(r.Differ) != canary || r.Differ[0].Chosen != "w3 with w2" ||
		r.Differ[0].Recorded != "w4 alone" {
		t.Errorf("decided again: %+v", r)
	}
	if err := f.stop(); err != nil {
		t.Error(err)
	}
	spans := c.Spans()
	for i := range spans {
		a := spans[i].Attributes
		told("a span", a["warmpath.request_id"], a["warmpath.strategy"], a["warmpath.worker"], a["warmpath.pair"],
			a["warmpath.prefiller"], a["warmpath.prefill"])
	}
	if len(spans) != own+canary {
		t.Errorf("%d spans", len(spans))
	}
}
