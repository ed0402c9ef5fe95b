package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/cli/redecide"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/host"
)

// byTier chooses row 1 if the request has the header field x-tier, and row 0 else; the other way round, if the first
// label ends with 9.
const byTier = `(module
	(import "warmpath_v1" "str" (func $str (param i32 i32 i32 i32) (result i32)))
	(memory (export "memory") 1) (data (i32.const 0) "x-tier")
	(func (export "warmpath_abi_1_1"))
	(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
	(func (export "wp_pick") (result i64) (local $n i32)
		i32.const 5 i32.const 0 i32.const 16 i32.const 64 call $str local.tee $n
		i32.const 0 i32.gt_s if (result i32)
			local.get $n i32.const 15 i32.add i32.load8_u i32.const 57 i32.eq
		else
			i32.const 0
		end
		i32.const 6 i32.const 6 i32.const 0 i32.const 0 call $str i32.const 0 i32.gt_s
		i32.xor i64.extend_i32_u))`

// TestWhatAStrategyCouldAskForIsRecorded: with the labels and the header fields of its line a strategy decides again as it
// did. A line without them is not judged.
func TestWhatAStrategyCouldAskForIsRecorded(t *testing.T) {
	t.Parallel()
	log, file := filepath.Join(t.TempDir(), "access.log"), filepath.Join(t.TempDir(), "tier.wasm")
	wasm, err := wasmtest.Assemble(byTier)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, string(wasm))
	toml := withServer(settings("mine", sims(t, 2, vllmsim.Config{}).URLs()...), fmt.Sprintf("access_log = %q\nexplain_log = \"all\"", log))
	toml = strings.Replace(toml, `id = "w1"`, `id = "w1"`+"\nlabels = { gen = \"a9\" }", 1)
	r := start(t, toml+fmt.Sprintf("[strategies.mine]\npath = %q\nallow = [\"headers:x-tier\"]\n", file), 2)
	const body = `{"model":"sim","prompt":"x","max_tokens":1}`
	for _, header := range [][]string{nil, {"X-Tier", "gold"}, {"X-Tier", strings.Repeat("g", 300)}, {"X-Other", "secret"}} {
		if s := r.do("POST", "/v1/completions", body, header...); s.status != 200 {
			t.Fatal(s.status, s.body)
		}
	}
	eventually(t, "a line each", func() bool { return len(logged(t, log)) == 4 })
	var served []string
	for _, line := range logged(t, log) {
		served = append(served, fmt.Sprint(line["worker"], line["labels"], line["headers"]))
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"w2[gen=a9] map[x-tier:<nil>]", "w1[gen=a9] map[x-tier:gold]", "w1[gen=a9] <nil>",
		"w2[gen=a9] map[x-tier:<nil>]"}; !slices.Equal(served, want) {
		t.Fatalf("%q; want %q:\n%s", served, want, text)
	}
	f := func(change *strings.Replacer, judged int, lacks ...string) {
		t.Helper()
		got := decideAgain(t, host.Options{Allow: []string{"headers:x-tier"}}, wasm, change.Replace(string(text)))
		if got.Decided != judged || got.Agreed != judged || got.Unfit != 4-judged || !slices.Equal(got.Lacks, lacks) {
			t.Errorf("%+v; want %d judged, and a lack of %q", got, judged, lacks)
		}
	}
	f(strings.NewReplacer(), 3, "header x-tier")
	f(strings.NewReplacer(`"headers":`, `"other":`), 0, "header x-tier")
	f(strings.NewReplacer(`"labels":`, `"other":`), 0, "the workers' labels", "header x-tier")
}

// decideAgain has a module decide the records of a log again.
func decideAgain(t *testing.T, o host.Options, wasm []byte, log string) *redecide.Report {
	t.Helper()
	ctx := context.Background()
	store := &redecide.Store{}
	h, err := host.New(ctx, host.Config{Stepped: true, KV: store})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(ctx)
	s, err := h.Load(ctx, "again", wasm, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(ctx)
	got, err := redecide.Run(ctx, s, store, strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return got
}
