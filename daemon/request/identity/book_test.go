package identity

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"
)

var codex = Kind{Owner: "team-a", By: "Thread-Id"}

func TestTurns(t *testing.T) {
	b, at := NewBook(), time.Unix(1000, 0)
	k := b.Of("team-a", "s")
	f := func(k Key, of Kind, want Talk, wantMore float64) {
		t.Helper()
		if got, more := b.Look(k, of); got != want || math.Abs(more-wantMore) > 1e-9 {
			t.Errorf("%+v, %v more; want %+v, %v more", got, more, want, wantMore)
		}
	}
	const unseen, seen = 15, (3*16+2)/(3+1.) - 1
	f(k, codex, Talk{}, unseen)
	b.Answered(k, 7) // it has no turn
	f(k, codex, Talk{}, unseen)
	b.Turn(k, codex, 5, at)
	b.Answered(k, 100)
	b.Turn(k, codex, 6, at.Add(time.Minute))
	b.Answered(k, 200)
	f(k, codex, Talk{Turns: 2, Last: at.Add(time.Minute), Worker: 6, Output: 130}, seen)
	f(k, Kind{Owner: "team-b", By: "Thread-Id"}, Talk{Turns: 2, Last: at.Add(time.Minute), Worker: 6, Output: 130}, unseen)
	for _, other := range []Key{b.Of("team-b", "s"), b.Of("team-a", "s2"), b.Of("team-as", ""), b.Of("", "team-as")} {
		if got, _ := b.Look(other, codex); got != (Talk{}) {
			t.Errorf("another conversation: %+v", got)
		}
	}
	b.Turn(b.Of("team-a", ""), codex, 1, at)
	f(Key{}, codex, Talk{}, 0)
	b.Forget(k)
	b.Answered(k, 9)
	f(k, codex, Talk{}, seen)
}

// TestGap: the gap of a kind is that between the turns of one conversation. A night is none.
func TestGap(t *testing.T) {
	b, at := NewBook(), time.Unix(1000, 0)
	for i := range 3 {
		b.Turn(b.Of("a", fmt.Sprint(i)), codex, 1, at.Add(time.Duration(i)*time.Second))
		b.Turn(b.Of("a", fmt.Sprint(i)), codex, 1, at.Add(time.Duration(5+2*i)*time.Second))
	}
	b.Turn(b.Of("a", "0"), codex, 1, at.Add(8*time.Hour))
	if got := b.Gap(codex); got != 6 {
		t.Errorf("a gap of %v s; want 6", got)
	}
	if got := b.Gap(Kind{Owner: "b"}); got != 0 {
		t.Errorf("a gap of %v s of a kind that nobody has seen", got)
	}
}

// TestHabits: how long the conversations of a kind are follows those of late.
func TestHabits(t *testing.T) {
	b, at := NewBook(), time.Unix(1000, 0)
	for i := range 20 * fresh {
		turns := 40
		if i >= 10*fresh {
			turns = 10
		}
		for range turns {
			b.Turn(b.Of("a", fmt.Sprint(i)), codex, 1, at)
		}
		if i == 10*fresh-1 || i == 20*fresh-1 {
			if _, more := b.Look(b.Of("a", "new"), codex); more < float64(turns)-1.3 || more > float64(turns)-.5 {
				t.Errorf("after %d conversations %v more turns are expected; want %d", i, more, turns-1)
			}
		}
	}
}

// TestABookIsBounded: clients that make up names take no more memory, and a conversation that goes on is kept.
func TestABookIsBounded(t *testing.T) {
	b, at := NewBook(), time.Unix(1000, 0)
	mine := b.Of("a", "mine")
	for i := range 4 * maxTalks {
		if i%1000 == 0 {
			b.Turn(mine, codex, 1, at)
		}
		b.Turn(b.Of("b", fmt.Sprint(i)), Kind{By: fmt.Sprint(i)}, 1, at)
	}
	if n := b.talks.Len(); n > 2*maxTalks || len(b.kinds) > maxKinds {
		t.Errorf("%d conversations and %d kinds are kept", n, len(b.kinds))
	}
	if got, _ := b.Look(mine, codex); got.Turns != 4*maxTalks/1000+1 {
		t.Errorf("the one that went on has %d turns", got.Turns)
	}
}

func TestABookIsShared(t *testing.T) {
	b := NewBook()
	k := b.Of("a", "s")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				b.Turn(k, codex, 1, time.Unix(1, 0))
				b.Answered(k, 1)
				b.Look(k, codex)
			}
		})
	}
	all.Wait()
	if got, _ := b.Look(k, codex); got.Turns != 4000 {
		t.Errorf("%d turns; want 4000", got.Turns)
	}
}
