package host

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/sdk/abi"
)

// learner is a guest that learns.
var learner = sync.OnceValues(func() ([]byte, error) { return buildGuest("./testdata/guests/learner") })

func learns(t testing.TB, h *Host, values map[string]string, allow ...string) *Strategy {
	t.Helper()
	wasm, err := learner()
	if err != nil {
		t.Fatal(err)
	}
	return load(t, h, wasm, Options{Values: values, Allow: allow, PickTime: time.Second})
}

// keyed is frame with workers of keys 1, 2, 3 and so on.
func keyed(n, fewest int) *Frame {
	f := frame(n, fewest)
	for i := range f.Rows {
		f.Rows[i].Key = uint64(i) + 1
	}
	return f
}

// owns returns the numbers that o writes into the rows of these workers: a slot and a key each.
func owns(o *Own, workers ...[2]uint64) (got []float64) {
	rows := make([]abi.Row, len(workers))
	for i, w := range workers {
		rows[i] = abi.Row{Worker: uint32(w[0]), Key: w[1], Own: 99}
	}
	o.fill(rows)
	for i := range rows {
		got = append(got, rows[i].Own)
	}
	return got
}

// The number of a worker: what may be set, where it is read, and when it is forgotten.
func TestOwn(t *testing.T) {
	o := new(Own)
	f := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
	a, b, c := [2]uint64{0, 11}, [2]uint64{1, 22}, [2]uint64{5, 33}
	f("of nobody", o.set(11, 1), abi.ErrNotFound)
	f("at first", owns(o, a, b, c), []float64{0, 0, 0})
	f("set", []int32{o.set(11, 1.5), o.set(22, -1), o.set(33, 1e300)}, []int32{0, 0, 0})
	f("NaN", o.set(11, math.NaN()), abi.ErrInvalid)
	f("infinity", []int32{o.set(11, math.Inf(1)), o.set(11, math.Inf(-1))}, []int32{abi.ErrInvalid, abi.ErrInvalid})
	f("read", owns(o, c, a, b), []float64{1e300, 1.5, -1})
	f("of", []float64{o.of(33), o.of(44)}, []float64{1e300, 0})
	f("a worker without a key", owns(o, [2]uint64{0, 0}), []float64{0})
	f("a slot beyond all", owns(o, [2]uint64{maxOwn, 55}), []float64{0})
	f("set there", o.set(55, 1), abi.ErrNotFound)
	f("in another slot", owns(o, [2]uint64{7, 33}, [2]uint64{5, 44}), []float64{1e300, 0})
	f("and back", owns(o, c), []float64{1e300})
	f("another in its slot", owns(o, [2]uint64{0, 66}), []float64{0})
	f("who had it", o.set(11, 1), abi.ErrNotFound)

	apart := o.Copy()
	apart.set(22, 7)
	f("the copy", []float64{apart.of(22), o.of(22)}, []float64{7, -1})
	o.Keep(map[uint64]bool{22: true})
	f("who left", o.set(33, 1), abi.ErrNotFound)
	f("who stayed", owns(o, b, c), []float64{-1, 0})
	f("cells", []int{len(o.cells), len(o.slots)}, []int{8, 2})
}

// What one instance learns in a callback, all read in their rows: of an answer, and of a tick, which reaches one alone.
func TestWhatOneInstanceLearnsReachesAll(t *testing.T) {
	s := learns(t, newHost(t, Config{Slots: 3}), map[string]string{"explore": "0", "watched": "3"})
	s.instances.wanted.Store(3)
	s.wake.ring()
	waittest.Until(t, "three instances", func() bool { return s.Stats().Instances == 3 })
	fr := keyed(3, 0)
	fr.Rows[0].InFlight = 5
	s.Pick(fr)
	for i, ttft := range []float32{.2, .1, .9} {
		s.Notices().FirstToken(&abi.Outcome{Key: uint64(i) + 1, TTFT: ttft})
	}
	s.Notices().FirstToken(&abi.Outcome{Key: 1, TTFT: .1})
	s.Notices().FirstToken(&abi.Outcome{Key: 99, TTFT: 1}) // of a worker that has left
	waittest.Until(t, "five outcomes", func() bool { return s.Stats().Delivered["wp_on_first_token"] == 5 && !s.Notices().due() })
	waittest.Until(t, "the numbers", func() bool { return s.Own().of(3) != 0 })
	asked := map[*instance]bool{}
	for range 3 { // each of them, as the ones before are held
		sl, _ := s.instances.take(s.program)
		if sl == nil {
			t.Fatal("no instance is idle")
		}
		defer s.give(sl)
		asked[sl.in] = true
		s.Own().fill(fr.Rows)
		if r, why, err := sl.in.run(fr, false); why != ok || r.Row != 1 {
			t.Errorf("%+v (%v); want the worker that answers in .1 s", r, err)
		}
	}
	if len(asked) != 3 {
		t.Errorf("%d instances were asked", len(asked))
	}
	if got, want := fmt.Sprintf("%.3f", []float64{fr.Rows[0].Own, fr.Rows[1].Own, fr.Rows[2].Own}), "[0.190 0.100 0.900]"; got != want {
		t.Errorf("numbers %s; want %s", got, want)
	}
}

func TestATickReachesAll(t *testing.T) {
	s := learns(t, newHost(t, Config{}), map[string]string{"explore": "0", "watched": "2"})
	fr := keyed(3, 0)
	s.Pick(fr)
	s.Notices().Tick(time.Unix(0, 12345))
	waittest.Until(t, "the number of the tick", func() bool {
		s.Pick(fr)
		return fr.Rows[1].Own == 12345
	})
	if got := s.Stats().Delivered["wp_tick"]; got != 1 {
		t.Errorf("%d ticks", got)
	}
}

// Only a module that asks for numbers gets them, and a frame that was recorded keeps its own.
func TestWhoHasNumbers(t *testing.T) {
	h := newHost(t, Config{})
	without := load(t, h, wat(t, "tiny"), Options{})
	fr := keyed(2, 0)
	fr.Rows[0].Own = 7
	if r := without.Pick(fr); r.Fallback != "" || fr.Rows[0].Own != 7 || without.Own() != nil {
		t.Errorf("%+v, %v", r, fr.Rows[0].Own)
	}
	without.Share(new(Own))
	if without.Own() != nil {
		t.Error("a module without numbers got some")
	}
	s := learns(t, h, map[string]string{"explore": "0"})
	fr.OwnGiven = true
	fr.Rows[1].Own = .5
	if r := s.Pick(fr); r.Row != 1 {
		t.Errorf("%+v; want row 1 by its recorded number", r)
	}
	fr.OwnGiven = false
	if r := s.Pick(fr); r.Row != 0 || fr.Rows[0].Own != 0 {
		t.Errorf("%+v", r)
	}
	other := new(Own)
	owns(other, [2]uint64{0, 1}, [2]uint64{1, 2})
	other.set(1, 3)
	s.Share(other)
	if r := s.Pick(fr); r.Row != 1 || fr.Rows[0].Own != 3 {
		t.Errorf("%+v, %v; want row 1, as row 0 has the number of the table that is shared", r, fr.Rows[0].Own)
	}
}

// Many goroutines at the numbers of a strategy: for the race detector.
func TestOwnUnderLoad(t *testing.T) {
	s := learns(t, newHost(t, Config{}), nil)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			fr := keyed(20, g)
			for i := range 200 {
				s.Pick(fr)
				s.Own().set(uint64(i%20)+1, float64(i))
				s.Notices().FirstToken(&abi.Outcome{Key: uint64(i%20) + 1, TTFT: 1})
				if i%50 == 0 {
					s.Own().Keep(map[uint64]bool{1: true, 2: true})
				}
			}
		})
	}
	all.Wait()
}

// BenchmarkLearning is the bandit of the SDK's examples.
func BenchmarkLearning(b *testing.B) {
	s := learns(b, newHost(b, Config{}), nil)
	for _, n := range []int{16, 256} {
		b.Run(fmt.Sprintf("workers=%d", n), func(b *testing.B) {
			fr := keyed(n, n/2)
			s.Pick(fr)
			for i := range fr.Rows {
				s.Own().set(fr.Rows[i].Key, float64(1+i%5))
			}
			b.ReportAllocs()
			var fuel int64
			for b.Loop() {
				fr.Header.Random = 0
				fuel = max(fuel, s.Pick(fr).Fuel)
			}
			b.ReportMetric(float64(fuel), "fuel/op")
		})
	}
}
