package route

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/cache/parts/blocks"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// pairing is a strategy that chooses row d, the others behind it, and row p for the prompt.
func pairing(d, p int) *host.Strategy {
	return host.Native("pairing", abi.WantPair, func(h *abi.Header, _ []abi.Row, order []uint32) uint64 {
		if h.Flags&abi.HeaderPrefill != 0 {
			return abi.Pack(0, 8, 0)
		}
		h.PairRow = int32(p)
		return abi.Pack(int32(d), 7, 0)
	})
}

// duo makes a pool of d0, d1 and d2, which answer, and p0 and p1, which compute prompts. words may have other fates.
func duo(t testing.TB, words string, s *host.Strategy) *scene {
	t.Helper()
	x := sceneBy(t, words, worker.Config{MaxInFlight: maxInFlight}, s)
	for i := range x.conf.Workers {
		w := &x.conf.Workers[i]
		w.Labels = map[string]string{"for": w.ID[:1]}
		if w.ID[0] == 'p' {
			w.Role = worker.Prefills
		}
	}
	x.Workers.Update(x.conf.Workers, x.now)
	return x
}

// toPair is a request for which a worker that answers is chosen, and perhaps one that computes its prompt.
func (s *scene) toPair() Ask {
	a := s.fenced(first, Claim{}, "for=d")
	a.Prompt = completion(first, text("q", 50))
	a.Leg, a.Prefillers = Answer, worker.Fence{"for=p"}
	return a
}

// split returns who computes the prompt for the next worker of a choice, and that one: "d0" alone, or "d0 p1"; and
// whether the strategy decided that.
func (s *scene) split(c *Choice, rule *SplitRule) (who string, named bool) {
	s.t.Helper()
	to, ok := c.Next(s.now)
	if !ok {
		s.t.Fatal("nobody is left")
	}
	who = to.Worker.ID()
	by, named := Paired(c, to)
	if by != nil {
		who += " " + by.ID()
	}
	if got := rule.Splits(c, to); named && got != (by != nil) {
		s.t.Errorf("%s: splits %v", who, got)
	}
	return who, named
}

const five = "d0 d1 d2 p0 p1"

var never, always = &SplitRule{Threshold: 1 << 30}, &SplitRule{}

// A pair that the strategy names is a pair whatever the rule is. Where it names none, the rule decides.
func TestPaired(t *testing.T) {
	f := func(what, fleet string, d, p int, want string, named bool) {
		t.Helper()
		for _, rule := range []*SplitRule{never, always} {
			s := duo(t, fleet, pairing(d, p))
			c := s.chosen(s.toPair())
			if who, is := s.split(c, rule); who != want || is != named {
				t.Errorf("%s: %q, named %v; want %q, %v", what, who, is, want, named)
			}
		}
	}
	f("a pair", five, 1, 4, "d1 p1", true)
	f("nobody else", five, 2, 2, "d2", true)
	f("no pair", five, 1, -1, "d1", false)
	f("no row", five, 1, 9, "d1", false)
	f("one that may do both", five, 1, 0, "d1 d0", true)
	f("a prefiller that is down has no row", "d0 d1 d2 p0:down p1", 1, 4, "d1", false)
	f("nor one that is full", "d0 d1 d2 p0:full p1", 1, 3, "d1 p1", true)
	f("nor one that drains", "d0 d1 d2 p0:draining p1", 1, 3, "d1 p1", true)
	f("no prefiller is up", "d0 d1 d2 p0:down p1:down", 1, 3, "d1", false)
	f("nobody else, and no prefiller is up", "d0 d1 d2 p0:down p1:down", 1, 1, "d1", true)
}

// A strategy sees the prefillers behind those that may answer, if it wants to and the request may be split. Nobody else
// does, and none of them is in the order.
func TestRowsOfPrefillers(t *testing.T) {
	_, plain := shared()
	f := func(what string, s *host.Strategy, change func(*Ask), rows, prefillers int) {
		t.Helper()
		x := duo(t, five, s)
		a := x.toPair()
		change(&a)
		c := x.chosen(a)
		h := &c.fleet.frame.Header
		if len(c.fleet.frame.Rows) != rows || h.Prefillers != uint32(prefillers) || len(c.order.rows) != 3 || h.Configured != 3 {
			t.Errorf("%s: %d rows, %d of prefillers, order %v, of %d; want %d and %d", what, len(c.fleet.frame.Rows), h.Prefillers,
				c.order.rows, h.Configured, rows, prefillers)
		}
		for i := range c.fleet.frame.Rows {
			if row := &c.fleet.frame.Rows[i]; row.Decodes() == (i >= 3) || c.fleet.slots[i] != row.Worker ||
				c.fleet.frame.WorkerIDs[i] != c.fleet.workers[i].ID() {
				t.Errorf("%s: row %d is of %s: %+v", what, i, c.fleet.workers[i].ID(), row)
			}
		}
	}
	same := func(*Ask) {}
	f("it wants pairs", pairing(0, 3), same, 5, 2)
	f("it does not", plain, same, 3, 0)
	f("the request is not split", pairing(0, 3), func(a *Ask) { a.Prefillers = nil }, 3, 0)
	f("no prefiller is inside of the fence", pairing(0, 3), func(a *Ask) { a.Prefillers = worker.Fence{"for=q"} }, 3, 0)
}

// A pair counts for the worker that the strategy has named, not for those that the host adds. Its prefiller is one
// worker, whichever rows there are in a second look.
func TestPairOfAnother(t *testing.T) {
	s := duo(t, five, host.Native("then", abi.WantPair, func(h *abi.Header, _ []abi.Row, order []uint32) uint64 {
		order[0], h.OrderLen, h.PairRow = 2, 1, 4
		return abi.Pack(1, 7, 0)
	}))
	c := s.chosen(s.toPair())
	for _, want := range []string{"d1 p1", "d2 p1", "d0"} {
		if who, named := s.split(c, never); who != want || named != (want != "d0") {
			t.Errorf("%q, named %v; want %q", who, named, want)
		}
	}
	alone := duo(t, five, pairing(1, 1))
	c = alone.chosen(alone.toPair())
	if who, named := alone.split(c, always); who != "d1" || !named {
		t.Errorf("%q, %v", who, named)
	}
	if who, named := alone.split(c, always); named {
		t.Errorf("%q was named by nobody", who)
	}
	then := duo(t, five, host.Native("then", abi.WantPair, func(h *abi.Header, _ []abi.Row, order []uint32) uint64 {
		order[0], h.OrderLen, h.PairRow = 2, 1, 1
		return abi.Pack(1, 7, 0)
	}))
	c = then.chosen(then.toPair())
	for _, want := range []string{"d1", "d2"} {
		if who, named := then.split(c, always); who != want || !named {
			t.Errorf("%q, named %v; want %q alone", who, named, want)
		}
	}
	late := duo(t, "d0 d1:full d2:full p0 p1", pairing(0, 1)) // of the rows d0, p0, p1
	c = late.chosen(late.toPair())
	if who, _ := late.split(c, never); who != "d0 p0" {
		t.Errorf("%q", who)
	}
}

// A session's worker, a fallback and a rejection name no pair.
func TestPairOfNobody(t *testing.T) {
	s := duo(t, five, pairing(1, 4))
	s.enter(key("s"), "d2", false)
	a := s.toPair()
	a.Claim = Claim{Key: key("s"), Binds: true}
	if who, named := s.split(s.chosen(a), never); who != "d2" || named {
		t.Errorf("%q, named %v; want the session's worker", who, named)
	}
	s = duo(t, five, host.Native("declines", abi.WantPair, func(h *abi.Header, _ []abi.Row, _ []uint32) uint64 {
		h.PairRow = 4
		return abi.Pack(abi.Decline, 0, 0)
	}))
	if who, named := s.split(s.chosen(s.toPair()), never); named || strings.Contains(who, "p") {
		t.Errorf("%q, named %v; want the fallback's", who, named)
	}
	s = duo(t, five, pairing(1, 4))
	a = s.toPair()
	a.Claim = Claim{Key: key("late"), Binds: true}
	c := s.chosen(a)
	s.enter(key("late"), "d2", false) // by another request, which was first
	if v := c.Bind(); v != Chosen {
		t.Fatal(v)
	}
	if who, named := s.split(c, never); who != "d2" || named {
		t.Errorf("%q, named %v; want the worker that another request has bound the session to", who, named)
	}
	s = duo(t, five, pairing(1, 0))
	a = s.toPair()
	a.Prefillers = nil // a pool without roles, or a request that is not split
	if who, named := s.split(s.chosen(a), never); who != "d1" || named {
		t.Errorf("%q, named %v", who, named)
	}
}

// A prefill goes to the worker that was named for it, without asking. If that one takes nothing by then, or is not
// inside of the fence, the strategy is asked. The others follow it.
func TestNamedPrefill(t *testing.T) {
	f := func(what, fleet, named, want, reason string) {
		t.Helper()
		s := duo(t, fleet, pairing(0, 0))
		a := s.fenced(first, Claim{}, "for=p")
		a.Leg, a.Named = Prefill, named
		c := s.chosen(a)
		if got := c.First().ID(); got != want || c.Reason() != reason || len(c.order.rows) != c.fleet.frame.Choices() {
			t.Errorf("%s: %s, %q, order %v; want %s, %q", what, got, c.Reason(), c.order.rows, want, reason)
		}
	}
	const own, by = "pairing says 8", "named by the strategy, with the worker that answers"
	f("named", five, "p1", "p1", by)
	f("nobody named", five, "", "p0", own)
	f("down", "d0 d1 d2 p0 p1:down", "p1", "p0", own)
	f("full", "d0 d1 d2 p0 p1:full", "p1", "p0", own)
	f("drains", "d0 d1 d2 p0 p1:draining", "p1", "p0", own)
	f("outside of the fence", five, "d1", "p0", own)
	f("gone", five, "p7", "p0", own)
	s := duo(t, five, pairing(1, 4))
	a := s.toPair()
	a.Named = "d2" // of a prefill alone
	if who, _ := s.split(s.chosen(a), never); who != "d1 p1" {
		t.Errorf("%q", who)
	}
}

// Workers above max_wait_seconds have no row: those that answer are compared with each other, and prefillers likewise.
func TestBackloggedPrefillers(t *testing.T) {
	s := sceneBy(t, "d0 d1:queued d2 p0 p1:queued", worker.Config{MaxWait: 1}, pairing(0, 2))
	for i := range s.conf.Workers {
		s.conf.Workers[i].Labels = map[string]string{"for": s.conf.Workers[i].ID[:1]}
	}
	s.Workers.Update(s.conf.Workers, s.now)
	c := s.chosen(s.toPair())
	if ids := strings.Join(c.fleet.frame.WorkerIDs, " "); ids != "d0 d2 p0" || c.fleet.frame.Header.Prefillers != 1 {
		t.Errorf("%s, %d of prefillers", ids, c.fleet.frame.Header.Prefillers)
	}
	if who, _ := s.split(c, never); who != "d0 p0" {
		t.Errorf("%q", who)
	}
}

// The record has the pair, and the prefillers among the candidates, in both forms that it is kept in.
func TestRecordOfAPair(t *testing.T) {
	s := duo(t, five, pairing(1, 4))
	c := s.chosen(s.toPair())
	var r, kept record.Record
	c.Explain(&r)
	var k Sketch
	k.Take(c)
	k.Explain(&kept)
	for _, got := range []*record.Record{&r, &kept} {
		n := 0
		for _, x := range got.Candidates {
			if x.Skipped == prefillsOnly && x.Worker[0] == 'p' {
				n++
			}
		}
		if n != 2 || len(got.Candidates) != 5 || len(got.Frame) != abi.HeaderSize+5*abi.RowSize {
			t.Errorf("%+v", got.Candidates)
		}
	}
	if r.PairName() != "p1" {
		t.Errorf("the pair is %q", r.PairName())
	}
	s = duo(t, five, pairing(1, 1))
	s.chosen(s.toPair()).Explain(&r)
	if r.PairName() != "d1" {
		t.Errorf("alone the pair is %q", r.PairName())
	}
}

// A strategy that looks on sees prefillers if it wants to, whether the one that serves does or not.
func TestASnapshotHasPrefillers(t *testing.T) {
	_, plain := shared()
	for _, serves := range []*host.Strategy{plain, pairing(1, 4)} {
		s := duo(t, five, serves)
		if s.WantsPairs() != (serves != plain) {
			t.Error("nobody wants pairs")
		}
		s.Watch([]*host.Strategy{plain, pairing(1, 4)})
		if !s.WantsPairs() {
			t.Error("who looks on wants pairs")
		}
		c := s.chosen(s.toPair())
		var n Snapshot
		for range 2 { // its memory is used again
			n.Take(c, nil)
			n.View(pairing(1, 4))
			r := pairing(1, 4).Pick(&n.Frame)
			if n.Frame.Header.Prefillers != 2 || r.Pair != 5 || r.Row != 1 || n.Workers[4] != "p1" ||
				!slices.Equal(n.Workers, n.Frame.WorkerIDs) {
				t.Errorf("%d of prefillers, %+v, %v", n.Frame.Header.Prefillers, r, n.Workers)
			}
			n.View(plain)
			if n.Frame.Header.Prefillers != 0 || len(n.Frame.Rows) != 3 {
				t.Errorf("who does not want them gets %d rows", len(n.Frame.Rows))
			}
		}
	}
}

// Who looks on sees the rows that it would see if it served: of prefillers too, by history and by what the workers
// report, whatever the strategy that serves asks for.
func TestASnapshotIsWhatWouldBeSeen(t *testing.T) {
	_, plain := shared()
	pick := func(h *abi.Header, _ []abi.Row, _ []uint32) uint64 { return abi.Pack(0, 7, 0) }
	for _, serves := range []*host.Strategy{plain, asking(), pairing(1, 4)} {
		for _, looksOn := range []uint32{abi.WantPair, abi.WantHeld, abi.WantHeld | abi.WantPair} {
			if looksOn&abi.WantHeld == 0 && serves == asking() { // it sees reports beside one that asks for them
				continue
			}
			what := fmt.Sprintf("%s, looked on by one that wants %#x", serves.Name(), looksOn)
			s, one := duo(t, five, serves), host.Native("looks on", looksOn, pick)
			s.conf.MaxWait = 1
			s.Configure(s.conf, Tiers{})
			s.Watch([]*host.Strategy{one})
			s.become("p0", "queued")
			toPrefill := s.fenced(first+1, Claim{}, "for=p")
			toPrefill.Prompt, toPrefill.Leg = completion(first+1, text("q", 140)), Prefill
			s.Workers.Scraped(s.watched["p1"], worker.Page{Metrics: worker.Metrics{Block: 16, Capacity: 6000}}, s.now)
			c := s.chosen(toPrefill)
			to, _ := c.Next(s.now)
			s.send(c, to) // at p1, which has no room for another one
			s.reports("p1", blocks.GPU, 1, ids(0, 320))
			s.reports("d2", blocks.CPU, 1, ids(0, 160))
			a := s.toPair()
			a.Prompt, a.IDs = completion(first, text("q", 150)), ids(0, 4800)
			var n Snapshot
			for range 2 { // its memory is used again
				n.Take(s.chosen(a), nil)
				n.View(one)
			}
			a.By = one
			want := &s.chosen(a).fleet.frame
			h := &n.Frame.Header
			if len(want.Rows) < 3 || len(n.Frame.Rows) != len(want.Rows) || h.Prefillers != want.Header.Prefillers || h.Flags != want.Header.Flags ||
				h.BlockTokens != want.Header.BlockTokens || h.PromptTokens != want.Header.PromptTokens || h.BestRow != want.Header.BestRow {
				t.Errorf("%s: %d rows of %+v; want %d of %+v", what, len(n.Frame.Rows), *h, len(want.Rows), want.Header)
				continue
			}
			for i := range want.Rows {
				got, want := n.Frame.Rows[i], want.Rows[i]
				got.ReuseGPU, want.ReuseGPU = 0, 0 // the index has a clock
				if got != want || n.Workers[i] != n.Frame.WorkerIDs[i] {
					t.Errorf("%s: row %d, of %s:\n%+v; want\n%+v", what, i, n.Workers[i], got, want)
				}
			}
		}
	}
}
