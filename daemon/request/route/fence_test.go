package route

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/watchtest"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// wall keeps a request to the workers with the label bit that its max_tokens names in thousands: 0 or 1. The rest of
// max_tokens is as for obedient: 998 traps, 0 declines. Without such a worker it rejects.
const wall = `(module
  (memory (export "memory") 1)
  (global $most (mut i32) (i32.const 0))
  (func (export "warmpath_abi_1_2"))
  (func (export "wp_frame") (param i32) (result i32) local.get 0 global.set $most i32.const 1024)
  (func (export "wp_pick") (result i64)
    (local $say i32) (local $mask i64) (local $i i32) (local $chosen i32) (local $named i32) (local $row i32) (local $order i32)
    i32.const 1076 i32.load local.set $say
    i64.const 1 local.get $say i32.const 1000 i32.div_u i64.extend_i32_u i64.shl local.set $mask
    local.get $say i32.const 1000 i32.rem_u local.set $say
    local.get $say i32.eqz if i64.const 0xffff_ffff return end
    local.get $say i32.const 998 i32.eq if unreachable end
    i32.const -2 local.set $chosen
    i32.const 1024 i32.const 1028 i32.load i32.add local.set $row
    local.get $row global.get $most i32.const 1032 i32.load i32.mul i32.add local.set $order
    block $end
      loop $next
        local.get $i i32.const 1036 i32.load i32.ge_u br_if $end
        local.get $row i32.const 136 i32.add i64.load local.get $mask i64.and i64.eqz i32.eqz if
          local.get $chosen i32.const 0 i32.lt_s if
            local.get $i local.set $chosen
          else
            local.get $order local.get $named i32.const 4 i32.mul i32.add local.get $i i32.store
            local.get $named i32.const 1 i32.add local.set $named
          end
        end
        local.get $row i32.const 1032 i32.load i32.add local.set $row
        local.get $i i32.const 1 i32.add local.set $i
        br $next
      end
    end
    i32.const 1144 local.get $named i32.store
    local.get $chosen i32.const 0 i32.lt_s if i64.const 0xffff_fffe return end
    local.get $chosen i64.extend_i32_u i64.const 0x0002_0005_0000_0000 i64.or)
)`

// walled loads a module into a host that sets a strategy aside at once, for a moment.
func walled(t testing.TB, wat string, reject bool) *host.Strategy {
	t.Helper()
	ctx := context.Background()
	h, err := host.New(ctx, host.Config{QuarantineAfter: 2, QuarantineFor: 100 * time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := wasmtest.Assemble(wat)
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Load(ctx, "wall", wasm, host.Options{PickTime: time.Second, Reject: reject})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close(ctx) })
	return s
}

// label gives the scene's workers labels for=X: the first that of the first word, and so on; - is none.
func (s *scene) label(words string) {
	for i, word := range strings.Fields(words) {
		s.conf.Workers[i].Labels = nil
		if word != "-" {
			s.conf.Workers[i].Labels = map[string]string{"for": word}
		}
	}
	s.Workers.Update(s.conf.Workers, s.now)
}

// fenced is a request of a key with workers of its own.
func (s *scene) fenced(say int, claim Claim, labels ...string) Ask {
	a := s.ask(say, claim)
	a.Fence = labels
	return a
}

// TestAFence: rows, order, second look, queue and lists of candidates hold the fence's workers alone, and a verdict says
// why there are none.
func TestAFence(t *testing.T) {
	s := newScene(t, "a b c d:down")
	s.label("x x y y")
	c := s.chosen(s.fenced(decline, Claim{}, "for=x"))
	if h := c.fleet.frame.Header; h.Rows != 2 || h.Configured != 2 || h.Up != 2 {
		t.Errorf("%d rows of %d, %d up; want 2 of 2", h.Rows, h.Configured, h.Up)
	}
	if got := rest(c, s.now); got != "a b |" && got != "b a |" && got != "a b" && got != "b a" {
		t.Errorf("tries %s", got)
	}
	c = s.chosen(s.fenced(decline, Claim{}, "for=y"))
	if h := c.fleet.frame.Header; h.Rows != 1 || h.Configured != 2 || h.Up != 1 {
		t.Errorf("%d rows of %d, %d up; want 1 of 2", h.Rows, h.Configured, h.Up)
	}
	var r record.Record
	c.Explain(&r)
	var names []string
	for _, one := range r.Candidates {
		names = append(names, one.Worker)
	}
	if got := strings.Join(names, " "); got != "c d" {
		t.Errorf("candidates %s; want those inside", got)
	}
	for want, fence := range map[Verdict]string{Fenced: "for=z", NoWorker: "for=y", Full: "for=x"} {
		s.become("c", "down")
		for _, name := range []string{"a", "b"} {
			for want == Full && s.Workers.Standing(name, "m", nil, s.now) == worker.Ready {
				s.begin(name)
			}
		}
		if _, got := s.choose(s.fenced(decline, Claim{}, fence)); got != want {
			t.Errorf("%s: %v; want %v", fence, got, want)
		}
	}
}

// TestALaneForEachFence: requests of two fences wait apart, and take turns apart.
func TestALaneForEachFence(t *testing.T) {
	s := newScene(t, "a b")
	s.label("x y")
	x, y := Weigh(s.chosen(s.fenced(decline, Claim{}, "for=x"))), Weigh(s.chosen(s.fenced(decline, Claim{}, "for=y")))
	if x.Lane == y.Lane {
		t.Error("two fences wait in one lane: one that is full keeps the other waiting")
	}
	for i := range uint64(3) {
		if a, b := s.Arrive("m", worker.Fence{"for=x"}, s.now), s.Arrive("m", worker.Fence{"for=y"}, s.now); a != i || b != i {
			t.Errorf("turns %d and %d; want %d: two that alternate would each meet the same row", a, b, i)
		}
	}
}

// TestASessionOutsideOfItsFence: a session whose worker its key has lost moves, or ends with what the worker holds. A
// fence that fits nobody ends none.
func TestASessionOutsideOfItsFence(t *testing.T) {
	s := newScene(t, "a b")
	s.label("x y")
	k, o := key("k"), opened("o")
	claim := Claim{Key: k, Binds: true}
	s.served(s.fenced(decline, claim, "for=x"))
	s.enter(o, "a", true)
	if s.lives(k) != "a" || s.lives(o) != "a" {
		t.Fatalf("they live at %s and %s", s.lives(k), s.lives(o))
	}
	if _, v := s.choose(s.fenced(decline, claim, "for=z")); v != Fenced || s.lives(k) != "a" {
		t.Errorf("a fence of nobody: %v, it lives at %s", v, s.lives(k))
	}
	if got := s.served(s.fenced(decline, claim, "for=y")); got.First().ID() != "b" || s.lives(k) != "b" {
		t.Errorf("goes to %s, lives at %s; want b", got.First().ID(), s.lives(k))
	}
	if _, v := s.choose(s.fenced(decline, Claim{Opened: o}, "for=y")); v != SessionLost {
		t.Errorf("an opened one: %v", v)
	}
	c := s.chosen(s.fenced(decline, Claim{Stored: [2]session.Name{stored("r")}}, "for=y"))
	if c.First().ID() != "b" {
		t.Errorf("a stored response goes to %s", c.First().ID())
	}
}

// TestOnly: nobody but the named workers gets a request that the strategy keeps to them: not at the end of the order, not
// by the second look, not when the session's worker has failed.
func TestOnly(t *testing.T) {
	s := sceneBy(t, "a b c", worker.Config{MaxInFlight: maxInFlight}, walled(t, wall, true))
	s.label("x x y")
	const forX, forY = 1, 1001
	c := s.chosen(s.ask(forX, Claim{}))
	if got := rest(c, s.now.Add(time.Minute)); got != "a b |" && got != "a b" {
		t.Errorf("tries %s; want a b", got)
	}
	if v := Lacks(c, s.now.Add(time.Minute)); v != NoWorker {
		t.Errorf("it lacks %v", v)
	}
	c = s.chosen(s.ask(forX, Claim{}))
	for range maxInFlight {
		s.begin("b")
	}
	to, _ := c.Next(s.now)
	s.send(c, to)
	if v := Lacks(c, s.now); v != Full {
		t.Errorf("with b full it lacks %v; want to wait for it", v)
	}
	if other := s.chosen(s.ask(forY, Claim{})); Weigh(c).Lane == Weigh(other).Lane {
		t.Error("it waits for b in one lane with those that c can serve: they would wait behind it")
	}

	k := key("k")
	s.Sessions.Bind(k, "c", s.now)
	c = s.chosen(s.ask(forY, Claim{Key: k, Binds: true}))
	if got := rest(c, s.now.Add(time.Minute)); got != "c" && got != "c |" {
		t.Errorf("a bound session of y tries %s; want c", got)
	}
	if _, v := s.choose(s.ask(1+998, Claim{})); v != Rejected && v != Chosen {
		t.Errorf("%v", v)
	}
}

// TestWhoChose: the reason of a worker that the host went on to is never the strategy's.
func TestWhoChose(t *testing.T) {
	s := sceneBy(t, "a b c d", worker.Config{}, walled(t, strings.Replace(wall, "0x0002_0005", "0x0000_0005", 1), false))
	s.label("x x y y")
	c := s.chosen(s.ask(1, Claim{}))
	var got []string
	for range 5 {
		to, ok := c.Next(s.now)
		if !ok {
			break
		}
		trip := s.send(c, to)
		got = append(got, fmt.Sprintf("%s: %s %d", to.Worker.ID(), c.Reason(), trip.notice.Reason))
		trip.End(&judge.Outcome{Kind: judge.Canceled}, End{At: s.now})
	}
	want := []string{"a: wall says 5 5", "b: failover: the strategy's next choice 5",
		"c: failover: chosen by the host 0", "d: failover: chosen by the host 0"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
	s = sceneBy(t, "a", worker.Config{}, walled(t, wall, false))
	s.label("x")
	c = s.chosen(s.ask(1, Claim{}))
	to, _ := c.Next(s.now)
	s.send(c, to).End(&judge.Outcome{Kind: judge.Canceled}, End{At: s.now})
	if to, ok := c.Next(s.now.Add(time.Second)); ok || c.Reason() != "wall says 5" {
		t.Errorf("its only worker has failed: %s, of %v; want the reason why that was chosen", c.Reason(), to.Worker)
	}
	s = sceneBy(t, "a b c d", worker.Config{}, walled(t, wall, false))
	s.label("x x y y")
	a := s.fenced(998, Claim{}, "for=y")
	if c := s.chosen(a); c.Reason() != "fallback: trap" || c.First().ID() > "d" || c.First().ID() < "c" {
		t.Errorf("%s at %s", c.Reason(), c.First().ID())
	}
}

// BenchmarkFence: what the fence costs of a decision, at fleets of two tenants.
func BenchmarkFence(b *testing.B) {
	for _, n := range []int{4, 64, 256} {
		specs := make([]worker.Spec, n)
		for i := range specs {
			specs[i] = worker.Spec{ID: fmt.Sprint("w", i), URL: fmt.Sprint("http://w", i),
				Labels: map[string]string{"for": []string{"x", "y"}[i%2], "all": "x"}}
		}
		p := worker.New(worker.Config{Workers: specs, Watcher: watchtest.Numbers{}}, start)
		for id := range uint64(n) {
			p.Healthy(id+1, start.Add(time.Second))
		}
		rows, ws := make([]abi.Row, 0, n), make([]*worker.Worker, 0, n)
		for name, fence := range map[string]worker.Fence{"none": nil, "all": {"all=x"}, "half": {"for=x"}} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				at := start.Add(time.Minute)
				for b.Loop() {
					rows, ws, _ = p.Snapshot(worker.Query{Fence: fence, At: at}, rows[:0], ws[:0])
				}
			})
		}
	}
}
