package lab

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/served"
	"github.com/warmpath/warmpath/daemon/lab/setup"
	"github.com/warmpath/warmpath/daemon/lab/traffic"
	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/lab/world"
)

// replicas is how many workers of a role there may be.
const replicas = 8

// phase is how long the clients ask for one mix of prompts and answers.
const phase = 15 * time.Minute

// mixes are the load, in turns: prompts of a quarter, and answers of four times the tokens.
var mixes = [...]traffic.Class{
	{Rate: 4, User: 8000, Output: 256, Spread: .2, Turns: 1},
	{Rate: 4, User: 2000, Output: 1024, Spread: .2, Turns: 1},
}

// turns is how often the mix changes, and once more.
const turns = 4

// scaled is a router whose workers follow the demand of each role by the queries of deploy/keda/roles.yaml. What is
// added serves a minute later, as a worker that has to load its model, and less are kept only when fewer were wanted for
// ten minutes.
type scaled struct {
	served.Pair
	serve   [2]int             // of each role: prefill, decode
	starts  [2][]time.Duration // when further ones begin to serve
	wants   [2][]int           // of the last looks
	ticked  time.Duration
	looked  time.Duration
	seconds float64 // of workers that served or started
}

// full is how much of a worker is to be in use, by its role.
var full = [2]float64{.5, .7}

// Times of the scaler.
const (
	lookEvery = 15 * time.Second // KEDA and the autoscaler
	startTime = time.Minute
	keepLooks = int(10 * time.Minute / lookEvery)
)

// Up implements [world.Router].
func (s *scaled) Up(now time.Duration, number int) {
	s.Pair.Up(now, number)
	s.settle(now, number)
}

// settle has a worker serve if it is one of the first of its role.
func (s *scaled) settle(now time.Duration, number int) {
	s.Drain(now, number, number%replicas >= s.serve[number/replicas])
}

// Tick implements [world.Router].
func (s *scaled) Tick(now time.Duration) {
	s.Pair.Tick(now)
	for role := range s.serve {
		s.seconds += float64(s.serve[role]+len(s.starts[role])) * (now - s.ticked).Seconds()
		for len(s.starts[role]) > 0 && now >= s.starts[role][0] {
			s.starts[role] = s.starts[role][1:]
			s.serve[role]++
		}
	}
	s.ticked = now
	if now >= s.looked+lookEvery {
		s.look(now)
	}
	for number := range 2 * replicas {
		s.settle(now, number)
	}
}

// look is one round of the scaler.
func (s *scaled) look(now time.Duration) {
	s.looked = now
	workers, at := s.Fleet(now)
	var demand, busy [2]float64
	for i, w := range workers.Stats(at) {
		if w.Up {
			demand[i/replicas] += w.Wait
			busy[i/replicas] += w.InUse
		}
	}
	for role := range s.serve {
		want := max(int(math.Ceil(demand[role]/2-.05)), int(math.Ceil(busy[role]/full[role]-.05)))
		s.wants[role] = append(s.wants[role], min(replicas, max(1, want)))
		s.wants[role] = s.wants[role][max(0, len(s.wants[role])-keepLooks):]
		want = slices.Max(s.wants[role])
		for s.serve[role]+len(s.starts[role]) < s.wants[role][len(s.wants[role])-1] {
			s.starts[role] = append(s.starts[role], now+startTime)
		}
		if len(s.wants[role]) == keepLooks && len(s.starts[role]) == 0 && want < s.serve[role] {
			s.serve[role] = want
		}
	}
}

// runMixes runs the mixes on so many prefillers and decoders, or on workers that follow the demand from there on. It
// returns the mean number of workers, too.
func runMixes(t *testing.T, rule string, prefillers, decoders int, follow bool, seed uint64) (*trial.Run, float64) {
	t.Helper()
	sc, err := setup.Read("A")
	if err != nil {
		t.Fatal(err)
	}
	sc.Engine.KVTokens, sc.Engine.CPUTokens, sc.Engine.SharedTokens = 70_000, 0, 0
	sc.Disaggregation = setup.Disaggregation{Rate: 400_000, Threshold: 1000}
	sc.Workers, sc.Kinds = prefillers+decoders, []setup.Kind{{Count: prefillers, Role: setup.RolePrefill}}
	if follow {
		sc.Workers, sc.Kinds[0].Count = 2*replicas, replicas
	}
	var load traffic.Load
	for i := range turns {
		p := traffic.Plan{Classes: mixes[i%2 : i%2+1], Seconds: phase.Seconds(), Workers: 1}
		l, err := p.Draw(seed + uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range l.Chats {
			c.Start += time.Duration(i) * phase
			load.Chats = append(load.Chats, c)
		}
	}
	c, err := sc.World(load)
	if err == nil {
		c.Seed = seed
		c.Engine, err = c.Engine.Complete()
	}
	if err != nil {
		t.Fatal(err)
	}
	loader, err := served.NewLoader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = loader.Close(context.Background()) }()
	found, err := Find("native:prefixaware" + rule)
	if err != nil {
		t.Fatal(err)
	}
	var s *scaled
	run, err := world.Run(t.Context(), c, func(number int) (world.Router, error) {
		r, err := found[0].router(t.Context(), loader, sc, &c, member{number: number})
		if err != nil || !follow {
			return r, err
		}
		s = &scaled{Pair: r.(served.Pair), serve: [2]int{prefillers, decoders}}
		return s, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s == nil {
		return run, float64(sc.Workers)
	}
	return run, s.seconds / s.ticked.Seconds()
}

// firstP90 returns the 90th percentile of TTFT of the requests of every second turn from one on, or of all.
func firstP90(r *trial.Run, from int) float64 {
	var all []float64
	for i := range r.Outcomes {
		if o := &r.Outcomes[i]; from < 0 || int(o.Arrived/phase)%2 == from {
			all = append(all, o.TTFT())
		}
	}
	slices.Sort(all)
	return all[len(all)*9/10]
}

// TestRolesFollowDemand: when the mix of prompts and answers changes fourfold, workers that follow the demand of each
// role keep the P90 of TTFT within 1.2 of the best fixed split of as many workers as they are in the mean, rounded up.
// With -v it runs all splits, and the other rule.
func TestRolesFollowDemand(t *testing.T) {
	for _, rule := range []string{"", "@split"} {
		if rule != "" && !testing.Verbose() {
			return
		}
		r, mean := runMixes(t, rule, 4, 4, true, 7)
		got := firstP90(r, -1)
		line, best, of := "", math.Inf(1), 0
		n := int(math.Ceil(mean))
		for p := 1; p < n; p++ {
			if !testing.Verbose() && (p < n/2 || p > n/2+2) { // which are far from the best
				continue
			}
			fixed, _ := runMixes(t, rule, p, n-p, false, 7)
			all := firstP90(fixed, -1)
			line += fmt.Sprintf(" %d: %.2f (%.2f, %.2f);", p, all, firstP90(fixed, 0), firstP90(fixed, 1))
			if all < best {
				best, of = all, p
			}
		}
		t.Logf("%q: P90 of TTFT in s (long prompts, long answers): following %.2f (%.2f, %.2f) by %.2f workers; of %d, by prefillers:%s"+
			" following is %.2f of the best", rule, got, firstP90(r, 0), firstP90(r, 1), mean, n, line, got/best)
		if got > 1.2*best {
			t.Errorf("%q: the P90 of TTFT is %.2f s where workers follow the demand, and %.2f s with %d prefillers of %d", rule, got, best,
				of, n)
		}
	}
}

var _ world.Pairer = (*scaled)(nil)
