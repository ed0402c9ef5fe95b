package relocate

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// talks has conversations of some tokens answered by workers, one a letter of workers.
func (b *Book) talks(tokens int, workers string) {
	for id, w := range workers {
		body := []byte(`{"prompt":"` + strings.Repeat("x", 4*tokens) + `"}`)
		b.Answered(&Turn{Worker: string(w), Hashes: grow(id+1, 1), Tokens: tokens, Request: &Request{Body: body}}, at)
	}
}

// steps plays a plan in which each piece takes the time of its new tokens at 1000 a second, and returns what was sent
// when, until the plan has no more or ends.
func steps(p *Plan, until time.Duration, ok func(m *Move) string) (sent []*Move) {
	for now := at; now.Sub(at) < until; {
		m, wait := p.Next(now)
		switch {
		case m != nil:
			took := time.Duration(m.Tokens-m.done) * time.Millisecond
			p.Moved(m, ok(m), m.done, now, now.Add(took))
			sent = append(sent, m)
		case wait == 0:
			return sent
		default:
			now = now.Add(wait)
		}
	}
	return sent
}

func up(workers ...string) func(time.Time) []string {
	return func(time.Time) []string { return workers }
}

func there(m *Move) string { return m.To }

// TestPieces: a conversation moves to the worker with the fewest, in pieces that follow its pace, each with those
// before.
func TestPieces(t *testing.T) {
	b := newBook(1 << 20)
	b.talks(5000, "abbcc")
	b.Takers = up("b", "c")
	p := b.Plan("a", at, at.Add(time.Hour))
	sent := steps(p, time.Minute, there)
	for i, m := range sent {
		if m.To != "b" || i > 0 && m.Tokens <= sent[i-1].Tokens || m.Whole != (i == len(sent)-1) {
			t.Errorf("piece %d has %d tokens for %s, all %t", i, m.Tokens, m.To, m.Whole)
		}
	}
	if n := len(sent); n < 6 || sent[n-1].Tokens != 5000 || sent[n-2].Tokens-sent[n-3].Tokens > 600 {
		t.Fatalf("%d pieces; want some of a quarter of a second", n)
	}
	if said := p.End(); said != (Progress{Moved: 1, Tokens: 5000}) || b.Counts().TokensMoved != 5000 {
		t.Errorf("%+v, %+v", said, b.Counts())
	}
}

// TestPiecesForAWorkerThatComes: a worker without conversations gets pieces twice as long, if it has come four times as
// long, and twice as long again where it had the last one cached.
func TestPiecesForAWorkerThatComes(t *testing.T) {
	b := newBook(1 << 20)
	b.talks(30_000, "aa")
	b.Takers = up("a", "new")
	p, now, before := b.Join("new", at), at, 0
	for i, want := range []int{startPace, 2 * startPace, 2 * startPace, startPace} {
		m, _ := p.Next(now)
		if m == nil || m.Tokens-before != want {
			t.Fatalf("piece %d: %+v; want %d tokens more than %d", i, m, want, before)
		}
		cached, ends := min(m.Tokens, 3*startPace), now.Add(time.Millisecond)
		if n := m.Tokens - max(m.done, cached); n > 0 {
			ends = now.Add(time.Duration(n) * time.Second / startPace)
		}
		p.Moved(m, "new", cached, now, ends)
		before, now = m.Tokens, ends.Add(5*time.Second)
	}
	p.End()
	b.Takers = up("b")
	if m, _ := b.Plan("a", at, at.Add(time.Hour)).Next(at); m.Tokens != startPace/2 {
		t.Errorf("a piece from a worker that leaves has %d tokens", m.Tokens)
	}
}

// TestCalm: a piece waits while a client waits for its first byte at the worker, and for a second at most.
func TestCalm(t *testing.T) {
	b := newBook(1 << 20)
	b.talks(5000, "a")
	b.Takers = up("b")
	waits := true
	b.Prefills = func(worker string) bool { return waits && worker == "b" }
	p := b.Plan("a", at, at.Add(time.Hour))
	next := func(after time.Duration) *Move {
		m, _ := p.Next(at.Add(after))
		return m
	}
	m := next(0)
	if late := next(900 * time.Millisecond); m != nil || late != nil {
		t.Fatalf("sent while a client waits: %+v, %+v", m, late)
	}
	if m = next(time.Second); m == nil {
		t.Fatal("the worker is never calm, and gets nothing")
	}
	p.Moved(m, "b", 0, at.Add(time.Second), at.Add(1100*time.Millisecond))
	if next(1500*time.Millisecond) != nil {
		t.Error("the second piece does not wait")
	}
	waits = false
	if next(1500*time.Millisecond) == nil {
		t.Error("a piece waits although no client does")
	}
}

// TestEvenly: a worker that has come lately gets all until it has as many as the others.
func TestEvenly(t *testing.T) {
	b := newBook(8 << 20)
	b.talks(1000, "aaaaaabbbbbbcccccc")
	b.Takers = up("b", "c", "new")
	p := b.Plan("a", at, at.Add(time.Hour))
	for _, m := range steps(p, 5*time.Second, there) {
		if m.To != "new" {
			t.Errorf("one moves to %s", m.To)
		}
	}
	if said := p.End(); said.Moved < 4 {
		t.Errorf("%+v", said)
	}
}

// TestNoPieces: a worker refuses the first piece, as no prompt of its template may end there, and gets the whole.
func TestNoPieces(t *testing.T) {
	b := newBook(1 << 20)
	b.talks(5000, "a")
	b.Takers = up("b")
	p := b.Plan("a", at, at.Add(time.Hour))
	sent := steps(p, time.Minute, func(m *Move) string {
		if m.Whole {
			return "b"
		}
		return ""
	})
	if said := p.End(); len(sent) != 2 || said != (Progress{Moved: 1, Tokens: 5000}) {
		t.Errorf("%d pieces, %+v", len(sent), said)
	}
}

// TestTurnDuringMove: a turn comes to the worker that leaves while the conversation moves. What it adds moves too.
func TestTurnDuringMove(t *testing.T) {
	b := newBook(1 << 20)
	b.talks(1000, "a")
	b.Takers = up("b")
	p := b.Plan("a", at, at.Add(time.Hour))
	turns := 0
	steps(p, time.Minute, func(m *Move) string {
		if turns++; turns == 1 {
			if b.Home(grow(1, 2), at) != "a" {
				t.Error("the turn goes elsewhere")
			}
			if m, _ := p.Next(at.Add(time.Second)); m != nil {
				t.Error("another piece begins at the same worker")
			}
			b.Answered(&Turn{Worker: "a", Hashes: grow(1, 2), Tokens: 1500, Request: &Request{Body: m.Body}}, at.Add(time.Second))
		}
		return "b"
	})
	if c := b.Counts(); turns < 2 || c.Moved != 1 || c.TokensMoved != 1500 || b.Home(grow(1, 3), at) != "b" {
		t.Errorf("%d pieces, %+v", turns, c)
	}
	p.End()
}

// TestTargetDrains: a worker that drains during a move gets no further piece, and another one gets the conversation.
func TestTargetDrains(t *testing.T) {
	b := newBook(1 << 20)
	b.talks(9000, "a")
	b.Takers = up("b")
	p := b.Plan("a", at, at.Add(time.Hour))
	to := ""
	steps(p, time.Minute, func(m *Move) string {
		to += m.To
		b.Takers = up("c")
		return m.To
	})
	if strings.Count(to, "b") > 2 || !strings.HasSuffix(to, "ccc") || b.Counts().Moved != 1 {
		t.Errorf("pieces are sent to %s, %+v", to, b.Counts())
	}
	p.End()
}

// TestNobodyToMoveTo: there is no other worker, or it has gone; the plan waits, and its end frees the conversations.
func TestNobodyToMoveTo(t *testing.T) {
	b := newBook(1 << 20)
	b.talks(1000, "aa")
	b.Takers = up()
	p := b.Plan("a", at, at.Add(time.Minute))
	if sent := steps(p, 2*time.Second, there); sent != nil || b.Home(grow(1, 2), at) != "a" {
		t.Errorf("%d pieces are sent to nobody", len(sent))
	}
	if said := p.End(); said != (Progress{}) || b.holds.Load() != 0 {
		t.Errorf("%+v, %d held", said, b.holds.Load())
	}
}

// TestJoin: a worker that has come gets its share of the conversations, and their next turns go there.
func TestJoin(t *testing.T) {
	b := newBook(8 << 20)
	b.talks(1000, "aaaaaabbbbbbbb")
	b.Takers = up("a", "b", "new")
	p := b.Join("new", at)
	sent := steps(p, time.Minute, there)
	if talks := b.live(at); talks["new"] != 5 || talks["a"] < 4 || talks["b"] < 4 {
		t.Errorf("the workers have %v", talks)
	}
	if said := p.End(); said.Moved != 5 || b.holds.Load() != 5 {
		t.Errorf("%+v, %d held", said, b.holds.Load())
	}
	for _, m := range sent { // also after the end
		if to := b.Home(grow(m.talk.id(), 2), at); to != "new" {
			t.Errorf("a next turn goes to %q; want the worker that has come", to)
		}
		b.Answered(&Turn{Worker: "new", Hashes: grow(m.talk.id(), 2), Tokens: 1000, Request: &Request{}}, at)
	}
	if b.holds.Load() != 0 {
		t.Errorf("%d are held after their next turns", b.holds.Load())
	}
	if b.Join("new", at) != nil {
		t.Error("it gets more than its share")
	}
}

// TestJoinShare: a worker that has come gets its share where the others have hardly more than theirs each, and none if
// that would only swap who has fewer.
func TestJoinShare(t *testing.T) {
	for workers, want := range map[string]int{"aabbcc": 1, "aaabbbccc": 2, "aaaaaabbbbbcccccnnnn": 0, "abc": 0} {
		b := newBook(8 << 20)
		b.talks(100, workers)
		b.Takers = up("a", "b", "c", "n")
		got := 0
		if p := b.Join("n", at); p != nil {
			steps(p, time.Minute, there)
			got = p.End().Moved
		}
		if got != want {
			t.Errorf("%s: %d move; want %d", workers, got, want)
		}
	}
}

// TestJoinShortFirst: a worker that has come gets its share soon, as the shortest prompts move, and those first.
func TestJoinShortFirst(t *testing.T) {
	b := newBook(8 << 20)
	for _, tokens := range []int{900, 300, 700, 500} {
		b.Answered(&Turn{Worker: "a", Hashes: grow(tokens, 1), Tokens: tokens, Request: &Request{}}, at.Add(time.Duration(tokens-1000)))
	}
	b.Takers = up("a", "new")
	got := []int{}
	for _, m := range steps(b.Join("new", at), time.Second, there) {
		got = append(got, m.Tokens)
	}
	if !slices.Equal(got, []int{300, 500}) {
		t.Errorf("prompts of %v tokens move", got)
	}
}

// TestJoinLater: a worker that has come gets its share of the conversations that were silent at that instant too, when
// they go on, and for a minute. While another one leaves, its conversations fill the worker that has come.
func TestJoinLater(t *testing.T) {
	b := newBook(8 << 20)
	b.talks(100, "aaaa")
	b.Takers = up("a", "new")
	p := b.Join("new", at)
	if p.Idle() {
		t.Error("the plan is idle at its begin")
	}
	if steps(p, time.Second, there); b.live(at)["new"] != 2 || !p.Idle() {
		t.Fatalf("the workers have %v", b.live(at))
	}
	turn := func(id, turns int, now time.Time) {
		b.Answered(&Turn{Worker: "a", Hashes: grow(id, turns), Tokens: 100, Request: &Request{}}, now)
	}
	seconds := func(from, to time.Duration) (moved int) {
		before := b.Counts().Moved
		for now := at.Add(from); now.Before(at.Add(to)); now = now.Add(again) {
			if m, _ := p.Next(now); m != nil {
				p.Moved(m, m.To, 0, now, now)
			}
		}
		return b.Counts().Moved - before
	}
	for id := range 4 {
		turn(10+id, 1, at.Add(20*time.Second))
	}
	b.Answered(&Turn{Worker: "gone", Hashes: grow(20, 1), Tokens: 100, Request: &Request{}}, at.Add(20*time.Second))
	leaves := b.Plan("gone", at.Add(20*time.Second), at.Add(time.Hour))
	if n := seconds(20*time.Second, 25*time.Second); n != 0 {
		t.Errorf("%d move from other workers while one leaves", n)
	}
	leaves.End()
	if n := seconds(25*time.Second, 30*time.Second); n != 2 {
		t.Errorf("%d of four that have begun lately move; want two", n)
	}
	if _, wait := p.Next(at.Add(30 * time.Second)); wait == 0 {
		t.Error("the plan ends while conversations may begin")
	}
	if m, wait := p.Next(at.Add(JoinTime)); m != nil || wait != 0 {
		t.Errorf("after a minute the plan goes on: %v, %v", m, wait)
	}
}

// TestJoinElsewhere: the worker that has come does not take the prompts, as it has other models. It is not asked anew.
func TestJoinElsewhere(t *testing.T) {
	b := newBook(8 << 20)
	b.talks(1000, "aaaabbbb")
	b.Takers = up("a", "b", "new")
	p := b.Join("new", at)
	steps(p, 12*time.Second, func(*Move) string { return "a" })
	if said := p.End(); said.Moved != 0 || said.Failed != 3 || b.live(at)["b"] != 4 {
		t.Errorf("%+v, %v", said, b.live(at))
	}
}

// id returns what grow made the conversation's last block of.
func (c *Conversation) id() int { return int(c.tip / 1000) }

// TestSilent: a conversation that has been silent for longer than usual is moved when its next turn has come.
func TestSilent(t *testing.T) {
	b := newBook(1 << 20)
	b.talks(1000, "a")
	now := at.Add(50 * time.Second)
	b.Takers = up("b")
	p := b.Plan("a", now, now.Add(time.Minute))
	if m, wait := p.Next(now); m != nil || wait == 0 {
		t.Fatalf("%v is moved, wait %v", m, wait)
	}
	b.Answered(&Turn{Worker: "a", Hashes: grow(1, 2), Tokens: 1000, Request: &Request{}}, now)
	if m, _ := p.Next(now.Add(time.Second)); m == nil || m.To != "b" {
		t.Error("it is not moved after its turn")
	}
}

func TestPart(t *testing.T) {
	f := func(body string, share float64, want string) {
		t.Helper()
		if got := string(Part([]byte(body), share)); got != want {
			t.Errorf("%s: %s; want %s", body, got, want)
		}
	}
	f(`{"prompt":"0123456789","n":1}`, .5, `{"n":1,"prompt":"012345"}`)
	f(`{"prompt":"0ééé"}`, .5, `{"prompt":"0é"}`) // no half of a letter
	f(`{"prompt":[1,2,3,4,5,6]}`, .5, `{"prompt":[1,2,3]}`)
	f(`{"messages":[{"content":"a"},{"content":"b"}]}`, .5, `{"messages":[{"content":"a"}]}`)
	f(`{"messages":[{"role":"user","content":"0123456789"}]}`, .5, `{"messages":[{"content":"0123456789","role":"user"}]}`)
	f(`{"messages":[{"content":"0123456789012345678901234567890123456789"}]}`, .5, `{"messages":[{"content":"0123456789012345678901234567"}]}`)
	f(`{"messages":[{"content":[{"type":"text"}]}]}`, .5, ``) // not within parts
	f(`{"prompt":"0"}`, 0, ``)
	f(`{"model":"m"}`, .5, ``)
	f(`{`, .5, ``)
}

// TestRanked: the greatest value moves first, and 0, less and what is no number stay. A strategy that gives no values
// leaves it to the probability of another turn.
func TestRanked(t *testing.T) {
	f := func(what string, rank func([]abi.Talk) bool, want string) {
		t.Helper()
		b := newBook(1 << 20)
		for i, c := range "abcde" {
			b.Answered(&Turn{Worker: "w", Hashes: grow(i+1, 1), Tokens: 400, Request: &Request{Body: []byte{byte(c)},
				Known: abi.Talk{Session: uint64(i)}}}, at.Add(-time.Duration(i)*time.Millisecond))
		}
		b.Takers, b.Rank = up("x"), rank
		got := ""
		p := b.Plan("w", at, at.Add(time.Hour))
		for _, m := range steps(p, 5*time.Second, there) {
			got += string(m.Body)
		}
		if got != want {
			t.Errorf("%s: %q move; want %q", what, got, want)
		}
		p.End()
	}
	f("no rule", nil, "abcde")
	f("none given", func([]abi.Talk) bool { return false }, "abcde")
	f("as they were", func([]abi.Talk) bool { return true }, "abcde")
	f("some", func(talks []abi.Talk) bool {
		values := []float64{1, 0, 3, -1, math.NaN()}
		for i := range talks {
			if talks[i].Value < .8 || talks[i].Returns < .8 || talks[i].Tokens != 400 {
				t.Errorf("%+v", talks[i])
			}
			talks[i].Value = values[talks[i].Session]
		}
		return true
	}, "ca")
}
