package route

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/host"
)

// filterBegin is the beginning of the modules of these tests.
const filterBegin = `(module
  (import "warmpath_v1" "str" (func $str (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_2"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)`

// ownFilter keeps a request to the workers with the label for=X, where X is its caller's first letter. A max_tokens of
// 900 and more traps; a caller without a name is no request of its.
const ownFilter = `
  (func $mine (result i64)
    (local $bit i32)
    i32.const 16 i32.const 0 i32.store8
    i32.const 4 i32.const 0 i32.const 16 i32.const 8 call $str drop
    block $end
      loop $next
        local.get $bit i32.const 1168 i32.load i32.ge_u br_if $end
        i32.const 5 local.get $bit i32.const 32 i32.const 16 call $str drop
        i32.const 36 i32.load8_u i32.const 16 i32.load8_u i32.eq if
          i64.const 1 local.get $bit i64.extend_i32_u i64.shl return end
        local.get $bit i32.const 1 i32.add local.set $bit
        br $next
      end
    end
    i64.const 0)
  (func (export "wp_filter") (result i64)
    (local $mine i64) (local $row i32) (local $i i32) (local $kept i32)
    i32.const 1076 i32.load i32.const 900 i32.ge_u if unreachable end
    i32.const 1152 i64.load i64.eqz if i64.const 0xffff_ffff return end
    call $mine local.set $mine
    i32.const 1288 local.set $row
    block $end
      loop $next
        local.get $i i32.const 1036 i32.load i32.ge_u br_if $end
        local.get $row i32.const 136 i32.add i64.load local.get $mine i64.and i64.eqz i32.eqz if
          local.get $kept i32.const 4 i32.mul i32.const 13064 i32.add local.get $i i32.store
          local.get $kept i32.const 1 i32.add local.set $kept
        end
        local.get $row i32.const 184 i32.add local.set $row
        local.get $i i32.const 1 i32.add local.set $i
        br $next
      end
    end
    local.get $kept i64.extend_i32_u i64.const 0x0007_0000_0000 i64.or)`

// allFilter has no opinion, and noneFilter keeps nobody. The self-test has no caller.
const (
	allFilter  = ` (func (export "wp_filter") (result i64) i64.const 0xffff_ffff)`
	noneFilter = ` (func (export "wp_filter") (result i64) i64.const 0)`
)

// anyPick does one of ten things by max_tokens: 4 rejects, 5 declines, 6 traps, 7 holds for 5 ms, 8 confines the request
// to a row, 9 binds its session to one, and the others choose one, as Random says.
const anyPick = `
  (func (export "wp_pick") (result i64)
    (local $say i32) (local $row i64)
    i32.const 1076 i32.load i32.const 10 i32.rem_u local.set $say
    i32.const 1056 i32.load i32.const 1036 i32.load i32.const 1248 i32.load i32.sub i32.rem_u i64.extend_i32_u local.set $row
    local.get $say i32.const 4 i32.eq if i64.const 0xffff_fffe return end
    local.get $say i32.const 5 i32.eq if i64.const 0xffff_ffff return end
    local.get $say i32.const 6 i32.eq if unreachable end
    local.get $say i32.const 7 i32.eq if i32.const 1244 i32.const 5 i32.store i64.const 0xffff_fffd return end
    local.get $say i32.const 8 i32.eq if i64.const 0x0002_0000_0000_0000 local.get $row i64.or return end
    local.get $say i32.const 9 i32.eq if i64.const 0x0001_0000_0000_0000 local.get $row i64.or return end
    local.get $row))`

const onlyDeclines = ` (func (export "wp_pick") (result i64) i64.const 0xffff_ffff))`

// modules loads the modules of a test.
type modules struct {
	t    testing.TB
	host *host.Host
}

func newModules(t testing.TB) *modules {
	t.Helper()
	h, err := host.New(context.Background(), host.Config{QuarantineAfter: 2, QuarantineFor: 2 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close(context.Background()) })
	return &modules{t, h}
}

// load loads parts of modules as a strategy of that name.
func (m *modules) load(name string, o host.Options, parts ...string) *host.Strategy {
	m.t.Helper()
	wasm, err := wasmtest.Assemble(filterBegin + strings.Join(parts, ""))
	if err != nil {
		m.t.Fatal(err)
	}
	o.PickTime = time.Second
	s, err := m.host.Load(context.Background(), name, wasm, o)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

// chain is filters and the strategy behind them, the last.
func chain(all ...*host.Strategy) *host.Strategy {
	last := all[len(all)-1]
	last.Behind(all[:len(all)-1])
	return last
}

// by is a request of a caller.
func (s *scene) by(caller string, say int, claim Claim) Ask {
	a := s.ask(say, claim)
	a.Caller = caller
	a.Random = 2
	return a
}

// What a chain leaves of a fleet, whatever hides workers, and what becomes of the request.
func TestFiltersLeave(t *testing.T) {
	m := newModules(t)
	own := func() *host.Strategy { return m.load("own", host.Options{}, ownFilter, onlyDeclines) }
	any := func() *host.Strategy { return m.load("any", host.Options{}, anyPick) }
	f := func(what, fleet, labels string, s *host.Strategy, say int, want Verdict, order, said string) {
		t.Helper()
		sc := sceneBy(t, fleet, worker.Config{MaxInFlight: maxInFlight}, s)
		sc.label(labels)
		c, v := sc.choose(sc.by("x", say, Claim{}))
		var r record.Record
		c.Explain(&r)
		if got := r.Filtered(); v != want || v == Chosen && orderOf(c) != order || got != said {
			t.Errorf("%s: %v, order %q, %q; want %v, %q, %q", what, v, orderOf(c), got, want, order, said)
		}
		if v == Chosen {
			for _, id := range strings.Fields(rest(c, sc.now)) {
				if i := slices.Index(sc.names, id); i >= 0 && strings.Fields(labels)[i] != "x" {
					t.Errorf("%s: %s may get it", what, id)
				}
			}
		}
	}
	f("a fence", "a b c", "x y x", chain(own(), any()), 8, Chosen, "a", "own left a c of 3: own says 7")
	f("slow start", "a:slow b c", "x y y", chain(own(), any()), 8, Chosen, "a", "own left a of 3: own says 7")
	f("crowded", "a:crowded b c", "x y y", chain(own(), any()), 0, Chosen, "a", "own left a of 3: own says 7")
	f("silent", "a:silent b c", "x y y", chain(own(), any()), 0, Chosen, "a", "own left a of 3: own says 7")
	f("its own is hidden among its own", "a:slow b c", "x y x", chain(own(), any()), 0, Chosen, "c", "own left a c of 3: own says 7")
	f("full", "a:full b c", "x y y", chain(own(), any()), 0, Full, "", "own left a of 3: own says 7")
	f("down", "a:down b c", "x y y", chain(own(), any()), 0, Rejected, "", "own left 0 of 2: own says 7")
	f("all down", "a:down b:down", "x y", chain(own(), any()), 0, NoWorker, "", "")
	f("nobody up yet", "a:starting", "x", chain(own(), any()), 0, NoWorker, "", "")
	f("the strategy traps", "a b", "y x", chain(own(), any()), 6, Chosen, "b", "own left b of 2: own says 7")
	f("the strategy declines", "a b", "y x", chain(own(), any()), 5, Chosen, "b", "own left b of 2: own says 7")
	f("the filter traps", "a b", "y x", chain(own(), any()), 900, Rejected, "", "own failed: trap")
	f("the filter traps, and the operator wants the fallback", "a b:down", "x x",
		chain(m.load("own", host.Options{Fallback: true}, ownFilter, onlyDeclines), any()), 908, Chosen, "a", "own failed: trap")
	f("no opinion", "a b", "x x", chain(m.load("all", host.Options{}, allFilter, onlyDeclines), m.load("d", host.Options{}, onlyDeclines)), 0,
		Chosen, "a b", "all left 2 of 2")
	f("one that leaves nobody", "a b", "x x", chain(own(), m.load("none", host.Options{}, noneFilter, onlyDeclines), any()), 0, Rejected,
		"", "own left 2 of 2: own says 7; none left 0 of 2")
	f("in the last place", "a b", "x y", m.load("both", host.Options{}, ownFilter, anyPick), 8, Chosen, "a", "both left a of 2: both says 7")
	f("filters in both places", "a b", "x y", chain(own(), m.load("both", host.Options{}, allFilter, anyPick)), 8, Chosen, "a",
		"own left a of 2: own says 7; both left 1 of 1")
}

// A request that a filter turns away is the filter's: its name, its words, and each worker that is up was left out.
func TestAFilterTurnsAway(t *testing.T) {
	m := newModules(t)
	s := sceneBy(t, "a b c:down", worker.Config{}, chain(m.load("own", host.Options{}, ownFilter, onlyDeclines),
		m.load("any", host.Options{}, anyPick)))
	s.label("y y x")
	c, v := s.choose(s.by("x", 0, Claim{}))
	status, text, _ := c.Rejection()
	if v != Rejected || status != 503 || !strings.Contains(text, `"own"`) || c.FellBack() || c.Reason() != "the filter leaves no worker" {
		t.Errorf("%v, %d %q, %q", v, status, text, c.Reason())
	}
	var r record.Record
	c.Explain(&r)
	var k Sketch
	k.Take(c)
	var told record.Record
	k.Explain(&told)
	for _, all := range [][]record.Candidate{r.Candidates, told.Candidates} {
		if len(all) != 3 || !strings.HasPrefix(all[0].Skipped, "a filter leaves it out") || all[2].Skipped != "down" {
			t.Errorf("%+v", all)
		}
	}
	if r.Strategy != "own" || r.Fallback != "" {
		t.Errorf("%+v", r)
	}
	c, v = s.choose(s.by("x", 900, Claim{}))
	if v != Rejected || !c.FellBack() || !strings.Contains(c.LastError(), "wp_filter") {
		t.Errorf("%v, %v, %q", v, c.FellBack(), c.LastError())
	}
	open := m.load("open", host.Options{Fallback: true}, ownFilter, onlyDeclines)
	s.Strategy.Replace(chain(open, m.load("any", host.Options{}, anyPick)))
	open.Close(context.Background()) // as a reload does, whose next strategy is not there yet
	if c, v = s.choose(s.by("y", 0, Claim{})); v != Rejected || c.result.Reject.Status != 503 || c.Reason() != "fallback: closed" {
		t.Errorf("%v, %+v, %q; a filter that is gone opens the fence", v, c.result, c.Reason())
	}
}

// A session whose worker the filters leave out moves to one that they leave; one whose state is there does not.
func TestFiltersAndSessions(t *testing.T) {
	m := newModules(t)
	s := sceneBy(t, "a b:slow c:full", worker.Config{MaxInFlight: maxInFlight}, chain(m.load("own", host.Options{}, ownFilter, onlyDeclines),
		m.load("any", host.Options{}, anyPick)))
	s.label("y x x")
	s.enter(key("k"), "a", false)
	s.served(s.by("x", 0, Claim{Key: key("k"), Binds: true}))
	if at := s.lives(key("k")); at != "b" {
		t.Errorf("it lives at %s", at)
	}
	s.enter(opened("o"), "a", true)
	if _, v := s.choose(s.by("x", 0, Claim{Opened: opened("o")})); v != SessionResting || s.lives(opened("o")) != "a" {
		t.Errorf("%v, and it lives at %s", v, s.lives(opened("o")))
	}
	s.enter(opened("p"), "b", true)
	if c := s.chosen(s.by("x", 0, Claim{Opened: opened("p")})); orderOf(c) != "b" || !c.Pinned() {
		t.Errorf("%s", orderOf(c))
	}
	s.enter(key("full"), "c", false)
	if _, v := s.choose(s.by("x", 0, Claim{Key: key("full"), Binds: true})); v != Full {
		t.Errorf("%v; want to wait for its worker", v)
	}
}

// Both sides of a pair are those that the filters leave.
func TestFiltersAndPairs(t *testing.T) {
	m := newModules(t)
	wants := ` (func (export "wp_wants") (result i32) i32.const 128)`
	last := m.load("any", host.Options{}, wants, anyPick)
	s := duo(t, five, chain(m.load("own", host.Options{}, ownFilter, onlyDeclines), last))
	for i, own := range strings.Fields("x y y y x") {
		s.conf.Workers[i].Labels["own"] = own
	}
	s.Workers.Update(s.conf.Workers, s.now)
	a := s.toPair()
	a.Caller = "x"
	c := s.chosen(a)
	if got := strings.Join(c.fleet.frame.WorkerIDs, " "); got != "d0 p1" || c.fleet.frame.Header.Prefillers != 1 {
		t.Errorf("rows %q, %d prefillers", got, c.fleet.frame.Header.Prefillers)
	}
	if who := prefillElsewhere(c, &SplitRule{Fence: worker.Fence{"for=p"}}); math.IsInf(who, 1) {
		t.Error("no prefiller is known to the rule that splits")
	}
	a.Leg, a.Fence, a.Prefillers = Prefill, worker.Fence{"for=p"}, nil
	if c = s.chosen(a); orderOf(c) != "p1" {
		t.Errorf("the prompt goes to %q", orderOf(c))
	}
}

// chaos is two routers with a pool of the same workers, and a store of sessions that they share.
type chaos struct {
	*modules
	rng     *rand.Rand
	routers [2]*scene
	now     time.Time
	tickets [2]map[string][]*worker.Ticket // that keep workers full
	chains  []*host.Strategy
	canary  host.Current
	burst   string // callers whose requests trap, one after the other
	served  int    // requests that a worker got
	refused map[string]int
}

var callers = []string{"a", "b", "c"}

// rechain has other chains of the same modules serve, as a reload does. The old ones close while a request may have them.
func (x *chaos) rechain() {
	old := x.chains
	own := x.load("own", host.Options{}, ownFilter, onlyDeclines)
	all := x.load("all", host.Options{}, allFilter, onlyDeclines)
	last := x.load("any", host.Options{}, anyPick)
	other := x.load("canary", host.Options{Reject: true}, anyPick)
	other.Behind([]*host.Strategy{own})
	switch x.rng.IntN(4) {
	case 0:
		chain(own, last)
	case 1:
		chain(all, own, last)
	case 2:
		chain(own, all, last)
	case 3:
		last = x.load("both", host.Options{}, ownFilter, anyPick)
	}
	x.canary.Replace(other)
	for _, s := range x.routers {
		s.Strategy.Replace(last)
		s.SetCanaries([]Canary{{Strategy: &x.canary, Percent: float64(x.rng.IntN(3) * 20)}})
	}
	x.chains = []*host.Strategy{own, all, last, other}
	for _, s := range old {
		s.Close(context.Background())
	}
}

// any returns a worker of a router, whatever its state, nil if it has no row even so.
func (x *chaos) any(s *scene) (name string, w *worker.Worker) {
	name = s.names[x.rng.IntN(len(s.names))]
	_, all, _ := s.Workers.Snapshot(worker.Query{Wide: true, At: x.now}, nil, nil)
	if i := slices.IndexFunc(all, func(w *worker.Worker) bool { return w.ID() == name }); i >= 0 {
		w = all[i]
	}
	return name, w
}

// shake changes what a router knows of a worker, or the labels of all.
func (x *chaos) shake() {
	r := x.rng.IntN(2)
	s := x.routers[r]
	name, w := x.any(s)
	begin := func() *worker.Ticket {
		t := new(worker.Ticket)
		if w == nil || !s.Workers.Begin(t, w, worker.Dispatch{PromptTokens: 10, Est: .001}, x.now) {
			return nil
		}
		return t
	}
	switch n := x.rng.IntN(20); {
	case n < 1:
		s.Workers.Dead(s.watched[name], "refused", x.now)
	case n < 8:
		s.Workers.Healthy(s.watched[name], x.now)
	case n < 10: // slow start
		s.Workers.Dead(s.watched[name], "refused", x.now)
		s.Workers.Healthy(s.watched[name], x.now)
	case n < 12: // crowded
		if t := begin(); t != nil {
			t.End(x.now, judge.Outcome{Kind: judge.Busy})
		}
	case n < 13:
		for t := begin(); t != nil && len(x.tickets[r][name]) < 8; t = begin() {
			x.tickets[r][name] = append(x.tickets[r][name], t)
		}
	case n < 16:
		for _, t := range x.tickets[r][name] {
			t.End(x.now, judge.Outcome{Kind: judge.Answered})
		}
		delete(x.tickets[r], name)
	case n < 17:
		s.Workers.Drain(name, x.rng.IntN(3) == 0, x.now)
	case n < 18:
		s.Workers.Silent(s.watched[name], "no answer", x.now)
		s.Workers.Silent(s.watched[name], "no answer", x.now)
	case n < 19:
		x.move()
	default:
		x.now = x.now.Add(time.Duration(x.rng.IntN(3000)) * time.Millisecond)
	}
}

// move gives each worker another tenant, or none, at both routers.
func (x *chaos) move() {
	for i, t := range x.rng.Perm(len(x.routers[0].conf.Workers)) {
		labels := map[string]string{"rev": fmt.Sprint(x.rng.IntN(2))}
		if t = t % (len(callers) + 1); t < len(callers) {
			labels["for"] = callers[t]
		}
		for _, s := range x.routers {
			s.conf.Workers[i].Labels = labels
		}
	}
	for _, s := range x.routers {
		s.Workers.Update(s.conf.Workers, x.now)
	}
}

// up reports whether a worker of the tenant gets requests at a router.
func (x *chaos) up(s *scene, tenant string) bool {
	return slices.ContainsFunc(s.Workers.Stats(x.now), func(w worker.Stats) bool { return w.Up && w.Labels["for"] == tenant })
}

// request sends a request, and fails the test if a foreign worker gets it, or nobody although its own could.
func (x *chaos) request(i int) {
	s := x.routers[x.rng.IntN(2)]
	s.now = x.now
	tenant := callers[x.rng.IntN(len(callers))]
	say := x.rng.IntN(900)
	switch trap := x.rng.IntN(500); {
	case trap == 0:
		x.burst = strings.Repeat(tenant, 4)
	case say%10 == 6 && trap > 10:
		say++
	}
	if x.burst != "" {
		tenant, x.burst = x.burst[:1], x.burst[1:]
		say = 900 + x.rng.IntN(10)
	}
	var claim Claim
	switch x.rng.IntN(4) {
	case 0:
		claim = Claim{Key: key(fmt.Sprint(tenant, x.rng.IntN(20))), Binds: x.rng.IntN(2) == 0}
	case 1:
		if name, w := x.any(s); w != nil && x.rng.IntN(4) == 0 {
			_, _ = s.Sessions.Open(opened(fmt.Sprint(tenant, i)), session.Binding{Worker: name, Minted: x.rng.IntN(2) == 0}, x.now)
			claim = Claim{Opened: opened(fmt.Sprint(tenant, i))}
		}
	}
	a := s.by(tenant, say, claim)
	a.Turn, a.Random = uint64(i), x.rng.Uint64()|1
	if x.rng.IntN(2) == 0 {
		a.Queue.Longest = 5 * time.Millisecond
	}
	c := new(Choice)
	v := s.Choose(c, &a)
	for v == Held || c.result.Fallback == "busy" {
		if v == Held {
			x.shake()
			a.Queue.Waited += 2 * time.Millisecond
		} else { // what has trapped is made anew
			time.Sleep(100 * time.Microsecond)
		}
		v = s.Choose(c, &a)
	}
	if v == Chosen {
		v = c.Bind()
	}
	if v != Chosen {
		x.refuse(i, c, s, tenant, say, v)
		c.Release()
		return
	}
	for range 1 + x.rng.IntN(4) {
		if x.rng.IntN(8) == 0 {
			x.shake()
		}
		to, ok := c.Next(x.now)
		if !ok {
			break
		}
		var trip Trip
		if !c.Send(&trip, to, nil, x.now) {
			continue
		}
		x.served++
		if got := s.Workers.LabelsOf(to.Worker, "for"); !slices.Equal(got, []string{"for=" + tenant}) {
			x.t.Fatalf("request %d of %s (%d, %+v): %s has %v; %s", i, tenant, say, claim, to.Worker.ID(), got, strings.Join(c.said, "; "))
		}
		good := x.rng.IntN(3) > 0
		c.Answered(to.Worker, good)
		outcome, end := judge.Outcome{Kind: judge.Failed}, End{At: x.now}
		if good {
			outcome.Kind, end = judge.Answered, End{Whole: true, Status: 200, At: x.now}
		}
		trip.End(&outcome, end)
	}
	c.Release()
}

// refuse counts a request that nobody got, and fails the test if one of its own workers is up and no rule is the cause.
func (x *chaos) refuse(i int, c *Choice, s *scene, tenant string, say int, v Verdict) {
	why := v.String()
	switch {
	case v == Rejected && c.FellBack(): // a filter that fails, or the canary, whose operator wants that
		why = c.strategy.Name() + " " + c.result.Fallback
		if c.strategy.Name() == "own" && say < 900 && c.result.Fallback == "trap" {
			x.t.Fatalf("request %d: %s", i, why)
		}
	case v == Rejected && !c.nobody:
		why = "rejected by the strategy"
	case v == NoWorker, v == Rejected:
		if x.up(s, tenant) {
			x.t.Fatalf("request %d of %s: %v although one of its workers is up; %s", i, tenant, v, strings.Join(c.said, "; "))
		}
	}
	x.refused[why]++
}

// Random requests through the filters of two routers, while workers fail, start slowly, are crowded, full and drained,
// labels move, strategies and filters trap, hold and are set aside, canaries come and go, and reloads replace the chain:
// no foreign worker gets one, and none is refused for want of a worker while one of its own is up.
func TestManyRequestsThroughFilters(t *testing.T) {
	requests := 100_000
	if testing.Short() {
		requests = 10_000
	}
	x := &chaos{modules: newModules(t), rng: rand.New(rand.NewPCG(1, 2)), now: start, refused: map[string]int{}}
	const fleet = "u v w x y z"
	x.routers[0] = sceneBy(t, fleet, worker.Config{MaxInFlight: maxInFlight, SlowStart: 2 * time.Second},
		x.load("first", host.Options{}, ownFilter, anyPick))
	x.routers[1] = sceneBy(t, fleet, worker.Config{MaxInFlight: maxInFlight, SlowStart: 2 * time.Second},
		x.load("first", host.Options{}, ownFilter, anyPick))
	x.routers[1].Pool.Sessions = session.On(x.routers[0].store, session.Config{Pool: "p"})
	for r := range x.tickets {
		x.tickets[r] = map[string][]*worker.Ticket{}
	}
	x.move()
	for i := range requests {
		if i%1000 == 0 {
			x.rechain()
		}
		if x.rng.IntN(3) == 0 {
			x.shake()
		}
		x.now = x.now.Add(time.Duration(x.rng.IntN(20)) * time.Millisecond)
		x.request(i)
	}
	t.Logf("%d requests, %d at a worker; refused: %v", requests, x.served, x.refused)
	if x.served < requests/4 || x.refused["own trap"] == 0 || x.refused["own quarantined"] == 0 ||
		x.refused["rejected"]+x.refused["no_worker"] == 0 || x.refused["workers_full"] == 0 {
		t.Errorf("%d at a worker; refused: %v", x.served, x.refused)
	}
}

// Who asks workers for a prompt's ids gives them the prompt, so nobody does so behind a filter, be it of a canary alone.
func TestNobodyAsksForIDsBehindAFilter(t *testing.T) {
	m := newModules(t)
	wants := ` (func (export "wp_wants") (result i32) i32.const 32)`
	held := func() *host.Strategy { return m.load("held", host.Options{}, wants, anyPick) }
	own := m.load("own", host.Options{}, ownFilter, onlyDeclines)
	s := sceneBy(t, "a b", worker.Config{}, held())
	s.Held.Writer(s.worker("a").Slot()).SetLive(true)
	if !s.WantsIDs() {
		t.Error("no ids without a filter")
	}
	s.Strategy.Replace(chain(own, held()))
	if s.WantsIDs() || !s.WantsPairs() {
		t.Error("ids behind a filter")
	}
	s.Strategy.Replace(held())
	var canary host.Current
	canary.Replace(chain(own, held()))
	s.SetCanaries([]Canary{{Strategy: &canary, Percent: 1}})
	if s.WantsIDs() {
		t.Error("ids behind a canary's filter")
	}
}
