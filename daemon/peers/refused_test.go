package peers

import (
	"log/slog"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/logtest"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

const (
	saysLost   = "history: Redis is lost: routers receive nothing from each other, and each goes on with what it knows"
	saysBack   = "history: Redis is back: routers receive from each other again"
	saysRefuse = "history: Redis accepts no messages of a pool: other routers receive none"
)

// alive returns how many other routers of a pool are alive by a router's books.
func alive(p *Peers, pool int) (n int) {
	for _, r := range p.list()[pool].receiver.Routers(time.Now()) {
		if r.Alive {
			n++
		}
	}
	return n
}

// TestRedisThatRefuses: a Redis that answers but takes no messages counts as lost once for the whole outage.
func TestRedisThatRefuses(t *testing.T) {
	t.Parallel()
	f := func(name string, breaks, mends []string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := redistest.Start(t)
			var lines logtest.Log
			one := prepare(t, b, "one", slog.New(slog.NewJSONHandler(&lines, nil)), "p")
			runUntil(t, one)
			two := open(t, b, "two")
			hear := func() bool { return alive(one, 0) == 1 && alive(two, 0) == 1 }
			waittest.Until(t, "they receive from each other", hear)
			for _, c := range breaks {
				b.Do(c)
			}
			waittest.Until(t, "the loss is known", func() bool { return !one.Stats().Connected })
			since := one.Stats().Since
			for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				if s := one.Stats(); s.Connected || s.Since != since || s.Losses != 1 {
					t.Fatalf("%+v; want it lost since %v", s, since)
				}
			}
			holds(one, 1)
			for _, c := range mends {
				b.Do(c)
			}
			waittest.Until(t, "they receive from each other again", func() bool { return one.Stats().Connected && hear() && blocks(two) == 1 })
			for text, want := range map[string]int{saysLost: 1, saysRefuse: 1, saysBack: 1} {
				if n := len(lines.With(t, "msg", text)); n != want {
					t.Errorf("%d lines %q; want %d:\n%s", n, text, want, lines.String())
				}
			}
		})
	}
	f("the key is no stream", []string{"DEL " + stream, "SET " + stream + " x"}, []string{"DEL " + stream})
	f("the user may not write", []string{"ACL SETUSER default -xadd"}, []string{"ACL SETUSER default +xadd"})
}

// TestOnePoolRefused: an error of Redis for one pool does not concern another, whether a router starts then or runs.
func TestOnePoolRefused(t *testing.T) {
	t.Parallel()
	b := redistest.Start(t)
	var lines logtest.Log
	log := slog.New(slog.DiscardHandler)
	one := prepare(t, b, "one", slog.New(slog.NewJSONHandler(&lines, nil)), "bad", "p")
	runUntil(t, one)
	waittest.Until(t, "it sends", func() bool { return one.list()[0].sender.Stats().Frames > 0 })
	b.Do("DEL {w}/history/bad")
	b.Do("SET {w}/history/bad x")
	two := prepare(t, b, "two", log, "bad", "p")
	runUntil(t, two)
	waittest.Until(t, "they receive the other pool's frames", func() bool { return alive(one, 1) == 1 && alive(two, 1) == 1 })
	waittest.Until(t, "it is logged", func() bool { return len(lines.With(t, "msg", saysRefuse)) == 1 })
	time.Sleep(3 * time.Second)
	if a, c := one.Stats(), two.Stats(); a.Losses+c.Losses > 0 || alive(one, 1) != 1 || alive(two, 1) != 1 {
		t.Errorf("%+v, %+v", a, c)
	}
	b.Do("DEL {w}/history/bad")
	waittest.Until(t, "they receive the frames of both", func() bool { return alive(one, 0) == 1 && alive(two, 0) == 1 })
	if n := lines.Count("WARN"); n > 2 {
		t.Errorf("%d warnings; want one of writing, and one of reading:\n%s", n, lines.String())
	}
}
