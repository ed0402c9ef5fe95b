package route

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/sdk/abi"
)

// kept takes a sketch in memory that another one was taken in.
func kept(t *testing.T, c *Choice) (s Sketch) {
	t.Helper()
	s.Take(c)
	s.Clear()
	if s.Known() {
		t.Error("a cleared sketch is known")
	}
	s.Take(c)
	return s
}

// A sketch explains what Record.Explain does, also when it was used before and when the workers have changed since.
func TestASketchTellsWhatExplainTells(t *testing.T) {
	var s Sketch
	f := func(fleet string, say int, claim Claim) {
		t.Helper()
		sc := newScene(t, fleet)
		sc.enter(opened("s"), "a", true)
		sc.served(sc.asking(completion(first, text("system ", 10)), Claim{}))
		c := sc.chosen(sc.asking(completion(say, text("system ", 10)+text("more", 3)), claim))
		var want, got record.Record
		c.Explain(&want)
		s = kept(t, c)
		sc.become("a", "down")
		c.Release()
		sc.chosen(sc.asking(completion(first, text("other", 4)), Claim{})).Note(&got) // its memory is in use again
		got = want
		got.Candidates, got.Frame, got.More = nil, nil, 0
		s.Explain(&got)
		if id, held := s.First(); id != want.Candidates[0].Worker || held != want.Candidates[0].GPU {
			t.Errorf("%q: the first is %q, which holds %d", fleet, id, held)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\n%+v\nwant\n%+v", fleet, got, want)
		}
		if !s.Known() {
			t.Errorf("%q: it is not known", fleet)
		}
	}
	f("a b c", first+1, Claim{})
	f("a b:down c:starting d:ejected e:leaving f:draining g:lacks h:full i:slow j k l m", first, Claim{})
	f("a b:busy c:down", first, Claim{Opened: opened("s")})
	f("a b", decline, Claim{})
}

// Of a large fleet a sketch keeps the best, and the scale of all.
func TestASketchOfManyWorkers(t *testing.T) {
	var words strings.Builder
	for i := range 70 {
		fmt.Fprintf(&words, "w%d ", i)
	}
	sc := newScene(t, words.String()+"w70:busy down:down")
	c := sc.chosen(sc.ask(first+66, Claim{}))
	s := kept(t, c)
	var want, got record.Record
	c.Explain(&want)
	s.Explain(&got)
	if len(got.Candidates) != 64 || got.More != 7 || got.Candidates[0].Worker != "w66" {
		t.Errorf("%d candidates, %d more, first %+v", len(got.Candidates), got.More, got.Candidates[0])
	}
	if !reflect.DeepEqual(got.Candidates, want.Candidates) {
		t.Errorf("%+v\nwant\n%+v", got.Candidates, want.Candidates)
	}
	if len(got.Frame) != abi.HeaderSize+64*abi.RowSize {
		t.Errorf("a frame of %d bytes", len(got.Frame))
	}
}

// JSON has no infinity.
func TestASketchInJSON(t *testing.T) {
	sc := newScene(t, "a b")
	c := sc.chosen(sc.ask(first, Claim{}))
	c.fleet.frame.Rows[0].Slow = 1e308
	c.fleet.frame.Header.C1 = 1e30
	var s Sketch
	s.Take(c)
	var r record.Record
	s.Explain(&r)
	if _, err := json.Marshal(&r); err != nil {
		t.Error(err)
	}
}

func TestTakeAllocatesNothing(t *testing.T) {
	sc := newScene(t, "a b c")
	c := sc.chosen(sc.ask(first, Claim{}))
	var s Sketch
	take := func() { s.Take(c) }
	take()
	if got := testing.AllocsPerRun(100, take); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkSketch(b *testing.B) {
	for _, n := range []int{4, 16, 64} {
		for _, down := range []string{"", " down:down"} {
			var words strings.Builder
			for i := range n {
				fmt.Fprintf(&words, "w%d ", i)
			}
			sc := newScene(b, words.String()+down)
			c := sc.chosen(sc.ask(first, Claim{}))
			b.Run(fmt.Sprintf("take/%d%s", n, down), func(b *testing.B) {
				b.ReportAllocs()
				var s Sketch
				for b.Loop() {
					s.Take(c)
				}
				b.ReportMetric(float64(int(unsafe.Sizeof(s))+s.Size()), "bytes")
			})
			b.Run(fmt.Sprintf("explain/%d%s", n, down), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					var r record.Record
					c.Explain(&r)
				}
			})
		}
	}
}
