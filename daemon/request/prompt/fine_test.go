package prompt

import (
	"fmt"
	"strings"
	"testing"
)

// TestFine: the block that is watched is hashed in pieces, however the text before it came.
func TestFine(t *testing.T) {
	hash := func(watch int, body string) *Chain {
		t.Helper()
		r, err := new(Parser).Parse(Completion, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Watch = watch
		r.Hash(7)
		return &r.Chains[0]
	}
	text := func(at int, c string) string {
		s := strings.Repeat("x", 1000)
		return fmt.Sprintf(`{"prompt":"%s"}`, s[:at]+c+s[at+1:])
	}
	for at := range 1000 {
		a, b := hash(at/BlockBytes+1, text(at, "x")), hash(at/BlockBytes+1, text(at, "y"))
		c := hash(at/BlockBytes+1, text(at, `\u0079`)) // the text comes in three pieces
		whole := at < 1000/BlockBytes*BlockBytes
		if !whole && a.Fine == (Fine{}) {
			continue
		}
		if got := a.Fine.Parts(&b.Fine); got != at%BlockBytes/8*8 || a.Fine.Block != at/BlockBytes+1 || b.Fine != c.Fine {
			t.Fatalf("byte %d: block %d, %d bytes into it; pieces alike %v", at, a.Fine.Block, got, b.Fine == c.Fine)
		}
	}
	if c := hash(0, text(1, "x")); c.Fine != (Fine{}) {
		t.Errorf("nothing is watched: %+v", c.Fine)
	}
	if c := hash(1, `{"prompt":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}`); c.Fine.Block != 1 {
		t.Errorf("token ids: %+v", c.Fine)
	}
}
