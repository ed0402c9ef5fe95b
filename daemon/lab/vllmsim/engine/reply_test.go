package engine

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// tokensOf lists the first n tokens of a reply.
func tokensOf(r Reply, n int) []uint32 {
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = r.Token(i)
	}
	return ids
}

// TestReplyIsItsTokens: the text of a reply gives the very tokens that were generated, so the next turn finds them
// cached.
func TestReplyIsItsTokens(t *testing.T) {
	f := func(what string, r Reply, n int) {
		t.Helper()
		if got, want := AppendTokens(nil, r.Text(n)), tokensOf(r, n); !slices.Equal(got, want) {
			t.Errorf("%s: the text %q has tokens %d, generated were %d", what, r.Text(n), got, want)
		}
	}
	f("words", NewReply(1), 200)
	f("other words", NewReply(1<<63), 200)
	f("no tokens", NewReply(1), 0)
	f("JSON", FixedReply(`{"a":"b \" \\ c"}`), CountTokens(`{"a":"b \" \\ c"}`))
	f("half of it", FixedReply(`{"city":"kalo","days":7}`), 3)
}

// TestReplyInPieces: a stream's pieces, each cut anywhere, join to the whole as it stands within a JSON string.
func TestReplyInPieces(t *testing.T) {
	f := func(what string, r Reply, n int) {
		t.Helper()
		quoted, err := json.Marshal(r.Text(n))
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Trim(string(quoted), `"`)
		for cut := range n + 1 {
			got := string(r.AppendJSON(r.AppendJSON(nil, 0, cut), cut, n))
			if got != want && `"`+got+`"` != string(quoted) {
				t.Errorf("%s cut at %d: %s, want %s", what, cut, got, want)
			}
		}
	}
	f("words", NewReply(7), 20)
	f("fixed", FixedReply(`{"a":"b \\ c","d":[1,2,3]}`), 7)
}

func TestReplyEnds(t *testing.T) {
	least, most := 1<<30, 0
	for seed := range uint64(2000) {
		r := NewReply(Mix(seed, 1)).EndingNear(64, 0)
		least = min(least, r.stop)
		most = max(most, r.stop)
	}
	if least < 32 || least > 36 || most > 95 || most < 91 {
		t.Errorf("replies of 64 tokens on average end from %d to %d, want 32 to 95", least, most)
	}
	if r := NewReply(5).EndingNear(64, 500); r.stop != 500 || r.Token(500) != TokenEnd || r.Token(499) == TokenEnd {
		t.Errorf("ends at %d, want 500", r.stop)
	}
	if got := string(NewReply(5).EndingNear(64, 500).AppendJSON(nil, 500, 501)); got != "" {
		t.Errorf("the end has the text %q", got)
	}
	fixed := FixedReply("abcde")
	if fixed.Token(2) != TokenEnd || fixed.Text(3) != "abcde" {
		t.Errorf("a fixed text ends with token %#x and reads %q", fixed.Token(2), fixed.Text(3))
	}
}

func TestSequenceEnds(t *testing.T) {
	f := func(what string, set func(q *Sequence), tokens int, how Finish) {
		t.Helper()
		s := simulate(t, Config{})
		q := newAsk(1, 16, 100)
		set(q)
		s.submit(q)
		s.await(q)
		if q.OutputTokens() != tokens || q.Finish() != how {
			t.Errorf("%s: %d tokens and %q, want %d and %q", what, q.OutputTokens(), q.Finish(), tokens, how)
		}
	}
	f("no end", func(*Sequence) {}, 100, FinishLength)
	f("an end", func(q *Sequence) { q.Reply = q.Reply.EndingNear(2, 50) }, 51, FinishStop)
	f("an end too late", func(q *Sequence) { q.Reply = q.Reply.EndingNear(2, 100) }, 100, FinishLength)
	f("an end just in time", func(q *Sequence) { q.Reply = q.Reply.EndingNear(2, 99) }, 100, FinishStop)
	f("a text", func(q *Sequence) { q.Reply = FixedReply("abcdefgh") }, 3, FinishStop)
	f("one token", func(q *Sequence) { q.MaxTokens = 1 }, 1, FinishLength)
}
