package breaks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// scene is a book and its clock.
type scene struct {
	*Book
	at     time.Time
	parser prompt.Parser
}

func newScene() *scene { return &scene{Book: New(), at: time.Unix(1000, 0)} }

// turn notes a prompt of a session of a key.
func (s *scene) turn(t *testing.T, key string, session uint64, text string) {
	t.Helper()
	r, err := s.parser.Parse(prompt.Completion, []byte(`{"prompt":"`+text+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Watch = s.Watch(key)
	r.Hash(7)
	s.at = s.at.Add(time.Second)
	s.Note(&Turn{Key: key, Session: [2]uint64{session, 1}, Chain: &r.Chains[0], At: s.at})
}

// one returns the only break, nil if there is none.
func (s *scene) one(t *testing.T) *Break {
	t.Helper()
	all := s.Report()
	if len(all) > 1 {
		t.Fatalf("%+v", all)
	}
	if len(all) == 0 {
		return nil
	}
	return &all[0]
}

// TestWhereAPromptBreaks: a time at a place of the prompt is found at that place, to eight bytes.
func TestWhereAPromptBreaks(t *testing.T) {
	f := func(before, behind int, want *Break) {
		t.Helper()
		s := newScene()
		for i := range 40 {
			text := strings.Repeat("a", before) + fmt.Sprintf("%08d", i) + strings.Repeat("b", behind) + strings.Repeat("turn ", i)
			s.turn(t, "team-a", uint64(i%2), text)
		}
		got := s.one(t)
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%d bytes before the time: %+v; want %+v", before, got, want)
		}
	}
	broken := func(at int) *Break { return &Break{Key: "team-a", Byte: at, Exact: true, Share: 1, Turns: 38} }
	f(0, 4000, broken(0))
	f(312, 4000, broken(312))
	f(500, 4000, broken(504))
	f(128*63+8, 1000, broken(128*63+8))
	f(128*64, 1000, nil) // behind what is compared
}

// TestAPromptThatGrowsIsWhole: turns that only append break nowhere.
func TestAPromptThatGrowsIsWhole(t *testing.T) {
	s := newScene()
	for i := range 100 {
		s.turn(t, "", uint64(i%3), strings.Repeat("a", 600)+strings.Repeat("and then ", i))
	}
	if got := s.one(t); got != nil {
		t.Errorf("%+v", got)
	}
}

// TestWhatIsSaid: a key is named after enough turns, for what happens in most of them, and by the turns of late.
func TestWhatIsSaid(t *testing.T) {
	s := newScene()
	rest := strings.Repeat("b", 2000)
	for i := range enough {
		s.turn(t, "team-a", 1, fmt.Sprintf("%08d", i)+rest)
		if got := s.one(t); got != nil {
			t.Fatalf("after %d turns: %+v", i, got)
		}
	}
	s.turn(t, "team-a", 1, "the last"+rest)
	if got := s.one(t); got == nil || got.Turns != enough {
		t.Errorf("after %d turns: %+v", enough, got)
	}
	for range enough + 1 {
		s.turn(t, "team-a", 1, "the last"+rest)
	}
	if got := s.one(t); got != nil {
		t.Errorf("it breaks in less than half of the turns: %+v", got)
	}
	for i := range 4 * fresh {
		s.turn(t, "team-b", 2, fmt.Sprintf("%08d", i)+rest)
	}
	for range 3 * fresh {
		s.turn(t, "team-b", 2, rest)
	}
	if got := s.one(t); got != nil {
		t.Errorf("it has been mended: %+v", got)
	}
}

// TestABookIsBounded: sessions and keys that are made up take no more memory, and comparisons have a rate.
func TestABookIsBounded(t *testing.T) {
	s := newScene()
	for i := range 5 * maxTurns {
		s.turn(t, fmt.Sprint(i%(2*maxKeys)), uint64(i), strings.Repeat("a", 300))
		s.turn(t, fmt.Sprint(i%(2*maxKeys)), uint64(i), strings.Repeat("b", 300))
	}
	if s.turns.Len() > 2*maxTurns || len(s.keys) > maxKeys {
		t.Errorf("%d prompts and %d keys are kept", s.turns.Len(), len(s.keys))
	}
	s = newScene()
	c := &prompt.Chain{Hashes: []uint64{1}}
	for i := range 1000 {
		s.Note(&Turn{Session: [2]uint64{uint64(i)}, Chain: c, At: s.at.Add(time.Duration(i) * time.Millisecond)})
	}
	if n := s.turns.Len(); n != 200 {
		t.Errorf("%d of 1000 turns in a second are compared; want 200", n)
	}
}
