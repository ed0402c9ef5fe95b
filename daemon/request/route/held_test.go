package route

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/holdings"
	"github.com/warmpath/warmpath/cache/parts/blocks"
	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// asking is obedient, and asks for what the workers report.
var asking = sync.OnceValue(func() *host.Strategy {
	h, _ := shared()
	wants := `(func (export "wp_wants") (result i32) i32.const 32)` // abi.WantHeld
	return load(h, "asking", strings.Replace(obedient, `(func (export "wp_frame")`, wants+` (func (export "wp_frame")`, 1))
})

// ids are token ids from..to-1.
func ids(from, to uint32) (all []uint32) {
	for ; from < to; from++ {
		all = append(all, from)
	}
	return all
}

// reports enters a report of a worker of blocks of 16: it holds ids in a tier, under hashes from first on.
func (s *scene) reports(name string, at blocks.Medium, first uint64, ids []uint32) {
	w := s.Held.Writer(s.worker(name).Slot())
	w.SetLive(true)
	st := blocks.Stored{Tokens: ids, BlockSize: 16, Medium: at}
	for i := range len(ids) / 16 {
		st.Hashes = append(st.Hashes, first+uint64(i))
	}
	w.Store(&st)
}

// A row has what its worker reports, in tokens, while its events are live; beside it another has history.
func TestRowsFromReports(t *testing.T) {
	s := sceneBy(t, "a b c", worker.Config{}, asking())
	s.served(s.asking(completion(first+2, text("x", 30)), Claim{})) // c, by history
	s.served(s.asking(completion(first, text("x", 30)), Claim{}))   // a, which has lost it
	s.reports("a", blocks.GPU, 1, ids(0, 160))
	s.reports("b", blocks.GPU, 1, ids(0, 320))
	s.reports("b", blocks.CPU, 1, ids(0, 480))
	a := s.asking(completion(first+1, text("x", 30)), Claim{})
	a.IDs = ids(0, 960)
	c := s.chosen(a)
	h, rows := &c.fleet.frame.Header, c.fleet.frame.Rows
	if h.PromptTokens != 960 || h.PromptBlocks != 960 || h.BlockTokens != 1 || h.Flags&abi.HeaderTokens == 0 {
		t.Errorf("header %+v", h)
	}
	if h.Flags&abi.HeaderEvents != 0 {
		t.Error("c has no events, and the header says that all have")
	}
	if h.InvBWL1 == 0 || h.InvBWL2 != 0 {
		t.Errorf("from the CPU %v, from a shared tier %v", h.InvBWL1, h.InvBWL2)
	}
	f := func(name string, live bool, gpu, l1 uint32) {
		t.Helper()
		r := &rows[c.fleet.row(name)]
		if r.Live() != live || r.GPU != gpu || r.L1 != l1 || r.L2 != 0 {
			t.Errorf("%s: live %v, %d tokens, then %d, then %d; want %v, %d, %d", name, r.Live(), r.GPU, r.L1, r.L2, live, gpu, l1)
		}
	}
	f("a", true, 160, 0) // whatever was routed there
	f("b", true, 320, 160)
	f("c", false, 959, 0) // all but the last token, by 32 tokens a block of text
	if rows[0].Predicted != 959 {
		t.Errorf("history says %d tokens of a; want 959", rows[0].Predicted)
	}
	if read, matched := c.Reported(); !read || !matched {
		t.Error("b has reported what it holds")
	}
	to, _ := c.Next(s.now)
	trip := s.send(c, to)
	if trip.believed != 480 || !trip.Live() || c.size.all != 960 {
		t.Errorf("believed %d of %d, live %v; want 480 of 960", trip.believed, c.size.all, trip.Live())
	}
}

// What a worker has reported counts beside history even while its reports are not complete.
func TestRowsFromPartOfTheReports(t *testing.T) {
	s := sceneBy(t, "a b", worker.Config{}, asking())
	s.served(s.asking(completion(first, text("x", 10)), Claim{})) // a, by history: 320 tokens
	s.reports("a", blocks.GPU, 1, ids(0, 480))
	s.reports("b", blocks.GPU, 1, ids(0, 160))
	a := s.asking(completion(first, text("x", 10)), Claim{})
	a.IDs = ids(0, 960)
	f := func(tokens uint32) {
		t.Helper()
		s.Held.Writer(s.worker("a").Slot()).SetLive(false)
		if r := s.chosen(a).fleet.frame.Rows[0]; r.Live() || r.GPU != tokens {
			t.Errorf("live %v, %d tokens; want %d of one that is not", r.Live(), r.GPU, tokens)
		}
	}
	f(480)
	s.Held.Writer(s.worker("a").Slot()).Clear()
	f(320)
}

// The rows are history's without ids, for a list of prompts, for what bypasses the cache, and for a strategy that does
// not ask.
func TestRowsWithoutReports(t *testing.T) {
	f := func(what string, strategy *host.Strategy, ids []uint32, r ...string) {
		t.Helper()
		s := sceneBy(t, "a", worker.Config{}, strategy)
		s.reports("a", blocks.GPU, 1, make([]uint32, 160))
		a := s.asking(completion(first, r...), Claim{})
		a.IDs = ids
		c := s.chosen(a)
		if row := c.fleet.frame.Rows[0]; row.Live() || row.GPU != 0 || c.fleet.frame.Header.BlockTokens == 1 {
			t.Errorf("%s: live %v, %d blocks", what, row.Live(), row.GPU)
		}
	}
	_, plain := shared()
	known := make([]uint32, 200)
	f("no ids", asking(), nil, text("x", 3))
	f("two prompts", asking(), known, text("x", 3), text("y", 3))
	f("not asked for", plain, known, text("x", 3))
}

// A request without a prompt has nothing of the one before it on the same memory.
func TestNothingIsLeftOfReports(t *testing.T) {
	s := sceneBy(t, "a", worker.Config{}, asking())
	s.reports("a", blocks.GPU, 1, ids(0, 160))
	a := s.asking(completion(first, text("x", 4)), Claim{})
	a.IDs = ids(0, 161)
	c := s.chosen(a)
	a = s.asking(parsed("/v1/embeddings", `{"model":"m"}`), Claim{})
	if v := s.Choose(c, &a); v != Chosen || c.fleet.held.known {
		t.Errorf("%v, known %v", v, c.fleet.held.known)
	}
}

// A dispatch counts at once, until an event confirms it, the worker fails, or a few seconds have passed.
func TestADispatchIsPredicted(t *testing.T) {
	now := start
	s := sceneBy(t, "a b", worker.Config{}, asking())
	s.Held = holdings.New(holdings.Config{Now: func() time.Time { return now }})
	s.reports("a", blocks.GPU, 1, ids(5000, 5016))
	s.reports("b", blocks.GPU, 1, ids(5000, 5016))
	a := s.asking(completion(first, text("x", 4)), Claim{})
	a.IDs = ids(0, 161)
	held := func(what string, want uint32) {
		t.Helper()
		if got := s.chosen(a).fleet.frame.Rows[0].GPU; got != want {
			t.Errorf("%s: %d tokens; want %d", what, got, want)
		}
	}
	send := func() *Trip {
		c := s.chosen(a)
		to, _ := c.Next(s.now)
		return s.send(c, to)
	}
	held("before", 0)
	trip := send()
	held("sent", 160)
	trip.End(&judge.Outcome{Kind: judge.Broken}, End{At: s.now})
	held("broken", 0)
	send()
	now = now.Add(6 * time.Second)
	held("never confirmed", 0)
	send()
	s.reports("a", blocks.GPU, 100, ids(0, 96))
	now = now.Add(6 * time.Second)
	held("confirmed in part", 96)
}

// In a large pool a worker that reports the prompt is a candidate, also where history knows nothing of that.
func TestWhoReportsThePromptIsACandidate(t *testing.T) {
	var names []string
	for i := range 64 {
		names = append(names, fmt.Sprint("w", i))
	}
	s := sceneBy(t, strings.Join(names, " "), worker.Config{}, host.Native("held", abi.WantHeld|abi.WantCandidates,
		func(*abi.Header, []abi.Row, []uint32) uint64 { return 0 }))
	s.reports("w50", blocks.GPU, 1, ids(0, 320))
	a := s.asking(completion(first, text("x", 30)), Claim{})
	a.IDs = ids(0, 960)
	c := s.chosen(a)
	rows, at := c.fleet.frame.Rows, c.fleet.row("w50")
	if at < 0 || rows[at].GPU != 320 || len(rows) >= 64 {
		t.Errorf("w50, which holds 320 tokens, is in row %d of %d", at, len(rows))
	}
}
