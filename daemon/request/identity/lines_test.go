package identity

import (
	"testing"
	"time"
)

// chain is the hashes of a prompt, one a letter.
func chain(text string) (hashes []uint64) {
	h := uint64(0)
	for _, c := range text {
		h = (h ^ uint64(c)) * 0x9e3779b97f4a7c15
		hashes = append(hashes, h)
	}
	return hashes
}

// lineages is a book in which keys send prompts and get answers.
type lineages struct {
	*Book
	now int64
}

// begin is a request that gets no answer yet.
func (l *lineages) begin(owner, prompt string) (Key, Mark) {
	hashes := chain(prompt)
	m, k := l.Extends(owner, hashes, l.now)
	return l.Step(&Step{From: m, Of: k, Kind: Kind{Owner: owner}, Hash: hashes[len(hashes)-1], Novel: true,
		At: time.Unix(0, l.now)})
}

func (l *lineages) end(k Key, e Mark, owner, text string) {
	hashes := chain(text)
	l.Ends(k, owner, e, hashes[len(hashes)-1], l.now)
}

func (l *lineages) turn(owner, prompt, answer string) Key {
	k, e := l.begin(owner, prompt)
	l.end(k, e, owner, prompt+answer)
	return k
}

func TestLineages(t *testing.T) {
	l := &lineages{Book: NewBook(), now: 1000}
	if end, _ := l.Extends("a", chain("x"), l.now); end != 0 {
		t.Error("an empty book knows of an end")
	}
	f := func(what string, got, want Key, same bool) {
		t.Helper()
		if (got == want) != same {
			t.Errorf("%s: the same conversation: %v; want %v", what, got == want, same)
		}
	}
	one := l.turn("a", "sys-1", "A")
	f("another key's", l.turn("b", "sys-1A2", "B"), one, false)
	f("the answer is another", l.turn("a", "sys-1B2", "B"), one, false)
	f("the next turn", l.turn("a", "sys-1A2", "B"), one, true)
	f("a branch", l.turn("a", "sys-1A3", "C"), one, false)
	f("the turn behind that", l.turn("a", "sys-1A2B4", "D"), one, true)
	k, e := l.begin("a", "sys-1A2B4D5")
	f("a turn without an answer", k, one, true)
	f("beside it", l.turn("a", "sys-1A2B4D6", "E"), one, false)
	f("with a part of the answer", l.turn("a", "sys-1A2B4D5E7", "F"), one, true)
	l.end(k, e, "a", "sys-1A2B4D5EE")
	f("what goes on from an answer that came too late", l.turn("a", "sys-1A2B4D5EE8", "F"), one, false)
	f("what goes on", l.turn("a", "sys-1A2B4D5E7F8", "G"), one, true)
	samples := [3]Key{}
	ends := [3]Mark{}
	for i := range samples {
		samples[i], ends[i] = l.begin("a", "q")
	}
	for i, answer := range []string{"qA", "qB", "qA"} {
		l.end(samples[i], ends[i], "a", answer)
	}
	f("two samples of a prompt", samples[0], samples[1], false)
	f("what extends one sample", l.turn("a", "qB1", "C"), samples[1], true)
	f("what extends two", l.turn("a", "qA1", "C"), samples[0], false)
	f("nor the other", l.turn("a", "qA2", "C"), samples[2], false)
	short := l.turn("a", "t", "")
	f("another short one in the same block", l.turn("a", "t", ""), short, false)
	short = l.turn("a", "u", "")
	f("what extends a short answer", l.turn("a", "u1", "A"), short, true)
	old := l.turn("a", "r", "A")
	l.now += kept
	f("an hour later", l.turn("a", "rA2", "B"), old, false)
}

// TestLinesAreBounded: the newest ends are kept, and few that are not the oldest are lost for others.
func TestLinesAreBounded(t *testing.T) {
	l := &lineages{Book: NewBook(), now: 1000}
	all := map[uint64]Key{}
	for i := range uint64(20 * ways * sets) {
		l.now++
		h := i * 0x9e3779b97f4a7c15
		k, _ := l.Step(&Step{Kind: Kind{Owner: "a"}, Hash: h, Novel: true, At: time.Unix(0, l.now)})
		if i >= 19*ways*sets+ways*sets/2 {
			all[h] = k
		}
	}
	lost := 0
	for h, k := range all {
		if _, got := l.Extends("a", []uint64{h, 1}, l.now); got != k {
			lost++
		}
	}
	if lost > len(all)/5 {
		t.Errorf("%d of the %d newest ends are lost", lost, len(all))
	}
}

// BenchmarkExtends looks for the conversation of a long prompt that extends none, in a full table.
func BenchmarkExtends(b *testing.B) {
	l := &lineages{Book: NewBook(), now: 1000}
	for i := range uint64(ways * sets) {
		l.Step(&Step{Kind: Kind{Owner: "a"}, Hash: i * 0x9e3779b97f4a7c15, Novel: true, At: time.Unix(0, l.now)})
	}
	hashes := make([]uint64, 4*maxAdded)
	for i := range hashes {
		hashes[i] = uint64(i+1) * 0xff51afd7ed558ccd
	}
	b.ReportAllocs()
	for b.Loop() {
		l.Extends("a", hashes, l.now)
	}
}
