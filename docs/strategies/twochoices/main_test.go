package main

import (
	"testing"

	"github.com/warmpath/warmpath/sdk/sdktest"
)

func TestTheEmptierOfTwo(t *testing.T) {
	f, to := sdktest.NewFrame(4), [4]int{}
	f.Rows[3].HeldTokens = 400_000
	for i := range 4000 {
		f.Header.Random = uint64(i) * 0x9e3779b97f4a7c15
		to[f.Run(t, twochoices{}).Row]++
	}
	for i, n := range to[:3] {
		if n < 1000 || n > 1500 {
			t.Errorf("worker %d got %d of 4,000; want some 1,250", i, n)
		}
	}
	if to[3] > 400 { // both draws are that one in a sixteenth
		t.Errorf("the fullest got %d of 4,000; want some 250", to[3])
	}
}
