package served

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/lab/traffic"
	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/lab/world"
	"github.com/warmpath/warmpath/daemon/request/queue"
	"github.com/warmpath/warmpath/sdk"
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

// late holds each request until it has waited for a second, and then takes the first worker.
type late struct{}

func (late) Route(r *sdk.Request, _ []sdk.Worker) sdk.Decision {
	if r.Waited < 1 {
		return r.Hold(9)
	}
	return sdk.To(0)
}

// A strategy that holds is asked again until it has a worker; with its time over, or without a queue, the fallback
// chooses.
func TestAStrategyHolds(t *testing.T) {
	f := func(q *Queue, sent time.Duration, fallbacks int) {
		t.Helper()
		strategy, err := new(Loader).Load(t.Context(), &Spec{Name: "late", Native: func() sdk.Strategy { return late{} }}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := New(t.Context(), Config{Strategy: strategy, Block: 16, Scrape: time.Second, Seed: 1, Queue: q})
		defer r.Close()
		r.Up(0, 0)
		asked := &world.Request{Request: trial.Request{Prompt: 4, MaxTokens: 8}, Chat: new(traffic.Chat)}
		now := time.Second
		_, p := r.Choose(now, asked, []byte("a prompt"))
		for p == world.Waits && now < time.Minute {
			if got, _, placed := r.Release(now); got != nil {
				p = placed
				break
			}
			now += 50 * time.Millisecond
		}
		if p != world.Sent || now-time.Second != sent || r.said.Fallbacks != fallbacks {
			t.Errorf("%v after %v, %d fallbacks; want it sent after %v", p, now-time.Second, r.said.Fallbacks, sent)
		}
	}
	roomy := queue.Config{MaxRequests: 10, MaxBytes: 1 << 30}
	f(&Queue{Config: roomy, Wait: time.Minute}, time.Second, 0)
	f(&Queue{Config: roomy, Wait: 800 * time.Millisecond}, 600*time.Millisecond, 1)
	f(nil, 0, 1)
}
