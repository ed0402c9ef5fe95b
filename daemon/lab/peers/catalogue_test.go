package peers

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/trial"
)

func variants() (all []Variant) {
	for _, p := range All() {
		all = append(append(all, p.Defaults...), p.Grid...)
	}
	return all
}

func TestNamesAreFound(t *testing.T) {
	seen := make(map[string]bool)
	for _, p := range All() {
		if len(p.Defaults) == 0 {
			t.Errorf("%s has no defaults", p.Name)
		}
	}
	for _, v := range variants() {
		if got, ok := Find(v.Name); !ok || got.Name != v.Name {
			t.Errorf("%s is not found", v.Name)
		}
		seen[v.Name] = true
	}
	if _, ok := Find("none"); ok || len(seen) < 70 {
		t.Errorf("found a rule of no name, or only %d names", len(seen))
	}
}

// drive has a rule serve random requests on a fleet whose workers come and go, and returns its choices.
func drive(t *testing.T, v Variant) (choices []int) {
	rng := rand.New(rand.NewPCG(7, 7))
	rule := v.New(Setup{Seed: 5, Tiers: 1 + 3*rng.Float64()})
	fleet := make([]trial.View, 5)
	for i := range fleet {
		fleet[i] = trial.View{Up: true, KVTokens: 50 * block}
		rule.Up(0, i)
	}
	type flight struct {
		q      *trial.Request
		worker int
		first  bool
	}
	var flights []flight
	end := func(now time.Duration, i int, e *trial.End) {
		f := flights[i]
		flights = slices.Delete(flights, i, i+1)
		fleet[f.worker].InFlight--
		rule.End(now, f.q, f.worker, e)
	}
	for n := range 1500 {
		now := time.Duration(n) * 300 * time.Millisecond
		for i := range fleet {
			fleet[i].Waiting, fleet[i].KVUsage = rng.IntN(5), rng.Float64()
		}
		switch w := rng.IntN(len(fleet)); {
		case rng.IntN(40) == 0 && fleet[w].Up:
			for i := len(flights) - 1; i >= 0; i-- {
				if flights[i].worker == w {
					end(now, i, &trial.End{Status: trial.Repeated, Cached: -1})
				}
			}
			fleet[w].Up = false
			rule.Down(now, w)
		case !fleet[w].Up && rng.IntN(3) == 0:
			fleet[w].Up = true
			rule.Up(now, w)
		}
		q := prompt(n, chain(uint64(rng.IntN(60)), 1+rng.IntN(30), rng.IntN(4)))
		q.Session = uint64(rng.IntN(20))
		choice := rule.Choose(now, q, fleet)
		choices = append(choices, choice)
		up := slices.ContainsFunc(fleet, func(v trial.View) bool { return v.Up })
		if choice >= len(fleet) || (choice < 0) == up || choice >= 0 && !fleet[choice].Up {
			t.Fatalf("%s chose worker %d of %+v", v.Name, choice, fleet)
		}
		if choice >= 0 {
			rule.Sent(now, q, choice)
			fleet[choice].InFlight++
			flights = append(flights, flight{q: q, worker: choice})
			if h, ok := rule.(trial.Hearer); ok {
				h.Stored(now, choice, q.Chain)
				h.Removed(now, choice, q.Chain[rng.IntN(len(q.Chain)):])
			}
		}
		for len(flights) > 8 {
			i := rng.IntN(len(flights))
			if !flights[i].first {
				rule.First(now, flights[i].q, flights[i].worker)
				flights[i].first = true
			}
			end(now, i, &trial.End{Output: 5, Cached: -1, Chain: append(flights[i].q.Chain[:len(flights[i].q.Chain):len(
				flights[i].q.Chain)], 1<<60+uint64(n))})
		}
	}
	return choices
}

// Every rule chooses a worker that is up as long as one is, whatever happens, and the same one in every run.
func TestEveryRuleKeepsTheContract(t *testing.T) {
	for _, v := range variants() {
		if first, again := drive(t, v), drive(t, v); !slices.Equal(first, again) {
			t.Errorf("%s chose otherwise in a second run", v.Name)
		}
	}
}

// What a rule counts goes down again: after the last end nothing is active.
func TestDynamoCountsComeDown(t *testing.T) {
	d := &Dynamo{Scale: 1, Credit: 1}
	s := begin(t, d, 0, 0)
	for n := range 100 {
		q := prompt(n, chain(uint64(n%7), 10, 3))
		d.Choose(0, q, s.fleet)
		d.Sent(0, q, n%2)
		if n%3 == 0 {
			d.First(0, q, n%2)
		}
		d.End(0, q, n%2, &trial.End{})
	}
	for i := range d.active {
		if l := &d.active[i]; l.prefill != 0 || len(l.blocks) != 0 || len(l.sent) != 0 {
			t.Errorf("worker %d still has %d tokens, %d blocks, %d requests", i, l.prefill, len(l.blocks), len(l.sent))
		}
	}
}
