package redecide

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// recordedPair is a line of a request for which a worker was chosen, and perhaps another one named for the prompt. The
// rows are a and b, then those of so many prefillers.
func recordedPair(flags uint32, prefillers int, chosen, pair string) string {
	f := host.Frame{}
	f.Reset()
	f.Header.Version, f.Header.Flags, f.Header.Prefillers = abi.Version, flags, uint32(prefillers)
	ids := []string{"a", "b", "p", "q"}[:2+prefillers]
	var candidates []string
	for i, id := range ids {
		r := abi.Row{Key: worker.KeyOf(id), Slow: 1, Weight: 1}
		if i >= 2 {
			r.State = abi.RowPrefill
			candidates = append(candidates, fmt.Sprintf(`{"worker":%q,"skipped":"computes prompts alone"}`, id))
		}
		f.Rows = append(f.Rows, r)
	}
	for _, id := range []string{"b", "a"} { // the chosen one comes first
		candidates = slices.Insert(candidates, 0, fmt.Sprintf(`{"worker":%q}`, id))
	}
	if chosen == "b" {
		candidates[0], candidates[1] = candidates[1], candidates[0]
	}
	if pair != "" {
		pair = fmt.Sprintf(`"pair":%q,`, pair)
	}
	return fmt.Sprintf(`{"id":"x",%s"packed_frame":%q,"candidates":[%s]}`+"\n", pair,
		frameText(&f), strings.Join(candidates, ","))
}

// naming is a module that chooses a row, of at least two that answer, and names another one for the prompt; pair -1 = none. Without
// wants it asks for no prefillers.
func naming(wants, row, pair int) string {
	return fmt.Sprintf(`(module (memory (export "memory") 1)
		(func (export "warmpath_abi_1_2"))
		(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
		(func (export "wp_wants") (result i32) i32.const %d)
		(func (export "wp_pick") (result i64)
			i32.const 1036 i32.load i32.const 1248 i32.load i32.sub i32.const 2 i32.lt_u if i64.const 0 return end
			i32.const 1252 i32.const %d i32.store
			i64.const %d))`, wants, pair, row)
}

// TestRecordedPairs: to agree is to choose the same worker and to name the same one for the prompt. What a strategy that
// saw no prefillers has recorded says nothing of one that would.
func TestRecordedPairs(t *testing.T) {
	f := func(what, module, line, chosen, recorded string, lacks ...string) {
		t.Helper()
		h, err := host.New(t.Context(), host.Config{Stepped: true})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close(t.Context())
		wasm, err := wasmtest.Assemble(module)
		if err != nil {
			t.Fatal(err)
		}
		s, err := h.Load(t.Context(), "names", wasm, host.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(t.Context(), s, &Store{}, strings.NewReader(line))
		if err != nil || r.BadLines != 0 || r.Failed != 0 {
			t.Fatalf("%s: %v, %+v", what, err, r)
		}
		want := Report{Lines: 1, Decided: 1, Agreed: 1}
		if lacks != nil {
			want = Report{Lines: 1, Unfit: 1}
		} else if chosen != recorded {
			want.Agreed = 0
		}
		if r.Decided != want.Decided || r.Agreed != want.Agreed || r.Unfit != want.Unfit || !slices.Equal(r.Lacks, lacks) {
			t.Errorf("%s: %+v; want %+v", what, r, want)
		}
		if differs := len(r.Differ) == 1; differs != (want.Decided > want.Agreed) || differs &&
			(r.Differ[0].Chosen != chosen || r.Differ[0].Recorded != recorded) {
			t.Errorf("%s: %+v; want %s, not %s", what, r.Differ, chosen, recorded)
		}
	}
	const pairs, answer = int(abi.WantPair), abi.HeaderAnswer
	f("the same pair", naming(pairs, 1, 3), recordedPair(answer, 2, "b", "q"), "b with q", "b with q")
	f("another prefiller", naming(pairs, 1, 2), recordedPair(answer, 2, "b", "q"), "b with p", "b with q")
	f("another worker", naming(pairs, 0, 3), recordedPair(answer, 2, "b", "q"), "a with q", "b with q")
	f("nobody else", naming(pairs, 1, 1), recordedPair(answer, 2, "b", "q"), "b alone", "b with q")
	f("nobody else, likewise", naming(pairs, 1, 1), recordedPair(answer, 2, "b", "b"), "b alone", "b alone")
	f("the host decides", naming(pairs, 1, -1), recordedPair(answer, 2, "b", "q"), "b", "b with q")
	f("the host decided", naming(pairs, 1, -1), recordedPair(answer, 2, "b", ""), "b", "b")
	f("the host decided, and it would not", naming(pairs, 1, 1), recordedPair(answer, 2, "b", ""), "b alone", "b")
	f("it does not ask for prefillers", naming(0, 1, 3), recordedPair(answer, 2, "b", "q"), "b", "b with q")
	f("nor does it choose one", naming(0, 0, -1), recordedPair(answer, 2, "a", ""), "a", "a")
	f("a pool without roles", naming(pairs, 1, 0), recordedPair(0, 0, "b", ""), "b", "b")
	f("the recorded one saw none", naming(pairs, 1, -1), recordedPair(answer, 0, "b", ""), "", "", "the rows of prefillers")
	f("nor does this one", naming(0, 1, -1), recordedPair(answer, 0, "b", ""), "b", "b")
}
