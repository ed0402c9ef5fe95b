package route

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/session"
)

// With a clock and a secret of the caller's own, two pools hash and age alike, whatever the time of day.
func TestAPoolOfItsOwnTime(t *testing.T) {
	now := start
	made := func() *Pool {
		return New(Config{Name: "p", Sessions: session.On(newStore(), session.Config{Pool: "p"}), Began: start,
			Clock: func() time.Time { return now }, Secret: Secret{1}})
	}
	a, b := made(), made()
	hash := func(p *Pool) uint64 {
		r := completion(1, text("alike", 3))
		seed, _ := p.secret.Load().space("m")
		r.Hash(seed)
		return r.Chains[0].Hashes[2]
	}
	if hash(a) != hash(b) {
		t.Error("two pools of one secret hash differently")
	}
	a.Index.SetCapacity(0, 100)
	a.Index.Namespace("m").Touch(0, []uint64{1, 2, 3})
	now = now.Add(time.Hour)
	if got := a.Index.Worker(0).TailAge; got != time.Hour {
		t.Errorf("the oldest block is %v old; want an hour by the pool's clock", got)
	}
}
