package main

import (
	"testing"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

func TestItLearns(t *testing.T) {
	host := &sdktest.Host{}
	host.Use(t)
	f := sdktest.NewFrame(3)
	for i, ttft := range []float32{.9, .2, .5} {
		bandit{}.OnFirstToken(&sdk.Outcome{Key: f.Rows[i].Key, TTFT: ttft})
	}
	to := [3]int{}
	for i := range 1000 {
		f.Header.Random = uint64(i) * 0x9e3779b97f4a7c15
		to[f.Run(t, bandit{}).Row]++
	}
	if to[1] < 900 || to[0] == 0 || to[2] == 0 {
		t.Errorf("1,000 requests went to %v; want nearly all to worker 1, the fastest, and a few to each other", to)
	}
	bandit{}.OnFirstToken(&sdk.Outcome{Key: f.Rows[1].Key, TTFT: 2.2})
	if got := host.Own[f.Rows[1].Key]; got < .39 || got > .41 {
		t.Errorf("after .2 and 2.2 it believes %v s; want .4", got)
	}
}
