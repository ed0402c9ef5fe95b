package host

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/sdk/abi"
)

// naming assembles a module of a version that wants pairs, chooses a row and names another one for the prompt. It writes
// one alternative. Of a fleet of fewer than five rows, as in its self-test, it chooses the first.
func naming(t *testing.T, marker string, wants, row, named, alternative int) []byte {
	t.Helper()
	b, err := wasmtest.Assemble(fmt.Sprintf(`(module
		(memory (export "memory") 1)
		(global $rows (mut i32) (i32.const 0))
		(func (export "%s"))
		(func (export "wp_frame") (param i32) (result i32) local.get 0 global.set $rows i32.const 1024)
		(func (export "wp_wants") (result i32) i32.const %d)
		(func (export "wp_pick") (result i64)
			i32.const 1036 i32.load i32.const 5 i32.lt_u if i64.const 0 return end
			i32.const 1252 i32.const %d i32.store
			i32.const 1144 i32.const 1 i32.store
			i32.const %d global.get $rows i32.const %d i32.mul i32.add i32.const %d i32.store
			i64.const %d))`, marker, wants, named, 1024+264, abi.RowSize, alternative, row))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// roles returns a frame of two that answer, one that answers and computes no prompts for others, and two prefillers.
func roles() *Frame {
	f := frame(5, 0)
	f.Rows[2].State = abi.RowDecode
	f.Rows[3].State, f.Rows[4].State = abi.RowPrefill, abi.RowPrefill
	f.Header.Prefillers = 2
	f.Header.PairRow = 3 // of the pick before
	return f
}

// A strategy names who computes the prompt. Whom it names in vain leaves that to the host, and no prefiller gets an
// answer to write. The same holds for a function outside of the sandbox.
func TestPair(t *testing.T) {
	var log strings.Builder
	h := newHost(t, Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	f := func(what string, row, named, alternative, want int, order ...int32) {
		t.Helper()
		s := load(t, h, naming(t, "warmpath_abi_1_2", int(abi.WantPair), row, named, alternative), Options{})
		native := Native("n", abi.WantPair, func(h *abi.Header, _ []abi.Row, order []uint32) uint64 {
			order[0], h.OrderLen, h.PairRow = uint32(alternative), 1, int32(named)
			return abi.Pack(int32(row), 0, 0)
		})
		for _, s := range []*Strategy{s, native} {
			log.Reset()
			fr := roles()
			r := s.Pick(fr)
			if r.Row != row || r.Pair != want || r.Fallback != "" || !slices.Equal(r.Order, order) {
				t.Errorf("%s: %+v; want row %d, pair %d, order %v (%s)", what, r, row, want, order, s.Stats().LastError)
			}
			if s == native {
				continue
			}
			s.Pick(fr)
			if n := strings.Count(log.String(), "named a worker for a prompt"); (n == 1) != (want == 0 && named != -1) || n > 1 {
				t.Errorf("%s: logged %d times: %s", what, n, log.String())
			}
		}
	}
	f("a prefiller", 1, 4, 0, 5, 1, 0, 2)
	f("another that may do both", 1, 0, 2, 1, 1, 2, 0)
	f("itself: nobody else", 2, 2, 0, 3, 2, 0, 1)
	f("nobody", 1, -1, 0, 0, 1, 0, 2)
	f("one that computes none for others", 1, 2, 0, 0, 1, 0, 2)
	f("no row", 1, 5, 0, 0, 1, 0, 2)
	f("no row", 1, -2, 0, 0, 1, 0, 2)
	f("a prefiller as alternative", 1, 3, 4, 4, 1, 0, 2)
}

// A prefiller that is chosen for the answer is no choice: the fallback takes one that may answer.
func TestPrefillerAnswers(t *testing.T) {
	s := load(t, newHost(t, Config{}), naming(t, "warmpath_abi_1_2", int(abi.WantPair), 3, 3, 0), Options{})
	f := roles()
	f.Rows[0].InFlight, f.Rows[1].InFlight, f.Rows[2].InFlight = 3, 2, 3
	r := s.Pick(f)
	if r.Fallback != "bad_index" || r.Row != 1 || r.Pair != 0 || len(r.Order) != 3 {
		t.Errorf("%+v", r)
	}
	if last := s.Stats().LastError; !strings.Contains(last, "prefiller") {
		t.Errorf("the error: %s", last)
	}
	f.Rows, f.Header.Prefillers = f.Rows[3:], 2
	if r := s.Pick(f); r.Row != -1 || r.Fallback != "no_rows" {
		t.Errorf("of prefillers alone: %+v", r)
	}
}

// What a module that does not ask for pairs has in those bytes means nothing, and an older one cannot ask.
func TestPairOfOthers(t *testing.T) {
	h := newHost(t, Config{})
	s := load(t, h, naming(t, "warmpath_abi_1_2", int(abi.WantCost), 1, 0, 0), Options{})
	f := frame(5, 0)
	if r := s.Pick(f); r.Row != 1 || r.Pair != 0 || len(r.Order) != 5 {
		t.Errorf("%+v", r)
	}
	for _, marker := range []string{"warmpath_abi_1_1", "warmpath_abi_1_0"} {
		s, err := h.Load(t.Context(), "old", naming(t, marker, int(abi.WantPair), 1, 0, 0), Options{})
		if minor := marker[len(marker)-1:]; (err == nil) != (minor == "0") { // of 1.0 nobody asks what it wants
			t.Errorf("%s: %v", marker, err)
		}
		if err == nil {
			if s.Notices().Wants() != 0 {
				t.Errorf("%s wants %#x", marker, s.Notices().Wants())
			}
			s.Close(t.Context())
		}
	}
}

// A module that gives a prefiller the answer is refused when it is loaded, and a tool that judges a module sees whom it
// names.
func TestPairWhenLoaded(t *testing.T) {
	h := newHost(t, Config{Slots: 1})
	last, err := wasmtest.Assemble(fmt.Sprintf(`(module
		(memory (export "memory") 1)
		(func (export "warmpath_abi_1_2"))
		(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
		(func (export "wp_wants") (result i32) i32.const %d)
		(func (export "wp_pick") (result i64) i32.const 1036 i32.load i32.const 1 i32.sub i64.extend_i32_u))`, abi.WantPair))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Load(t.Context(), "last", last, Options{}); err == nil || !strings.Contains(err.Error(), "a prefiller") {
		t.Errorf("%v; want that it is refused", err)
	}
	for wants, want := range map[int]int32{int(abi.WantPair): 9, 0: -1} {
		s := load(t, h, naming(t, "warmpath_abi_1_2", wants, 1, 9, 0), Options{})
		f := roles()
		s.Pick(f)
		if left, ok := s.Leftover(f); !ok || left.Pair != want {
			t.Errorf("wants %d: %+v; want %d", wants, left, want)
		}
	}
}
