package scaffold

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/toolchains"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

// sources are where a project has its strategy.
var sources = map[string]string{"go": "main.go", "c": "strategy.c", "assemblyscript": "assembly/index.ts",
	"rust": "src/lib.rs", "zig": "strategy.zig"}

// natively compiles a strategy as its native test does, which links the host's functions by itself.
var natively = map[string][]string{"c": {"clang -fsyntax-only -std=c11 -Wall -Werror strategy.c"}, "rust": {"cargo check --quiet --tests"}}

// compiled returns the module of a new project whose strategy is that file.
func compiled(t *testing.T, language, file string) []byte {
	t.Helper()
	dir, err := New(t.TempDir(), "mine", language, "cost", "")
	if err != nil {
		t.Fatal(err)
	}
	toolchains.Need(t, language, dir)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, sources[language]), b, 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, c := range natively[language] {
		r := recipe{}
		if err := r.one(t.Context(), dir, nil, strings.Fields(c), &out); err != nil {
			t.Fatalf("for a native test: %v\n%s", err, out.Bytes())
		}
	}
	wasm, err := Build(t.Context(), dir, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	if b, err = os.ReadFile(wasm); err != nil {
		t.Fatal(err)
	}
	return b
}

// loaded returns a module as a strategy in virtual time: a busy machine's picks are no slow module's.
func loaded(t *testing.T, wasm []byte, values map[string]string) *host.Strategy {
	t.Helper()
	h, err := host.New(t.Context(), host.Config{Stepped: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close(context.Background()) })
	s, err := h.Load(t.Context(), "mine", wasm, host.Options{Fuel: 100_000_000, Values: values,
		Allow: []string{"headers:x-tier", "headers:x-none"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

// headers are fields of a request.
type headers map[string]string

func (h headers) Header(name string) (string, bool) { v, ok := h[name]; return v, ok }

// asks has a module answer all that testdata/alike asks for, and returns the answers.
func asks(t *testing.T, s *host.Strategy) string {
	t.Helper()
	made := sdktest.NewFrame(30)
	made.Randomize(rand.New(rand.NewPCG(1, 2)), 30)
	f := &host.Frame{Header: made.Header, Rows: made.Rows, Session: "s-1", Model: "org/model", Tenant: "salt", Caller: "acme",
		Labels: []string{"tier=batch", "zone=a", "zone=b", "zonea=b"}, Headers: headers{"x-tier": "gold"}}
	for i := range f.Rows {
		f.WorkerIDs = append(f.WorkerIDs, fmt.Sprint("http://", i))
		r := &f.Rows[i]
		r.Key, r.Labels, r.Weight = uint64(i+1)*0x9e3779b97f4a7c15, uint64(i)&0xf, 1
		r.State = 0
	}
	f.Rows[3].State, f.Rows[4].Weight, f.Rows[5].Weight = 1234<<abi.RowLoadShift, 2.5, .25
	f.Rows[29].State = abi.RowPrefill
	h := &f.Header
	h.Bound, h.Prefillers, h.Flags, h.Labels, h.LabelsEpoch = -1, 1, abi.HeaderAnswer, 4, 7
	h.PromptTokens, h.PromptBlocks, h.BlockTokens, h.InvBWL1, h.InvBWL2 = 3000, 187, 16, 3e-6, 2e-5
	var b strings.Builder
	pick := func(seq uint64) {
		h.Seq, h.Random = seq, h.Random+0x123456789abcdef
		r := s.Pick(f)
		fmt.Fprintf(&b, "%d: %d %q %d bits %x, pair %d, hold %v, %+v, named %d %v\n", seq, r.Row, r.Fallback, r.Reason, r.Flags,
			r.Pair, r.Hold, r.Reject, r.Named, r.Order[:min(5, len(r.Order))])
	}
	own := func(what string) {
		pick(99)
		fmt.Fprintf(&b, "%s:", what)
		for i := range f.Rows {
			fmt.Fprintf(&b, " %.11g", f.Rows[i].Own)
		}
		b.WriteString("\n")
	}
	h.Labels = 0 // as for a request that is about to wait
	class, share, ok := s.Classify(f)
	fmt.Fprintln(&b, "class", class, share, ok)
	h.Labels = 4
	for seq := range uint64(7) {
		pick(seq)
	}
	own("values")
	for seq := range uint64(5) {
		h.Seq, h.Prefillers = seq, 0
		r := s.Filter(f)
		fmt.Fprintf(&b, "filter %d: %v by %d, %q, %+v\n", seq, r.Order, r.Reason, r.Fallback, r.Reject)
	}
	h.Prefillers = 1
	h.LabelsEpoch, f.Labels = 8, []string{"zone=none", "zone=b", "zone=a", "tier=x"}
	pick(0)
	own("other labels")
	class, share, ok = s.Classify(f)
	f.Headers = headers{}
	low, none, _ := s.Classify(f)
	fmt.Fprintf(&b, "classes: %d %v %v, %d %v; counted %v, %s\n", class, share, ok, low, none, s.Stats().Metrics, s.Stats().LastError)
	n := s.Notices()
	for i := range 5 {
		n.FirstToken(&abi.Outcome{Key: f.Rows[i%3].Key, TTFT: .25})
		n.Complete(&abi.Outcome{Key: f.Rows[3+i].Key, OutputTokens: int32(i) - 1})
	}
	n.KVEvents([]abi.KVEvent{{Key: f.Rows[10].Key, Kind: abi.EventRemoved, Tokens: 16}, {Key: f.Rows[11].Key, Kind: abi.EventStored}})
	s.Settle(t.Context())
	fmt.Fprintln(&b, s.Stats().Delivered)
	own("learnt")
	talks := make([]abi.Talk, 200) // more than fit into a frame
	for i := range talks {
		talks[i] = abi.Talk{Value: .5, Gap: float32(i) / 8, Tokens: uint32(1000 + i), Seconds: .25}
	}
	fmt.Fprintln(&b, s.Plan(talks), talks[0].Value, talks[1].Value, talks[99].Value, talks[199].Value)
	fmt.Fprintln(&b, s.ReasonName(256), s.ReasonName(257), s.Stats().LastError)
	return b.String()
}

// numbers are options, well written and not.
var numbers = []string{"12", "-.05", "0.25", "1e-3", "1e-05", "+2.5", "2E2", "7.", "1.5e+3", "0", "123456789.125", "1e-400", "", "x",
	"5ms", "1e", "1e+", "e5", "--1", "+-1", ".", "-", "1.2.3", "1e2.5", "1e2e3", " 1", "1 ", "inf", "NaN", "1e999", "0x10", "1-2"}

// scaled is a strategy in Go with the option of testdata/alike.
type scaled struct{ scale float64 }

func (s *scaled) Configure(o *sdk.Options) error {
	s.scale = o.Float("scale", 2)
	return nil
}

func (*scaled) Route(*sdk.Request, []sdk.Worker) sdk.Decision { return sdk.Decline }

// inGo returns what Go's SDK reads of the numbers, and what it refuses.
func inGo() string {
	var b strings.Builder
	for _, text := range numbers {
		var s scaled
		if err := sdktest.Configure(&s, map[string]string{"scale": text}); err != nil {
			fmt.Fprintf(&b, "%q is refused\n", text)
		} else {
			fmt.Fprintf(&b, "%q is %.14g\n", text, s.scale)
		}
	}
	return b.String()
}

// options returns what a module reads of the numbers, and what it refuses.
func options(t *testing.T, wasm []byte) string {
	t.Helper()
	h, err := host.New(t.Context(), host.Config{Stepped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(context.Background())
	f := &host.Frame{Header: sdktest.NewFrame(30).Header, Rows: sdktest.NewFrame(30).Rows}
	var b strings.Builder
	for _, text := range numbers {
		s, err := h.Load(t.Context(), "mine", wasm, host.Options{Fuel: 100_000_000, Values: map[string]string{"scale": text}})
		if err != nil {
			fmt.Fprintf(&b, "%q is refused\n", text)
			continue
		}
		s.Pick(f)
		s.Pick(f)
		fmt.Fprintf(&b, "%q is %.14g\n", text, f.Rows[0].Own)
		s.Close(context.Background())
	}
	if _, err := h.Load(t.Context(), "mine", wasm, host.Options{Values: map[string]string{"zone": "a", "zones": "b"}}); err == nil {
		b.WriteString("an unknown key is taken\n")
	}
	return b.String()
}

// same compares two texts line by line.
func same(t *testing.T, got, want string) {
	t.Helper()
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			t.Errorf("line %d of %d is\n%q\nGo has %d, and\n%q", i, len(a), a[min(i, len(a)-1)], len(b), b[min(i, len(b)-1)])
		}
	}
}

// TestAlike: a program that asks for all that the SDK of Go gives gets the same from each other language's.
func TestAlike(t *testing.T) {
	toolchains.Use(t, "../../..")
	values := map[string]string{"scale": "2.5", "zone": "b"}
	want := asks(t, loaded(t, compiled(t, "go", "testdata/alike/main.go"), values))
	if !strings.Contains(want, `6: 0 "" 256 bits 0, pair 0, hold 0s, <nil>, named 29`) || strings.Contains(want, "fallback") {
		t.Fatalf("Go answers\n%s", want)
	}
	for _, language := range Languages[1:] {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			wasm := compiled(t, language, filepath.Join("testdata/alike", filepath.Base(sources[language])))
			same(t, options(t, wasm), inGo())
			same(t, asks(t, loaded(t, wasm, values)), want)
		})
	}
}

// AssemblyScript frees what a pick has made: 300,000 picks that read a header end in the memory of the first.
func TestAssemblyScriptFreesItsMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("many picks")
	}
	s := loaded(t, compiled(t, "assemblyscript", "testdata/header/index.ts"), nil)
	f := &host.Frame{Header: sdktest.NewFrame(4).Header, Rows: sdktest.NewFrame(4).Rows,
		Headers: headers{"x-tier": strings.Repeat("silver", 40)}}
	first, most := uint64(0), int64(0)
	for i := range 300_000 {
		r := s.Pick(f)
		if r.Fallback != "" || r.Row != 0 {
			t.Fatalf("pick %d: %+v, %s", i, r, s.Stats().LastError)
		}
		most = max(most, r.Fuel)
		if i == 10_000 {
			first = s.Stats().MemoryBytes
		}
	}
	t.Logf("%d bytes, at most %d fuel a pick", first, most)
	if most > 100_000 {
		t.Errorf("a pick took %d fuel; want at most a tenth of what it may", most)
	}
	if last := s.Stats().MemoryBytes; last > first || s.Stats().Discarded > 0 {
		t.Errorf("%d bytes after 10,000 picks and %d after 300,000; %d instances were thrown away", first, last, s.Stats().Discarded)
	}
}

// linesOf counts a program's, without empty lines and those that are a comment.
func linesOf(t *testing.T, file string) (n int) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}

// A strategy in another language decides as the same one in Go does, and has at most 1.3 times its lines.
func TestStrategiesAreAsShortAsInGo(t *testing.T) {
	toolchains.Use(t, "../../..")
	for _, c := range []struct {
		name, language string
		options        map[string]string
		reasons        int
	}{
		{"lora", "c", map[string]string{"handicap": ".3"}, 3},
		{"zones", "rust", map[string]string{"zone": "a", "spill": ".1"}, 2},
		{"energy", "zig", map[string]string{"per_kilojoule": ".5"}, 1},
		{"twochoices", "assemblyscript", map[string]string{"each": ".02"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join("testdata/strategies", c.name)
			other := filepath.Join(folder, filepath.Base(sources[c.language]))
			inGo, lines := linesOf(t, filepath.Join(folder, "main.go")), linesOf(t, other)
			t.Logf("%s: %d lines in Go, %d in %s", c.name, inGo, lines, c.language)
			if 10*lines > 13*inGo {
				t.Errorf("%d lines in %s; want at most 1.3 times Go's %d", lines, c.language, inGo)
			}
			a := loaded(t, compiled(t, "go", filepath.Join(folder, "main.go")), c.options)
			b := loaded(t, compiled(t, c.language, other), c.options)
			rng, reasons := rand.New(rand.NewPCG(3, 4)), map[string]int{}
			for range 3000 {
				made := sdktest.NewFrame(1)
				made.Randomize(rng, 1+rng.IntN(20))
				f := &host.Frame{Header: made.Header, Rows: made.Rows, Labels: []string{"zone=a", "watts=300", "watts=900.5", "x=y"}}
				f.Header.Bound, f.Header.Prefillers, f.Header.Labels, f.Header.LabelsEpoch = -1, 0, 4, 1
				for i := range f.Rows {
					f.Rows[i].State = []uint32{0, 0, abi.RowAdapter, 700 << abi.RowLoadShift}[rng.IntN(4)]
				}
				x := a.Pick(f)
				order := fmt.Sprint(x.Order[:x.Named])
				y := b.Pick(f)
				if got := fmt.Sprint(y.Order[:y.Named]); got != order || x.Reason != y.Reason || x.Fallback+y.Fallback != "" {
					t.Fatalf("%s by %d; Go has %s by %d (%s, %s)", got, y.Reason, order, x.Reason, a.Stats().LastError, b.Stats().LastError)
				}
				reasons[b.ReasonName(y.Reason)]++
			}
			if len(reasons) != c.reasons || reasons[""] > 0 {
				t.Errorf("reasons %v; want %d, each with a name", reasons, c.reasons)
			}
		})
	}
}
