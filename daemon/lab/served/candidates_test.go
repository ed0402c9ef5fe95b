package served

import (
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

func (everybody) Wants() sdk.Want { return sdk.WantCost }

// TestCandidatesChooseTheSame: in a large pool the built-in rule chooses, among the candidates, the worker that it would
// choose among all, for 99.9 % of the requests.
func TestCandidatesChooseTheSame(t *testing.T) {
	cells := map[string]int{"burst": 1000, "agents": 1500}
	if testing.Short() {
		cells = map[string]int{"burst": 1000}
	}
	for name, requests := range cells {
		for _, workers := range []int{64, 256} {
			sc, err := setup.Read(name)
			if err != nil {
				t.Fatal(err)
			}
			sc.Workers, sc.Requests = workers, requests*workers/64
			asked, same, rows := compared(t, sc)
			t.Logf("%s, %d workers: %d of %d requests, %d rows on the mean", name, workers, same, asked, rows/max(1, asked))
			if float64(same) < .999*float64(asked) || asked < requests/2 {
				t.Errorf("%s, %d workers: %d of %d requests go to the same worker; want 99.9 %%", name, workers, same, asked)
			}
		}
	}
}

// compared plays a scenario and counts the requests, those for which all workers' rows give the same one, and the rows.
func compared(t *testing.T, sc *setup.Scenario) (asked, same, rows int) {
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
		s, err := new(Loader).Load(t.Context(), &Spec{Name: "prefixaware", Native: f}, 7, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	all := native(func() sdk.Strategy { return everybody{plugins.Native("prefixaware")} })
	_, err = world.Run(t.Context(), c, func(number int) (world.Router, error) {
		known := Config{Strategy: native(func() sdk.Strategy { return plugins.Native("prefixaware") }),
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
			asked++
			if whole.First() == few.First() {
				same++
			}
			rows += few.Left()
			whole.Release()
		}
		r = New(t.Context(), known)
		return r, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return asked, same, rows
}
