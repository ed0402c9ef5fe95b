package served

import (
	"fmt"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/setup"
	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/lab/world"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/plugins"
	"github.com/warmpath/warmpath/sdk"
)

// everybody is a strategy that has the rows of all workers.
type everybody struct{ sdk.Strategy }

func (e everybody) Wants() sdk.Want {
	return sdk.Want(sdk.WantsOf(e.Strategy)) &^ sdk.WantCandidates
}

// TestCandidatesChooseTheSame: in a large pool a built-in rule chooses, among the candidates, the worker that it would
// choose among all, for 99.9 % of the requests.
func TestCandidatesChooseTheSame(t *testing.T) {
	for _, c := range []struct {
		scenario, strategy string
		workers, requests  int
	}{
		{scenario: "burst", strategy: "prefixaware", workers: 64, requests: 1000},
		{scenario: "burst", strategy: "prefixaware", workers: 256, requests: 4000},
		{scenario: "agents", strategy: "prefixaware", workers: 64, requests: 1500},
		{scenario: "agents", strategy: "prefixaware", workers: 256, requests: 6000},
		{scenario: "burst", strategy: "kvaware", workers: 64, requests: 1000},
		{scenario: "agents", strategy: "kvaware", workers: 64, requests: 1500},
		{scenario: "agents", strategy: "roundrobin", workers: 64, requests: 1500},
		{scenario: "burst", strategy: "session", workers: 256, requests: 4000},
		{scenario: "agents", strategy: "session", workers: 64, requests: 1500},
	} {
		if testing.Short() && c.scenario == "agents" {
			continue
		}
		name := fmt.Sprint(c.scenario, " ", c.strategy, " ", c.workers)
		t.Run(name, func(t *testing.T) {
			sc, err := setup.Read(c.scenario)
			if err != nil {
				t.Fatal(err)
			}
			sc.Workers, sc.Requests = c.workers, c.requests
			least := 0
			if c.strategy == "roundrobin" { // while workers are held back, a turn among the rest is another one each time
				least = c.workers
			}
			asked, same, rows := compared(t, sc, least, func() sdk.Strategy { return plugins.Native(c.strategy) })
			t.Logf("%d of %d requests, %d rows on the mean", same, asked, rows/max(1, asked))
			if float64(same) < .999*float64(asked) || asked < c.requests/2 {
				t.Errorf("%d of %d requests go to the same worker; want 99.9 %% of them", same, asked)
			}
		})
	}
}

// compared plays a scenario and counts the requests that so many workers take at least, those for which all workers'
// rows give the same one, and the rows.
func compared(t *testing.T, sc *setup.Scenario, least int, rule func() sdk.Strategy) (asked, same, rows int) {
	t.Helper()
	load, err := sc.Load(7)
	if err != nil {
		t.Fatal(err)
	}
	c, err := sc.World(load)
	if err != nil {
		t.Fatal(err)
	}
	c.Seed = 7
	if c.Engine, err = c.Engine.Complete(); err != nil {
		t.Fatal(err)
	}
	native := func(f func() sdk.Strategy) *route.Strategy {
		s, err := new(Loader).Load(t.Context(), &Spec{Name: "rule", Native: f}, 7, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	all := native(func() sdk.Strategy { return everybody{rule()} })
	_, err = world.Run(t.Context(), c, func(number int) (world.Router, error) {
		known := Config{Strategy: native(rule),
			Block: c.Engine.BlockTokens, Scrape: c.Scrape, Seed: 7, Number: number, Room: Bounds(sc.Room),
			PrefillTokensPerSecond: sc.Engine.PoolPrefill}
		var r *Router
		known.Seen = func(_ *trial.Request, few *route.Choice) {
			var whole route.Choice
			ask := route.Asked(few)
			ask.By = all
			if r.pool.Choose(&whole, &ask) != route.Chosen {
				return
			}
			defer whole.Release()
			if whole.Left() < least {
				return
			}
			asked++
			if whole.First() == few.First() {
				same++
			}
			rows += few.Left()
		}
		r = New(t.Context(), known)
		return r, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return asked, same, rows
}
