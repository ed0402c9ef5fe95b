package route

import (
	"fmt"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/sdk/abi"
)

// footprint is all that a request may change.
type footprint struct {
	writes, blocks int
	counts         session.Counts
	lives          map[string]string
	workers        []worker.Stats
	turn           uint64
	retries        uint64
	perByte        float64
}

func (s *scene) footprint(names ...session.Name) any {
	at := s.now
	x := &footprint{writes: s.store.writes, blocks: s.Index.Stats().Blocks, counts: s.Sessions.Counts(),
		lives:   map[string]string{},
		workers: s.Workers.Stats(at), turn: s.Turn("m", nil), retries: s.Workers.Counts().RetriesRefused,
		perByte: s.TokensPerByte()}
	for _, n := range names {
		x.lives[n.ID] = s.lives(n)
	}
	return x
}

// A dry run chooses as the request itself would, again and again, and changes nothing.
func TestADryRunChangesNothing(t *testing.T) {
	s := newScene(t, "a b:busy c d:down e:slow f:ejected")
	sent := text("system ", 10)
	s.served(s.asking(completion(first+1, sent), Claim{}))
	s.enter(key("here"), "c", false)
	s.enter(key("fallen"), "d", false)
	s.enter(opened("o"), "c", true)
	s.enter(opened("lost"), "d", true)
	names := []session.Name{key("here"), key("fallen"), key("new"), opened("o"), opened("lost")}
	asks := []Ask{
		s.asking(completion(decline, sent+"more"), Claim{}),
		s.asking(completion(bindTo, sent), Claim{Key: key("new"), Binds: true}),
		s.asking(completion(decline, "x", "y"), Claim{Key: key("here")}),
		s.asking(completion(decline, sent), Claim{Key: key("fallen")}),
		s.asking(completion(decline, sent), Claim{Opened: opened("o")}),
		s.asking(completion(decline, sent), Claim{Opened: opened("o"), Closing: true}),
		s.asking(completion(decline, sent), Claim{Opened: opened("lost")}),
		s.asking(completion(reject, sent), Claim{}),
	}
	s.chosen(asks[0]) // slow starts and back-offs are brought up to now
	before := s.footprint(names...)
	for i := range asks {
		a := &asks[i]
		a.Turn = s.Turn("m", nil)
		c, v := s.choose(*a)
		record := explained(c, v)
		for range 50 {
			again, w := s.choose(*a)
			if got := explained(again, w); w != v || !reflect.DeepEqual(got, record) {
				t.Fatalf("ask %d: %v, %+v; then %v, %+v", i, v, record, w, got)
			}
			again.Release()
		}
		c.Release()
		if now := s.footprint(names...); !reflect.DeepEqual(now, before) {
			t.Fatalf("ask %d changes the pool: %+v; was %+v", i, now, before)
		}
	}
	if got := s.Arrive("m", nil, s.now); got != asks[0].Turn || s.Turn("m", nil) != got+1 || s.Turn("n", nil) != 0 {
		t.Errorf("turn %d, then %d; dry runs had %d", got, s.Turn("m", nil), asks[0].Turn)
	}
}

// explained is a decision's record without the times of the call.
func explained(c *Choice, v Verdict) record.Record {
	var r record.Record
	if v == Chosen || v == Rejected {
		c.Explain(&r)
	}
	r.PickTime, r.Fuel = 0, 0
	if len(r.Frame) > 0 {
		clear(r.Frame[unsafe.Offsetof(abi.Header{}.Random):][:8]) // fresh for each pick
		for at := abi.HeaderSize; at < len(r.Frame); at += abi.RowSize {
			clear(r.Frame[at+int(unsafe.Offsetof(abi.Row{}.ReuseGPU)):][:4]) // the index has a clock
		}
	}
	return r
}

// A dry run earns no retries, and does not spend any.
func TestADryRunEarnsNoRetries(t *testing.T) {
	spent := func(dry bool) (n int) {
		s := sceneOf(t, "a b", worker.Config{RetryBudget: 0.5})
		for s.Workers.MayRetry(s.now) {
			n++
		}
		for range 100 {
			if !dry {
				s.Arrive("m", nil, s.now)
			}
			s.chosen(s.ask(decline, Claim{}))
		}
		for n = 0; s.Workers.MayRetry(s.now); n++ {
		}
		return n
	}
	if dry, counted := spent(true), spent(false); dry != 0 || counted != 45 {
		t.Errorf("%d repeats after dry runs, %d after requests; want 0 and 45", dry, counted)
	}
}

// A use prolongs a session, a look does not: Bind writes, Choose does not.
func TestBindIsTheUse(t *testing.T) {
	s := newScene(t, "a b")
	s.enter(key("s"), "a", false)
	before, used := s.store.writes, s.Sessions.Counts().Used[session.Key]
	c := s.chosen(s.ask(decline, Claim{Key: key("s")}))
	if s.store.writes != before {
		t.Errorf("Choose wrote %d times", s.store.writes-before)
	}
	c.Bind()
	if s.store.writes != before+1 || s.Sessions.Counts().Used[session.Key] != used+1 {
		t.Errorf("Bind wrote %d times", s.store.writes-before)
	}
}

// A session is used by a request that goes elsewhere, too: alone, as its worker lacks the model, or with the session.
func TestAUseElsewhereIsAUse(t *testing.T) {
	for _, fate := range []string{"lacks", "down"} {
		s := newScene(t, "a b:lists")
		s.enter(key("s"), "a", false)
		s.become("a", fate)
		used := s.Sessions.Counts().Used[session.Key]
		c := s.chosen(s.ask(decline, Claim{Key: key("s")}))
		if v := c.Bind(); v != Chosen || c.First().ID() != "b" || s.Sessions.Counts().Used[session.Key] != used+1 {
			t.Errorf("%s: %v, at %s, %d uses; want 1", fate, v, c.First().ID(), s.Sessions.Counts().Used[session.Key]-used)
		}
	}
}

// A request that is refused before the strategy is asked gives its turn back, and a name that was made up its room.
func TestATurnIsGivenBack(t *testing.T) {
	s := newScene(t, "a")
	for i := range 2 * maxModels {
		name := fmt.Sprint("made up ", i)
		s.Arrive(name, nil, s.now)
		s.GiveBack(name, nil)
	}
	s.GiveBack("nobody's", nil)
	for i := range uint64(3) {
		if m, n := s.Arrive("m", nil, s.now), s.Arrive("n", nil, s.now); m != i || n != i {
			t.Fatalf("turns %d and %d; want %d of both", m, n, i)
		}
		s.Arrive("m", nil, s.now)
		s.GiveBack("m", nil)
	}
}

// Choose and all up to the end of the trip allocate nothing. It must not grow: a plain request is nine allocations in
// all.
func TestAPlainRequestAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools of memory")
	}
	s := newScene(t, "a b c d e f g h")
	for _, name := range s.names {
		s.Workers.Scraped(s.watched[name], worker.Page{Metrics: worker.Metrics{Block: 16}}, s.now)
	}
	r := completion(first+2, text("system ", 50))
	s.served(s.asking(r, Claim{}))
	var c struct {
		Choice
		trip Trip
	}
	got := testing.AllocsPerRun(200, func() {
		c.Choice = Choice{}
		a := s.asking(r, Claim{})
		a.Turn = s.Arrive("m", nil, s.now)
		if s.Choose(&c.Choice, &a) != Chosen || c.Bind() != Chosen {
			t.Fatal("not chosen")
		}
		to, _ := c.Next(s.now)
		if !c.Send(&c.trip, to, nil, s.now) {
			t.Fatal("not sent")
		}
		c.trip.FirstByte(s.now)
		c.Answered(to.Worker, true)
		o := judge.Outcome{Kind: judge.Answered}
		c.trip.End(&o, End{Whole: true, Status: 200, At: s.now})
		c.Release()
	})
	if got > 0 {
		t.Errorf("%v allocations; want none", got)
	}
}

// BenchmarkChoose is a decision over a prompt of 50 blocks, without the strategy's own work.
func BenchmarkChoose(b *testing.B) {
	s := newScene(b, "a b c d e f g h i j k l m n o p")
	r := completion(first+2, text("system ", 50))
	s.served(s.asking(r, Claim{}))
	var c Choice
	b.ReportAllocs()
	for b.Loop() {
		c = Choice{}
		a := s.asking(r, Claim{})
		if s.Choose(&c, &a) != Chosen {
			b.Fatal("not chosen")
		}
		c.Release()
	}
}

// Turns are of models, and requests past the first thousand names share one.
func TestTurnsOfAPool(t *testing.T) {
	s := newScene(t, "a")
	for i := range uint64(3) {
		if got := s.Arrive("m", nil, start.Add(time.Second)); got != i {
			t.Errorf("turn %d; want %d", got, i)
		}
	}
	if s.Turn("m", nil) != 3 || s.Turn("other", nil) != 0 {
		t.Errorf("%d, %d", s.Turn("m", nil), s.Turn("other", nil))
	}
}
