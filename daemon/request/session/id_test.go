package session

import (
	"strings"
	"testing"
)

func TestMintedKnowsOurIDs(t *testing.T) {
	seen := map[string]bool{}
	for range 10_000 {
		id := MintID()
		if !Minted(id) || seen[id] { // letters and digits alone: an id that SageMaker's API takes too
			t.Fatalf("id %q: minted %v, seen %v", id, Minted(id), seen[id])
		}
		seen[id] = true
	}
	f := func(id string) {
		t.Helper()
		if Minted(id) {
			t.Errorf("%q is taken for an id of ours", id)
		}
	}
	id := MintID()
	f("")
	f(id[1:])
	f(id + "A")
	f(strings.ToLower(id[:1]) + "a" + id[2:])
	f("1" + id[1:])
	f("-" + id[1:])
	f("5693c464-e905-4cb9-b9c7-67397aeb9186")
	f(strings.Repeat("é", mintedLen/2))
}
