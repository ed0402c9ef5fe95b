package peers

import (
	"slices"
	"testing"
)

// Chains of one new block each make an entry a block: a generation ends before its table gets so large that it takes
// long to grow.
func TestManyShortChainsEndAGeneration(t *testing.T) {
	one, two := newChains(), newChains()
	for i := uint64(1); i <= 3*maxPositions; i++ {
		_, parent, depth, rest := one.enterSent([]uint64{i}, position{})
		if got, ok := two.enterReceived(parent, depth, rest); !ok || !slices.Equal(got, []uint64{i}) {
			t.Fatalf("chain %d: received %v, %v", i, got, ok)
		}
		if n := one.gens[0].used; n > maxPositions {
			t.Fatalf("chain %d: %d positions in a generation; want at most %d", i, n, maxPositions)
		}
	}
	if one.gen != 2 || two.gen != 2 || one.held() != maxPositions {
		t.Errorf("generations %d and %d, %d hashes in the newest; want 2, 2, %d", one.gen, two.gen, one.held(), maxPositions)
	}
	if _, _, depth, _ := one.enterSent([]uint64{3 * maxPositions, 7}, position{}); depth != 1 {
		t.Errorf("the newest chain is named to a depth of %d; want 1", depth)
	}
}

// A chat sent turn by turn makes one run. A second chat that leaves it at the end of a turn names all of it up to
// there, and one that leaves it inside a turn names all but the last blocks.
func TestTurnsShareTheirRun(t *testing.T) {
	c := newChains()
	var chat []uint64
	for turn := range 10 {
		for i := range 21 {
			chat = append(chat, uint64(1000*turn+i+1))
		}
		if _, _, depth, rest := c.enterSent(chat, position{}); depth != 21*turn || len(rest) != 21 {
			t.Fatalf("turn %d: named %d, sent %d", turn, depth, len(rest))
		}
	}
	if at, _ := c.find(chat[len(chat)-1]); at.run.depth != 0 || at.n != len(chat) {
		t.Errorf("the chat ends in a run at %d; want one run of %d", at.run.depth, len(chat))
	}
	if _, _, depth, _ := c.enterSent(append(slices.Clone(chat[:105]), 77), position{}); depth != 105 {
		t.Errorf("a chat that leaves it after five turns is named to %d; want 105", depth)
	}
	if _, _, depth, _ := c.enterSent(append(slices.Clone(chat[:110]), 78), position{}); depth < 110-anchorEvery || depth > 110 {
		t.Errorf("a chat that leaves it at 110 is named to %d; want 96", depth)
	}
}
