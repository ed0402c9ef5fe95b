package served

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/lab/traffic"
	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/lab/world"
)

func TestTheRetryBudgetIsTheDefault(t *testing.T) {
	if want := conf.DefaultPool().RetryBudget; retryBudget != want {
		t.Errorf("the lab repeats a share of %v of the requests; the default of retry_budget is %v", retryBudget, want)
	}
}

// TestTheRuleOfRepeatsIsTheExchanges: as at a daemon, a request with which two workers have died goes to no third one.
func TestTheRuleOfRepeatsIsTheExchanges(t *testing.T) {
	spec, err := Read("native:roundrobin")
	if err != nil {
		t.Fatal(err)
	}
	strategy, err := new(Loader).Load(t.Context(), &spec, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := New(t.Context(), Config{Strategy: strategy, Block: 16, Scrape: time.Second, Seed: 1})
	defer r.Close()
	for i := range 4 {
		r.Up(0, i)
	}
	q := &world.Request{Request: trial.Request{Prompt: 4, MaxTokens: 8}, Chat: &traffic.Chat{}}
	for died := range 3 {
		now := time.Duration(died+1) * time.Second
		number, p := r.Choose(now, q, []byte("a prompt"))
		if want := died < 2; (p == world.Sent) != want {
			t.Fatalf("%d workers died with it: it is sent to another one: %v; want %v", died, p, want)
		}
		if p == world.Sent {
			r.Down(now, number)
			r.End(now, q, trial.End{Status: trial.Repeated, Cached: -1})
		}
	}
}
