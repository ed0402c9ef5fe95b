package exchange

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/identity"
	"github.com/warmpath/warmpath/daemon/request/limit"
	"github.com/warmpath/warmpath/daemon/request/waiting"
)

// A key that is at its limit takes no turn from others, and a worker that has room serves them.
func TestLimitBlocksNobodyElse(t *testing.T) {
	x := newCrowd(t, 2, waiting.Config{Wait: long})
	x.epoch.Limits = (&limit.Book{}).Configure(map[string]limit.Limits{"team": {InFlight: 1}}, time.Now())
	team := *inbound("POST", "/", "").Caller
	team.Name = "team"
	var all []*guest
	all = append(all, x.sends(&team, "first"))
	<-x.came
	for range 3 {
		all = append(all, x.sends(&team, "over"))
	}
	x.waits(3)
	if n := x.queue.ForRoom(); n != 0 {
		t.Errorf("%d wait for room, of those at their limit", n)
	}
	all = append(all, x.sends(nil, "other"))
	if got := <-x.came; got != "other" {
		t.Errorf("%s came to the worker with room", got)
	}
	x.serves(all)
	if q := all[3].in.Seen.Queued; q == nil || q.Waited <= 0 {
		t.Error("the record does not have the wait")
	}
	x.rests()
}

// The agents of a key take turns while they wait for its limit.
func TestAgentsTakeTurnsForALimit(t *testing.T) {
	x := newCrowd(t, 2, waiting.Config{Wait: long})
	x.epoch.Limits = (&limit.Book{}).Configure(map[string]limit.Limits{"team": {InFlight: 1}}, time.Now())
	x.epoch.Sessions.Identity = identity.New([]string{"X-Session-Id"})
	team := *inbound("POST", "/", "").Caller
	team.Name = "team"
	all := []*guest{x.sends(&team, "first")}
	<-x.came
	for i := range 5 {
		all = append(all, x.sends(&team, "many", "X-Session-Id", "many"))
		x.waits(i + 1)
	}
	all = append(all, x.sends(&team, "few", "X-Session-Id", "few"))
	x.waits(6)
	before := 0
	for x.free <- true; <-x.came != "few"; x.free <- true {
		before++
	}
	if before > 1 {
		t.Errorf("%d requests of one agent went before the first of another", before)
	}
	x.serves(all)
	x.forgets()
	x.rests()
}
