package peers

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// TestPoolThatComesBack: after a reload that removed a pool and one that added it again, the other routers receive its
// messages, and it learns what it has sent itself before.
func TestPoolThatComesBack(t *testing.T) {
	b := redistest.Start(t)
	one, two := open(t, b, "one"), open(t, b, "two")
	waittest.Until(t, "they receive from each other", func() bool { return alive(one, 0) == 1 && alive(two, 0) == 1 })
	for hash := range uint64(8) {
		holds(one, hash+1)
		waittest.Until(t, "the other one knows", func() bool { return blocks(two) == int(hash+1) })
	}
	one.leave(one.list()[0])
	one.Join("p", newPool(t, &clock{began}, 2, 1<<16))
	waittest.Until(t, "it knows what it sent before", func() bool { return blocks(one) == 8 })
	holds(one, 100)
	waittest.Until(t, "the other one knows the next", func() bool { return blocks(two) == 9 })
	if s := two.Stats().Pools[0].Received; s.Repeated+s.Gaps > 0 {
		t.Errorf("%+v; want no message repeated and none missing", s)
	}
}
