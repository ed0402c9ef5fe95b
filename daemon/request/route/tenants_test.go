package route

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/host"
)

// tenants plays random requests of two tenants, and of a client without a fence, at two routers of the same workers,
// while workers fail, labels move, and strategies trap, decline, bind, are tried by canaries and watched by shadows.
type tenants struct {
	*testing.T
	rng     *rand.Rand
	routers [2]*scene
	labels  []string
	byOnly  bool // the strategy keeps tenants apart; else their fences do
	sent    map[string]int
	refused map[Verdict]int
	chosen  map[string]int // by fallback
	foreign int
	strange int // rows outside of a fence
}

// TestTenants: of 100,000 requests no tenant's reaches a foreign worker: by the fences of keys, whatever the strategy
// does, and by a strategy that says Only and is rejected when it fails.
func TestTenants(t *testing.T) {
	n := 50_000
	if testing.Short() {
		n = 5_000
	}
	t.Run("keys", func(t *testing.T) { play(t, n, false) })
	t.Run("only", func(t *testing.T) { play(t, n, true) })
}

func play(t *testing.T, n int, byOnly bool) {
	module := obedient
	if byOnly {
		module = wall
	}
	w := &tenants{T: t, rng: rand.New(rand.NewPCG(7, 7)), byOnly: byOnly, labels: strings.Fields("x x y y"),
		sent: map[string]int{}, refused: map[Verdict]int{}, chosen: map[string]int{}}
	for i := range w.routers {
		w.routers[i] = sceneBy(t, "a b c d", worker.Config{MaxInFlight: maxInFlight}, walled(t, module, byOnly))
		w.routers[i].label(strings.Join(w.labels, " "))
	}
	a, b := w.routers[0], w.routers[1]
	b.SetSecret(a.Secret())
	a.Tell(&relay{to: b, open: map[uint64]*Heard{}})
	canary := new(host.Current)
	canary.Replace(walled(t, module, byOnly))
	a.SetCanaries([]Canary{{Strategy: canary, Percent: 30}})
	for range n {
		w.step()
	}
	t.Logf("sent %v, refused %v, decided %v", w.sent, w.refused, w.chosen)
	if w.foreign > 0 || w.strange > 0 {
		t.Errorf("%d requests went to a foreign worker, %d strategies saw one", w.foreign, w.strange)
	}
	if w.sent["x"] < n/10 || w.sent["y"] < n/10 {
		t.Errorf("sent %v: too few to say anything", w.sent)
	}
}

// step lets something happen to the fleet now and then, and plays one request.
func (w *tenants) step() {
	s := w.routers[w.rng.IntN(2)]
	for _, r := range w.routers {
		r.now = r.now.Add(time.Duration(w.rng.IntN(100)) * time.Millisecond)
	}
	name := s.names[w.rng.IntN(4)]
	switch n := w.rng.IntN(1000); {
	case n < 5:
		for _, r := range w.routers {
			r.become(name, "down")
		}
	case n < 30:
		on := n < 7
		for _, r := range w.routers {
			r.Workers.Drain(name, on, r.now)
		}
	case n < 400:
		for _, r := range w.routers {
			r.heal(name)
		}
	case n < 403 && !w.byOnly: // a reload; a binding of an Only strategy would outlive it
		w.rng.Shuffle(4, func(i, j int) { w.labels[i], w.labels[j] = w.labels[j], w.labels[i] })
		for _, r := range w.routers {
			r.label(strings.Join(w.labels, " "))
		}
	}
	w.request(s)
}

// inside reports whether a worker is one of the tenant's; "-" has no fence.
func (w *tenants) inside(tenant, id string) bool {
	return tenant == "-" || w.labels[slices.Index(w.routers[0].names, id)] == tenant
}

// request plays one request of a random tenant to its end.
func (w *tenants) request(s *scene) {
	tenant := []string{"x", "y", "-"}[w.rng.IntN(3)]
	if w.byOnly && tenant == "-" {
		tenant = "x"
	}
	a := s.ask(w.word(tenant), Claim{})
	a.Caller = tenant
	if tenant != "-" && !w.byOnly {
		a.Fence = worker.Fence{"for=" + tenant}
	}
	if w.rng.IntN(2) == 0 {
		a.Claim = Claim{Key: session.Name{Kind: session.Key, Tenant: tenant, ID: fmt.Sprint(w.rng.IntN(5))},
			Binds: w.rng.IntN(2) == 0}
	}
	a.EndWithWorker = w.rng.IntN(8) == 0
	a.Turn = s.Arrive("m", a.Fence, s.now)
	c, v := s.choose(a)
	w.chosen[c.result.Fallback]++
	if v == Chosen {
		v = c.Bind()
	}
	if v != Chosen {
		w.refused[v]++
		c.Release()
		return
	}
	w.look(c, tenant)
	w.send(s, c, tenant)
	c.Release()
}

// word is what the strategy is told to do.
func (w *tenants) word(tenant string) int {
	say := []int{decline, first, bindTo, reject, first, first}[w.rng.IntN(6)]
	switch w.rng.IntN(1000) { // more would leave it without an instance
	case 0:
		say = trap
	case 1:
		say = first + 3 // which mostly is no row
	}
	if w.byOnly && say >= bindTo && say != trap {
		say = first
	}
	if w.byOnly && tenant == "y" {
		say += 1000
	}
	return say
}

// look has a shadow decide the same.
func (w *tenants) look(c *Choice, tenant string) {
	if w.byOnly || w.rng.IntN(8) > 0 {
		return
	}
	var s Snapshot
	s.Take(c, nil)
	s.View(c.strategy)
	if r := c.strategy.Pick(&s.Frame); !w.inside(tenant, s.Workers[r.Row]) {
		w.strange++
	}
	for _, id := range s.Workers {
		if !w.inside(tenant, id) {
			w.strange++
		}
	}
}

// outcomes are those of attempts: most are good, or no worker would stay in service.
var outcomes = []judge.Kind{judge.Answered, judge.Answered, judge.Answered, judge.Answered, judge.Answered,
	judge.Refused, judge.Busy, judge.Broken, judge.Failed}

// send tries workers as the exchange does, of which many fail.
func (w *tenants) send(s *scene, c *Choice, tenant string) {
	for range 6 {
		to, ok := c.Next(s.now)
		if !ok {
			if Lacks(c, s.now) != Chosen || Anew(c, s.now) != Chosen {
				break
			}
			continue
		}
		if w.rng.IntN(20) == 0 { // a label moves while the request is under way
			if !w.byOnly {
				w.labels[0], w.labels[3] = w.labels[3], w.labels[0]
				for _, r := range w.routers {
					r.label(strings.Join(w.labels, " "))
				}
			}
		}
		trip := new(Trip)
		if !c.Send(trip, to, nil, s.now) {
			continue
		}
		w.sent[tenant]++
		if !w.inside(tenant, to.Worker.ID()) {
			w.foreign++
		}
		kind := outcomes[w.rng.IntN(len(outcomes))]
		end := End{At: s.now}
		if kind == judge.Answered {
			end.Status = 200
			c.Answered(to.Worker, true)
		} else if kind == judge.Refused {
			c.Unreached(to.Worker)
		}
		trip.End(&judge.Outcome{Kind: kind}, end)
		if kind == judge.Answered {
			return
		}
		s.now = s.now.Add(time.Duration(w.rng.IntN(4)) * time.Second)
	}
	c.Unbind()
}
