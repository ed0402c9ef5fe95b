package main

import (
	"reflect"
	"testing"
)

// A comparison is worth nothing if the strategies get different requests.
func TestTrafficIsDrawnFromTheSeedAlone(t *testing.T) {
	a := drawTraffic(7, 300)
	if !reflect.DeepEqual(a, drawTraffic(7, 300)) {
		t.Error("two draws of one seed differ")
	}
	if reflect.DeepEqual(a, drawTraffic(8, 300)) {
		t.Error("another seed draws the same")
	}
	if !reflect.DeepEqual(a[:100], drawTraffic(7, 100)) {
		t.Error("a shorter traffic is not the start of a longer one")
	}
	systems, turns, foreign, astray := map[string]bool{}, map[int]int{}, 0, 0
	home := map[int]int{}
	for _, r := range a {
		systems[r.system] = true
		turns[r.chat]++
		if r.foreign {
			foreign++
			if turns[r.chat] > 1 && home[r.chat] != r.home {
				t.Errorf("the other client's chat %d changes its worker", r.chat)
			}
			home[r.chat] = r.home
		}
		if r.astray {
			astray++
		}
	}
	for chat, n := range turns {
		if n > mostTurns {
			t.Errorf("chat %d has %d turns", chat, n)
		}
	}
	if len(systems) != 3 || foreign < 60 || foreign > 140 || astray < 70 || astray > 130 {
		t.Errorf("%d system prompts, %d and %d of 300 requests past the router", len(systems), foreign, astray)
	}
}
