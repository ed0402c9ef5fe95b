package route

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestNamesShareTheIndex: a prompt that was learnt under one name of a model is found under the other, and under no
// adapter's.
func TestNamesShareTheIndex(t *testing.T) {
	const blocks = 4
	for _, c := range []struct {
		lists []string // of the workers a and b: the root of m and that of n, and the parent of n
		found int      // under n
	}{
		{[]string{"r r", "r r"}, blocks}, {[]string{"r q", "r q"}, 0}, {[]string{"r r m", "r r m"}, 0},
		{[]string{"r r", "r q"}, 0},
	} {
		s := newScene(t, "a b")
		for i, list := range c.lists {
			of := append(strings.Fields(list), "")
			s.Workers.Listed(s.watched[s.names[i]], []string{"m", "n"}, []json.RawMessage{
				fmt.Appendf(nil, `{"id":"m","root":%q}`, of[0]), fmt.Appendf(nil, `{"id":"n","root":%q,"parent":%q}`, of[1], of[2])})
		}
		matched := func(model string) int {
			r := parsed("/v1/completions", fmt.Sprintf(`{"model":%q,"prompt":%q,"max_tokens":1}`, model, text("q", blocks)))
			return int(s.chosen(s.asking(r, Claim{})).fleet.frame.Header.BestMatch)
		}
		r := parsed("/v1/completions", fmt.Sprintf(`{"model":"m","prompt":%q,"max_tokens":1}`, text("q", blocks)))
		s.trip(r)
		if m, n := matched("m"), matched("n"); m != blocks || n != c.found {
			t.Errorf("%q: %d blocks under m, %d under n; want %d, %d", c.lists, m, n, blocks, c.found)
		}
	}
}
