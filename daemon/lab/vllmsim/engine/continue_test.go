package engine

import "testing"

// TestContinue: a prompt that ends with the beginning of its reply gets the rest of it, as ids and as a text of any
// length.
func TestContinue(t *testing.T) {
	const seed = 7
	for length := 1; length < 90; length++ {
		text := TextOfTokens(uint64(length), 30)[:length]
		whole := NewSequence(AppendTokens(nil, text), "salt", seed, 16).Reply
		for _, n := range []int{0, 1, 2, 15, 16, 17, 40} {
			with := text + whole.Text(n)
			q := NewSequence(AppendTokens(nil, with), "salt", seed, 16)
			q.ContinueText(with, seed)
			if got, want := with+q.Reply.Text(9), text+whole.Text(n+9); n > 1 && got != want {
				t.Fatalf("%d bytes and %d tokens: %q; want %q", length, n, got, want)
			}
			ids := AppendTokens(nil, text)
			for i := range n {
				ids = append(ids, whole.Token(i))
			}
			if q = NewSequence(ids, "salt", seed, 16); n > 1 {
				q.ContinueIDs(seed)
				if got, want := q.Reply.Text(9), whole.Text(n + 9)[4*n:]; got != want {
					t.Fatalf("%d bytes and %d ids: %q; want %q", length, n, got, want)
				}
			}
			q = NewSequence(ids, "salt", seed, 16)
			q.ContinueFrom(len(ids)-n, seed)
			if got, want := q.Reply.Text(9), whole.Text(n + 9)[4*n:]; got != want {
				t.Fatalf("from %d tokens: %q; want %q", n, got, want)
			}
		}
	}
}
