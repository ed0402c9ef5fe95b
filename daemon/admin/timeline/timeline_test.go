package timeline

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func everyWorker(string, string) bool { return true }

var noon = time.Unix(1_800_000_000, 0)

// fleet makes workers of words, as "a b:down": a name and a state; "" = up. They are in pool "p", but "q/a" is in "q".
func fleet(words string) (all []Worker) {
	for _, word := range strings.Fields(words) {
		name, state, _ := strings.Cut(word, ":")
		pool, id, other := strings.Cut(name, "/")
		if !other {
			pool, id = "p", name
		}
		w := Worker{Pool: pool, ID: id, State: "up", Up: true, InFlight: 2, Queue: .5, KV: .4, TTFT: .2}
		if state != "" {
			w.State, w.Up = state, false
		}
		all = append(all, w)
	}
	return all
}

// A point has the sums of the workers that were up, and the mean of their KV caches.
func TestLoad(t *testing.T) {
	var l Timeline
	l.Look(fleet("a b c:down q/a"), noon)
	busy := fleet("a b c:down q/a")
	busy[0].KV, busy[0].Queue, busy[3].KV = .8, 2.5, 1
	l.Look(busy, noon.Add(time.Second))
	f := func(want Point, after time.Duration, back int, pools ...string) {
		t.Helper()
		all := l.Load(pools, noon.Add(after))
		want.At = noon.UTC()
		if len(all) != Spans || all[Spans-1-back] != want {
			t.Errorf("%v after %s: %d points, %+v; want %+v", pools, after, len(all), all[Spans-1-back], want)
		}
	}
	f(Point{Up: 2, InFlight: 6, Queue: 2.5, KV: .5}, 0, 0, "p")
	f(Point{Up: 1, InFlight: 2, Queue: .5, KV: .7}, 0, 0, "q")
	f(Point{Up: 3, InFlight: 8, Queue: 3, KV: .567}, 0, 0, "p", "q")
	f(Point{Up: 2, InFlight: 6, Queue: 2.5, KV: .5}, 59*time.Minute+30*time.Second, Spans-1, "p")
	f(Point{Up: -1}, 0, 0, "nobody")
	for _, p := range l.Load([]string{"p"}, noon.Add(time.Hour)) { // the same places in the ring
		if p.Up != -1 {
			t.Errorf("an hour later there is %+v", p)
		}
	}
}

// A worker's curve has no KV use while it is down, and no time to first token before it has given one.
func TestCurves(t *testing.T) {
	var l Timeline
	new := fleet("a b")
	new[0].TTFT = 0
	l.Look(new, noon)
	l.Look(fleet("a:down b"), noon.Add(Step))
	got := l.Curves([]string{"p"}, everyWorker, noon.Add(Step))
	if len(got) != 2 || got[0].Worker != "a" || got[1].Worker != "b" {
		t.Fatalf("%+v", got)
	}
	f := func(what string, values []float64, want ...float64) {
		t.Helper()
		if len(values) != Spans || !slices.Equal(values[Spans-3:], want) {
			t.Errorf("%s: %d values, the last %v; want %v", what, len(values), values[Spans-3:], want)
		}
	}
	f("KV of a", got[0].KV, -1, .4, -1)
	f("queue of a", got[0].Queue, -1, .5, .5)
	f("first token of a", got[0].TTFT, -1, -1, .2)
	f("first token of b", got[1].TTFT, -1, .2, .2)
}

// Marks are made of changes alone. Those of one kind in half a minute are one, which names five workers.
func TestMarks(t *testing.T) {
	f := func(want string, looks ...string) {
		t.Helper()
		var l Timeline
		for i, words := range looks {
			l.Look(fleet(words), noon.Add(time.Duration(i)*time.Second))
		}
		var got []string
		for _, m := range l.Marks([]string{"p"}, noon.Add(time.Minute)) {
			got = append(got, fmt.Sprintf("%s%v%d", m.Kind, m.Workers, m.More))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q: %s; want %s", looks, s, want)
		}
	}
	f("", "a:starting b", "a b", "a b")
	f("down[a]0", "a:starting", "a:down", "a:down")
	f("down[a]0", "a:down")
	f("down[a]0 up[a]0", "a", "a:down", "a")
	f("down[a]0 up[a]0", "a", "a:down", "a", "a:down", "a")
	f("down[a b]0", "a b", "a:down b", "a:down b:down")
	f("silent[a]0 down[a]0", "a", "a:silent", "a:down")
	f("down[a b c d e]2", "a b c d e f g", "a:down b:down c:down d:down e:down f:down g:down")
	f("", "q/a", "q/a:down")
}

// Marks of the process belong to every pool. They end after an hour, and the oldest give way.
func TestMarksAreBounded(t *testing.T) {
	var l Timeline
	l.Mark(Mark{At: noon, Kind: Started})
	l.Look(fleet("q/a"), noon)
	l.Look(fleet("q/a:down"), noon.Add(time.Second))
	f := func(want int, after time.Duration, pools ...string) {
		t.Helper()
		if got := l.Marks(pools, noon.Add(after)); len(got) != want {
			t.Errorf("%v after %s: %+v; want %d", pools, after, got, want)
		}
	}
	f(1, time.Second, "p")
	f(2, time.Second, "p", "q")
	f(1, time.Hour, "p", "q")
	f(0, time.Hour+time.Second, "p", "q")
	for i := range 2 * maxMarks {
		l.Mark(Mark{At: noon, Kind: Reloaded, Text: fmt.Sprint(i)})
	}
	got := l.Marks(nil, noon)
	if len(got) != maxMarks || got[maxMarks-1].Text != fmt.Sprint(2*maxMarks-1) {
		t.Errorf("%d marks, the last %+v", len(got), got[len(got)-1])
	}
}

// However many workers come and go, the memory is bounded. What is old makes room.
func TestTracksAreBounded(t *testing.T) {
	var l Timeline
	for i := range 3 * maxTracks {
		l.Look(fleet(fmt.Sprintf("w%d", i)), noon)
	}
	if n := len(l.tracks); n > maxTracks+1 {
		t.Errorf("%d tracks", n)
	}
	if p := l.Load([]string{"p"}, noon)[Spans-1]; p.Up != 1 {
		t.Errorf("the pool has %+v", p)
	}
	l.Look(fleet("late"), noon.Add(time.Hour))
	if got := l.Curves([]string{"p"}, everyWorker, noon.Add(time.Hour)); len(got) != 1 || got[0].Worker != "late" {
		t.Errorf("an hour later %d workers are left", len(got))
	}
}

func TestLookAndReadAtOnce(t *testing.T) {
	var l Timeline
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for k := range 50 {
				now := noon.Add(time.Duration(k) * time.Second)
				l.Look(fleet(fmt.Sprintf("a b w%d", i)), now)
				l.Mark(Mark{At: now, Kind: Reloaded})
				l.Load([]string{"p"}, now)
				l.Curves([]string{"p"}, everyWorker, now)
				l.Marks([]string{"p"}, now)
			}
		})
	}
	all.Wait()
}
