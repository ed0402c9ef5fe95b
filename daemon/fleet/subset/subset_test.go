package subset

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// pool plays a pool of workers that are up once they are used, but for those in down.
type pool struct {
	*Subset
	in   Input
	down map[string]bool
	now  time.Time
	use  map[string]Member
	t    *testing.T
}

func newPool(t *testing.T, workers, size int) *pool {
	p := &pool{Subset: &Subset{Due: make(chan struct{}, 1), Linger: 30 * time.Second}, t: t, down: map[string]bool{},
		now: time.Now(), in: Input{Size: size, Self: "r0"}}
	for i := range workers {
		p.in.Workers = append(p.in.Workers, worker.Spec{ID: fmt.Sprintf("w%d", i)})
	}
	return p
}

// pass lets seconds pass, and returns in how many of them the workers in use changed.
func (p *pool) pass(seconds int) (changes int) {
	for range seconds {
		use := p.Choose(&p.in, p.now)
		if !maps.Equal(use, p.use) {
			changes++
		}
		p.use, p.in.Stats = use, nil
		for id := range use {
			s := worker.Stats{ID: id, Endpoint: id, State: worker.Ready, Up: true, Models: []string{"sim"}}
			if p.down[id] {
				s.State, s.Up = worker.Down, false
			}
			p.in.Stats = append(p.in.Stats, s)
		}
		p.now = p.now.Add(time.Second)
	}
	return changes
}

func (p *pool) expect(what string, used, up int) {
	p.t.Helper()
	n := 0
	for id := range p.use {
		if !p.down[id] {
			n++
		}
	}
	if len(p.use) != used || n != up {
		p.t.Errorf("%s: %d workers are used, %d of them up; want %d and %d", what, len(p.use), n, used, up)
	}
}

// TestGrowsAndShrinks: a quarter of the subset may be down. For more others come, at most an eighth of it in a second,
// and leave half a minute after they are not needed any more.
func TestGrowsAndShrinks(t *testing.T) {
	t.Parallel()
	p := newPool(t, 200, 40)
	p.pass(2)
	p.expect("at the start", 40, 40)
	before := p.use
	die := func(n int) {
		for id := range before {
			if len(p.down) < n {
				p.down[id] = true
			}
		}
	}
	die(10)
	p.pass(5)
	p.expect("a quarter is down", 40, 30)
	die(30)
	p.pass(2)
	if len(p.use) > 40+2*6 {
		t.Errorf("in two seconds %d workers came", len(p.use)-40)
	}
	p.pass(5)
	p.expect("30 are down", 60, 30)
	die(40)
	for id := range p.use {
		p.down[id] = true
	}
	p.pass(10)
	p.expect("all that were used are down", 90, 30)
	if n := p.pass(60); n != 0 {
		t.Errorf("while nothing happens the workers in use changed %d times", n)
	}
	clear(p.down)
	p.pass(20)
	p.expect("just after all are back", 90, 90)
	p.pass(20)
	p.expect("later", 40, 40)
	for id := range before {
		if _, has := p.use[id]; !has {
			t.Errorf("%s has not come back", id)
		}
	}
	for i := range p.in.Workers {
		p.down[p.in.Workers[i].ID] = true
	}
	p.pass(100)
	p.expect("nobody is up", 200, 0) // all are tried
}

// TestRouterComesAndGoes: the workers that another router takes over stay until those that replace them are up.
func TestRouterComesAndGoes(t *testing.T) {
	t.Parallel()
	p := newPool(t, 100, 20)
	p.in.Others = []string{"r1", "r2", "r3", "r4"}
	p.pass(1)
	before := p.use
	p.in.Others = append(p.in.Others, "r5")
	p.pass(1)
	more := len(p.use) - len(before)
	if more <= 0 || more > 10 {
		t.Errorf("%d workers came for another router", more)
	}
	for id := range before {
		if _, has := p.use[id]; !has {
			t.Errorf("%s went at once", id)
		}
	}
	p.pass(40)
	p.expect("half a minute later", 20, 20)
	p.in.Others = slices.Concat(p.in.Others[:5], p.in.Others[:2], []string{"r0"}) // names again, as in an upgrade
	if p.pass(5) != 0 {
		t.Error("a router that is there twice changes the subset")
	}
}

// TestGuests: the worker of a session is used for as long as the session is, and gets nothing else.
func TestGuests(t *testing.T) {
	t.Parallel()
	p := newPool(t, 100, 10)
	p.pass(1)
	var apart string
	for id := range p.State().Outside {
		apart = id
	}
	if p.Want(worker.Want{ID: "unknown"}) || !p.Want(worker.Want{ID: apart}) {
		t.Error("a worker of the pool is not found, or one that is not there is")
	}
	if len(p.Due) != 1 {
		t.Error("nobody is told that a request waits")
	}
	p.pass(1)
	if m := p.use[apart]; !m.Guest || len(p.use) != 11 {
		t.Errorf("the session's worker is used as %+v, among %d", m, len(p.use))
	}
	p.pass(500)
	p.expect("while the session counts", 11, 11)
	p.pass(200)
	p.expect("after ten minutes without a request", 10, 10)
}

// TestWantsAreBounded: clients that ask for models which nobody has make the subset grow for a moment only, and are
// remembered up to a bound.
func TestWantsAreBounded(t *testing.T) {
	t.Parallel()
	p := newPool(t, 200, 10)
	p.pass(1)
	for i := range 2 * maxWants {
		p.Want(worker.Want{Model: fmt.Sprint("none-", i)})
	}
	if len(p.wants) > maxWants {
		t.Errorf("%d wants are remembered", len(p.wants))
	}
	p.pass(20)
	p.expect("all workers were asked", 200, 200)
	if p.Want(worker.Want{Model: "none-1"}) {
		t.Error("the model is looked for again at once")
	}
	p.pass(40)
	p.expect("after that", 10, 10)
}

// TestStrange: a pool without workers, one smaller than the subset, and one whose subset is switched off.
func TestStrange(t *testing.T) {
	t.Parallel()
	p := newPool(t, 0, 10)
	p.pass(2)
	p.expect("no workers", 0, 0)
	if s := p.State(); s == nil || s.Unused != 0 {
		t.Errorf("the state of an empty pool is %+v", s)
	}
	p = newPool(t, 5, 10)
	p.pass(2)
	p.expect("fewer workers than the subset has", 5, 5)
	p.in.Size = 0
	if use := p.Choose(&p.in, p.now); use != nil || p.State() != nil || p.Want(worker.Want{ID: "w1"}) {
		t.Error("a pool without a subset has one")
	}
	p.in.Size = 2
	p.pass(2)
	p.expect("on again", 2, 2)
	p.in.Workers = p.in.Workers[:0]
	p.pass(1)
	p.expect("all workers removed", 0, 0)
}
