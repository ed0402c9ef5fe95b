package host

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/sdk/abi"
)

// TestConformance: every import of the contract, called from within a module, with good arguments and with bad ones. The
// module compares the answers, and its reason is the number of the first that is wrong.
func TestConformance(t *testing.T) {
	var log bytes.Buffer
	h := newHost(t, Config{KV: &store{m: map[string]string{}, n: map[string]int64{}, most: 1}, Slots: 1,
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	s := load(t, h, wat(t, "conformance"), Options{Allow: []string{"kv", "headers:x-tenant"}})
	fr := frame(4, 1)
	fr.Session, fr.Model, fr.Caller, fr.Chain, fr.Request = "session-7", "llama", "team", []uint64{11, 22}, "request-1"
	fr.WorkerIDs[2], fr.Rows[2].GPU, fr.Rows[2].L1, fr.Rows[2].L2 = "worker-2", 5, 3, 1
	fr.Labels, fr.Header.Labels, fr.Rows[2].Key = []string{"tier=batch"}, 1, 77
	fr.Headers, fr.Prefixes = headers{"x-tenant": "acme-corp", "x-other": "secret"}, held{}
	r := s.Pick(fr)
	if r.Fallback != "" || r.Row != 0 || r.Reason != 0 {
		t.Errorf("got %+v (%s); check %d of conformance.wat is wrong", r, s.Stats().LastError, r.Reason)
	}
	want := []Wish{{Amount: 5000}, {What: 1, Session: "key"}, {What: 2, Row: 2, Amount: 1000}, {What: 3, Row: 2, Amount: 2}}
	if len(r.Wishes) != abi.MaxWishes || !slices.Equal(r.Wishes[:4], want) {
		t.Errorf("wishes %+v", r.Wishes)
	}
	if got, want := s.Stats().Metrics, map[string]float64{"hits": 2.5}; !reflect.DeepEqual(got, want) {
		t.Errorf("counters %v; want %v", got, want)
	}
	text := log.String()
	if n := strings.Count(text, "text=NEW"); n != 2 || !strings.Contains(text, `text="she said"`) || strings.Contains(text, "secret") {
		t.Errorf("%d lines; want 2, and what it said of itself:\n%s", n, text)
	}
}

// TestConformanceCallsAll: an import that is new in the contract belongs into conformance.wat, with bad arguments too.
func TestConformanceCallsAll(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(modules, "conformance.wat"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range abi.Imports {
		calls := len(regexp.MustCompile(`call \$`+f.Name+`\b`).FindAll(text, -1))
		if least := min(len(f.Params), 1) + 1; calls < least {
			t.Errorf("%s is called %d times; want %d at least, with good and with bad arguments", f.Name, calls, least)
		}
	}
}

// TestFaults: each fault in the table of testdata/modules/README.md is ended by the limit that stands there, the
// fallback answers in the same pick, after five in a row the module is set aside, and the log names pool, limit and
// knob. The clock stands, so that each limit is the one that is meant; once more with the clock that users have, a busy
// machine may end it by time.
func TestFaults(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(modules, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	knobs := map[string]string{"fuel": "raise fuel", "time": "raise pick_timeout", "memory": "raise memory_mb"}
	rows := regexp.MustCompile("(?m)^\\| `([a-z_]+)\\.wat` \\| [^|]+ \\| ([a-z_]+) \\|$").FindAllStringSubmatch(string(text), -1)
	if len(rows) < 15 {
		t.Fatalf("%d faults in the table", len(rows))
	}
	for _, row := range rows {
		f := func(name string, clock func() time.Duration, reasons ...string) {
			t.Run(name, func(t *testing.T) {
				var log bytes.Buffer
				h := newHost(t, Config{Slots: 1, KV: &store{m: map[string]string{}, n: map[string]int64{}, most: 10_000},
					QuarantineFor: time.Hour, Log: slog.New(slog.NewTextHandler(&log, nil))})
				if clock != nil {
					h.clock = clock
				}
				s := load(t, h, wat(t, row[1]), Options{Pool: "chat", Allow: []string{"kv"}})
				var reason string
				var longest time.Duration
				for n := 0; !s.Stats().Quarantined; n++ {
					if n == 100 {
						t.Fatalf("not set aside after %d picks: %+v", n, s.Stats())
					}
					waittest.Until(t, "an instance", func() bool { return s.Stats().Instances == 1 })
					began := time.Now()
					r := s.Pick(frame(8, 5))
					longest = max(longest, time.Since(began))
					if reason = r.Fallback; !slices.Contains(reasons, reason) || r.Row != 5 || len(r.Order) != 8 {
						t.Fatalf("got %+v (%s); want row 5 by %q", r, s.Stats().LastError, reasons)
					}
				}
				t.Logf("%s, after %v at most", reason, longest)
				for _, want := range []string{"pool=chat", "strategy=", "reason=" + reason, knobs[reason], "set aside after errors"} {
					if !strings.Contains(log.String(), want) {
						t.Errorf("want %q in the log:\n%s", want, &log)
					}
				}
				if n := s.Stats().MemoryBytes; n > 16<<20 {
					t.Errorf("%d bytes of memory", n)
				}
			})
		}
		f(row[1], func() time.Duration { return 1 }, row[2])
		f(row[1]+" by the users' clock", nil, row[2], "time")
	}
}

// TestCustomSections: a module may carry what its language's tools put there, up to a limit that is named.
func TestCustomSections(t *testing.T) {
	h := newHost(t, Config{Slots: 1})
	tiny := wat(t, "tiny")
	section := func(bytes int) []byte { // of this length, with a name of one byte
		body := append([]byte{1, 'x'}, make([]byte, bytes-2)...)
		size := []byte{byte(bytes) | 0x80, byte(bytes>>7) | 0x80, byte(bytes>>14) | 0x80, byte(bytes >> 21)}
		return append(append([]byte{0}, size...), body...)
	}
	s, err := h.Load(ctx, "padded", append(slices.Clone(tiny), bytes.Repeat(section(1000), 1000)...), Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close(ctx)
	_, err = h.Load(ctx, "padded", append(slices.Clone(tiny), section(100_000_000)...), Options{})
	if err == nil || !strings.Contains(err.Error(), "the limit is 67108864") || !strings.Contains(err.Error(), `"padded"`) {
		t.Errorf("100 MB: %v", err)
	}
}

// TestForgedRejection: the host reads the text of a rejection within the module's memory, or not at all.
func TestForgedRejection(t *testing.T) {
	s := load(t, newHost(t, Config{Slots: 1}), wat(t, "reject_forged"), Options{})
	r := s.Pick(frame(8, 5))
	if r.Reject == nil || r.Reject.Status != 429 || r.Reject.Text != "" || r.Row != 5 || r.Fallback != "" {
		t.Errorf("got %+v, %+v; want 429 in the host's words", r, r.Reject)
	}
}

// TestFrameMoves: a frame that is somewhere else when it is asked for again is written there.
func TestFrameMoves(t *testing.T) {
	s := load(t, newHost(t, Config{Slots: 1}), wat(t, "frame_moves"), Options{})
	for _, n := range []int{8, 64, 65, 80} {
		r := s.Pick(frame(n, 5))
		if r.Fallback != "" || r.Row < 0 || r.Row >= n || len(r.Order) != n || n > 64 && r.Row == n-1 || n <= 64 && r.Row != n-1 {
			t.Errorf("%d workers: got %+v (%s)", n, r, s.Stats().LastError)
		}
	}
}

// TestSurface: Surface does not list what the meter puts into a module.
func TestSurface(t *testing.T) {
	s := load(t, newHost(t, Config{Slots: 1}), wat(t, "logs"), Options{})
	if f := s.Surface(); !slices.Equal(f.Imports, []string{"warmpath_v1.log"}) || !slices.Contains(f.Exports, "wp_pick") {
		t.Errorf("%+v", f)
	}
}
