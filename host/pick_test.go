package host

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/sdk/abi"
)

func TestFallback(t *testing.T) {
	type row struct{ match, inflight, sent uint32 }
	f := func(bound int32, want int, rows ...row) {
		t.Helper()
		fr := &Frame{Header: abi.Header{Bound: bound}}
		for _, r := range rows {
			fr.Rows = append(fr.Rows, abi.Row{GPU: r.match, InFlight: r.inflight, Sent: uint64(r.sent)})
		}
		if got := Fallback(fr); got != want {
			t.Errorf("%v bound to %d: got row %d; want %d", rows, bound, got, want)
		}
	}
	f(-1, -1)
	f(-1, 0, row{})
	f(1, 1, row{9, 0, 0}, row{0, 50, 0})               // the binding, loaded as it is
	f(7, 0, row{9, 0, 0}, row{0, 50, 0})               // a binding that is no row
	f(-1, 1, row{3, 1, 0}, row{5, 2, 0}, row{0, 0, 0}) // the longest match: 2 in flight = twice the mean
	f(-1, 0, row{3, 1, 0}, row{5, 3, 0}, row{0, 0, 0}) // 3 in flight > twice the mean of 4/3
	f(-1, 2, row{0, 1, 0}, row{5, 9, 0}, row{0, 0, 0}) // no match that is not overloaded: the fewest in flight
	f(-1, 1, row{4, 1, 9}, row{4, 1, 3}, row{4, 1, 5}) // ties: fewest ever sent
	f(-1, 0, row{0, 2, 1}, row{0, 2, 1})               // then the lower index
}

// A row whose KV is full is passed over while another has room, whatever it holds.
func TestFallbackAtTheEdgeOfKV(t *testing.T) {
	f := func(want int, held ...uint32) {
		t.Helper()
		fr := &Frame{Header: abi.Header{Bound: -1, PromptTokens: 300}}
		for i, n := range held {
			fr.Rows = append(fr.Rows, abi.Row{GPU: uint32(9 - 4*i), InFlight: uint32(1 + i), KVTokens: 1000, HeldTokens: n})
		}
		if got := Fallback(fr); got != want {
			t.Errorf("held %v: row %d; want %d", held, got, want)
		}
	}
	f(0, 600, 0, 0)
	f(1, 601, 600, 0)
	f(2, 601, 601, 600)
	f(0, 601, 700, 800)
}

func TestBoundIsHonoured(t *testing.T) {
	s := load(t, newHost(t, Config{}), wat(t, "tiny"), Options{})
	f := frame(8, 3)
	f.Header.Bound = 6
	if r := s.Pick(f); r.Row != 6 || r.Fallback != "" || r.Reason != 0 || r.Order[0] != 6 || len(r.Order) != 8 || r.Fuel != 0 {
		t.Errorf("got %+v; want row 6 without the module", r)
	}
	f.Header.Bound = 8
	if r := s.Pick(f); r.Row != 0 || r.Reason != 9 {
		t.Errorf("a binding out of range: got %+v; want the module's row 0", r)
	}
	if r := s.Pick(&Frame{}); r.Row != -1 || r.Fallback != "no_rows" {
		t.Errorf("no rows: got %+v", r)
	}
}

func TestOrderOracle(t *testing.T) {
	f := frame(5, 0)
	for seq := range uint64(12) {
		for row := range 5 {
			for _, alt := range [][]byte{nil, {3, 0, 0, 0, 1, 0, 0, 0}, {9, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0}} {
				f.Header.Seq = seq
				f.order(row, alt, false)
				seen := map[int32]bool{}
				for _, k := range f.Order {
					seen[k] = true
				}
				if len(f.Order) != 5 || len(seen) != 5 || f.Order[0] != int32(row) {
					t.Fatalf("seq %d row %d alternatives %v: order %v is no permutation led by the row", seq, row, alt, f.Order)
				}
				if len(alt) > 0 && row != 3 && f.Order[1] != 3 {
					t.Fatalf("alternatives %v: order %v; want 3 second", alt, f.Order)
				}
			}
		}
	}
}

func TestPickDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	h := newHost(t, Config{Slots: 1}) // a second instance would start meanwhile
	for name, wasm := range map[string][]byte{"tiny": wat(t, "tiny"), "order": wat(t, "order"), "decline": wat(t, "decline"), "go": goGuest(t)} {
		s, err := h.Load(ctx, name, wasm, Options{})
		if err != nil {
			t.Fatal(err)
		}
		f := frame(16, 3)
		s.Pick(f)
		if n := testing.AllocsPerRun(2000, func() { s.Pick(f) }); n != 0 {
			t.Errorf("%s: %v allocations a pick; want 0", name, n)
		}
		s.Close(ctx)
	}
}

// TestMemoryOfAllocatingGuest: a guest that allocates 1 KiB a pick stays small, since wp_maint lets it collect.
func TestMemoryOfAllocatingGuest(t *testing.T) {
	// A collection of the guest may take longer than the default time of a pick, where other processes have the processor.
	s := load(t, newHost(t, Config{PickTime: time.Second}), goGuest(t), Options{Values: map[string]string{"allocate": "true"}})
	f := frame(4, 1)
	picks := 200_000
	if testing.Short() || raceEnabled {
		picks = 20_000
	}
	for range picks {
		if r := s.Pick(f); r.Row != 1 || r.Fallback != "" && r.Fallback != "busy" {
			t.Fatalf("got %+v: %s", r, s.Stats().LastError)
		}
	}
	st := s.Stats()
	if most := uint64(8<<20) * uint64(st.Instances); st.MemoryBytes > most || st.Picks < uint64(picks)*9/10 {
		t.Errorf("%+v; want at most %d bytes, and most picks by the module", st, most)
	}
	t.Logf("%d picks: %.1f MiB in %d instances, fallbacks %v", picks, float64(st.MemoryBytes)/(1<<20), st.Instances, st.Fallbacks)
}

// TestCache: the second start reads compiled code; the host warns once of a directory that it cannot write, and of a
// damaged file, and goes on without.
func TestCache(t *testing.T) {
	var log bytes.Buffer
	c := Config{CacheDir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, nil))}
	start := func() {
		t.Helper()
		h, err := New(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close(ctx)
		for range 2 {
			s, err := h.Load(ctx, "tiny", wat(t, "tiny"), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if r := s.Pick(frame(4, 2)); r.Reason != 9 {
				t.Errorf("got %+v", r)
			}
			s.Close(ctx)
		}
	}
	warned := func(n int) {
		t.Helper()
		if got := strings.Count(log.String(), "level=WARN"); got != n {
			t.Errorf("%d warnings; want %d:\n%s", got, n, log.String())
		}
		log.Reset()
	}
	start()
	start()
	warned(0)
	files, _ := filepath.Glob(filepath.Join(c.CacheDir, "wazero-*", "*"))
	if len(files) == 0 {
		t.Fatal("nothing is kept in the cache")
	}
	for _, name := range files {
		if err := os.WriteFile(name, []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start()
	warned(1)
	c.CacheDir = filepath.Join(files[0], "below-a-file")
	start()
	warned(1)
}

func TestStartStopsNothing(t *testing.T) {
	c, cancel := context.WithCancel(ctx)
	h := newHost(t, Config{Slots: 2})
	s, err := h.Load(c, "tiny", wat(t, "tiny"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(ctx)
	cancel() // of the load, not of the strategy
	waittest.Until(t, "all instances", func() bool { return s.Stats().Instances == 2 })
	if r := s.Pick(frame(4, 2)); r.Fallback != "" {
		t.Errorf("got %+v", r)
	}
}
