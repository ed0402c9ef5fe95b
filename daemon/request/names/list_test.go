package names

import (
	"fmt"
	"math"
	"sync"
	"testing"
)

// split makes an alias of two models.
func split(a, b float64) *Alias {
	return &Alias{Name: "x", Targets: []Target{{Model: "a", Weight: a}, {Model: "b", Weight: b}}}
}

// TestWeights: of 10,000 sessions each model gets its part within one in a hundred, and other weights move no session
// that need not move.
func TestWeights(t *testing.T) {
	const sessions = 10000
	for _, share := range []float64{.01, .1, .5, .9} {
		before, after, moved := split(1-share, share), split(1-share/2, share/2), 0
		n := 0
		for i := range sessions {
			key := Key("session", fmt.Sprint(i))
			was, is := before.Choose(key), after.Choose(key)
			if was == "b" {
				n++
			}
			if was == "a" && is == "b" {
				moved++
			}
		}
		if got := float64(n) / sessions; math.Abs(got-share) > .01 || moved > 0 {
			t.Errorf("b has %v in place of %v, and %d sessions moved to it when it lost weight", got, share, moved)
		}
	}
}

// TestBookKeepsSessions: other weights change no session that runs, and a model that is no target any more is left.
func TestBookKeepsSessions(t *testing.T) {
	var b Book
	var wait sync.WaitGroup
	first := make([]string, 1000)
	for g := range 4 {
		wait.Go(func() {
			for i := g; i < len(first); i += 4 {
				first[i] = b.Model(split(1, 1), Key(fmt.Sprint(i)))
			}
		})
	}
	wait.Wait()
	others := &Alias{Name: "x", Targets: []Target{{Model: "c", Weight: 1}, {Model: "b", Weight: 1e-3}}}
	for i, was := range first {
		if is := b.Model(split(1e-3, 1e3), Key(fmt.Sprint(i))); is != was {
			t.Fatalf("session %d was moved from %s to %s", i, was, is)
		}
		is := b.Model(others, Key(fmt.Sprint(i)))
		if was == "b" && is != "b" || is == "a" {
			t.Fatalf("session %d of %s goes to %s", i, was, is)
		}
	}
	b.Keep(others, 5, "b")
	if is := b.Model(others, 5); is != "b" {
		t.Errorf("a session that is kept goes to %s", is)
	}
}

func TestList(t *testing.T) {
	var none *List
	if New(nil) != nil || none.Find("a") != nil || none.Hides("a") || none.All() != nil {
		t.Error("a list without names has some")
	}
	l := New([]Alias{*split(1, 1), {Name: "h", Hidden: true}})
	if l.Find("x") == nil || l.Find("h") != nil || l.Find("a") != nil || l.Hides("x") || !l.Hides("h") {
		t.Error("a name is taken for another")
	}
}
