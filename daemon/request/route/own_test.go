package route

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/host"
)

// numbering is a module that sets the number of the worker in row 0 to 7 at each pick, and takes row 0.
func numbering(t *testing.T, name, version string) *host.Strategy {
	t.Helper()
	h, _ := shared()
	s := load(h, name, `(module
		(import "warmpath_v1" "own" (func $own (param i64 f64) (result i32)))
		(memory (export "memory") 1)
		(data (i32.const 0) "`+version+`")
		(func (export "warmpath_abi_1_2"))
		(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
		(func (export "wp_pick") (result i64)
			i32.const 1400 i64.load f64.const 7 call $own drop i64.const 0))`)
	t.Cleanup(func() { s.Close(t.Context()) })
	return s
}

// The numbers of a strategy outlive a reload. Another module, another name, and a shadow have numbers of their own.
func TestOwnOverReloads(t *testing.T) {
	p := newScene(t, "a b")
	a := worker.KeyOf("a")
	f := func(what string, s *host.Strategy, want float64) {
		t.Helper()
		frame := host.Frame{}
		frame.Reset()
		frame.Rows, _, _ = p.Workers.Snapshot(worker.Query{At: p.now}, nil, nil)
		s.Pick(&frame)
		if got := frame.Rows[0].Own; got != want || frame.Rows[0].Key != a {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
	one := numbering(t, "mine", "1")
	p.Owns.Share([]*host.Strategy{one}, nil)
	f("at first", one, 0)
	f("then", one, 7)
	again, shadow := numbering(t, "mine", "1"), numbering(t, "mine", "1")
	p.Owns.Share([]*host.Strategy{again}, []*host.Strategy{shadow})
	f("after a reload", again, 7)
	f("a shadow of the same module", shadow, 0)
	f("its own number", shadow, 7)
	asked := numbering(t, "mine", "1")
	p.Owns.Copy(asked)
	f("loaded for a question", asked, 7)
	next, other := numbering(t, "mine", "2"), numbering(t, "other", "1")
	p.Owns.Share([]*host.Strategy{next, other}, nil)
	f("the next version", next, 0)
	f("another name", other, 0)
	back := numbering(t, "mine", "1")
	p.Owns.Share([]*host.Strategy{back, next}, nil)
	f("the version before, which was dropped", back, 0)

	both := []worker.Spec{{ID: "a", URL: "http://a"}, {ID: "b", URL: "http://b"}}
	f("before it leaves", back, 7)
	p.Workers.Update(both[1:], p.now)
	p.Tick(p.now)
	p.Workers.Update(both, p.now)
	p.heal("a")
	f("a worker of the name of one that left", back, 0)
}
