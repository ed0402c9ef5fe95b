package lab

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/setup"
	"github.com/warmpath/warmpath/daemon/lab/trial"
)

// outcomes are those of the requests of each key.
type outcomes map[string][]*trial.Outcome

// play runs a scenario of a queue, perhaps without it or with its first class alone.
func play(t *testing.T, scenario string, change func(sc *setup.Scenario)) outcomes {
	t.Helper()
	sc, err := setup.Read(scenario)
	if err != nil {
		t.Fatal(err)
	}
	change(sc)
	found, err := Find("native:prefixaware")
	if err != nil {
		t.Fatal(err)
	}
	runs, err := Run(t.Context(), Config{Scenarios: []*setup.Scenario{sc}, Strategies: found, Seeds: []uint64{7}})
	if err != nil {
		t.Fatal(err)
	}
	load, err := sc.Load(7)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[uint64]string{} // by session
	for i := range load.Chats {
		keys[load.Chats[i].Session] = load.Chats[i].Key
	}
	all := outcomes{}
	for i := range runs[0].Outcomes {
		o := &runs[0].Outcomes[i]
		all[keys[o.Session]] = append(all[keys[o.Session]], o)
	}
	return all
}

func asItIs(*setup.Scenario) {}

// alone leaves the first class of a scenario, and neither bounds nor queue.
func alone(sc *setup.Scenario) {
	sc.Classes = sc.Classes[:1]
	unbounded(sc)
}

// unbounded has requests go to the workers at once.
func unbounded(sc *setup.Scenario) { sc.Room, sc.Queue = setup.Bounds{}, setup.Queue{} }

// p90 returns the time to first token that nine in ten of the requests have that came within some seconds.
func p90(all []*trial.Outcome, from, until float64) float64 {
	var v []float64
	for _, o := range all {
		if at := o.Arrived.Seconds(); o.First > 0 && at >= from && at < until {
			v = append(v, o.TTFT())
		}
	}
	return trial.Quantile(v, .9)
}

// goodput returns how many requests had their first token within two seconds.
func goodput(all []*trial.Outcome) (n int) {
	for _, o := range all {
		if o.First > 0 && o.TTFT() <= 2 {
			n++
		}
	}
	return n
}

// hitRate returns the share of the prompt tokens that were found cached.
func hitRate(all []*trial.Outcome) float64 {
	cached, tokens := 0, 0
	for _, o := range all {
		if o.First > 0 {
			cached, tokens = cached+o.Cached, tokens+o.Prompt
		}
	}
	return float64(cached) / float64(tokens)
}

// Five minutes of batch work for which four such fleets would not be enough leave chats as they are, and their prompts
// where they are cached. What they leave of the fleet goes to the batch.
func TestBatchFillsWhatChatsLeave(t *testing.T) {
	with, without, before := play(t, "flood", asItIs), play(t, "flood", unbounded), play(t, "flood", alone)
	good, of := goodput(with["chat"]), goodput(before["chat"])
	if float64(good) < .98*float64(of) {
		t.Errorf("%d chats' requests were answered in time; alone %d, of which .98 are wanted", good, of)
	}
	if g := goodput(without["chat"]); g > of*6/10 {
		t.Errorf("without a queue %d are in time: the load shows nothing", g)
	}
	if q, n := hitRate(with["chat"]), hitRate(without["chat"]); q < n || q < hitRate(before["chat"])-.01 {
		t.Errorf("%.3f of the chats' tokens are found cached; without a queue %.3f, alone %.3f", q, n, hitRate(before["chat"]))
	}
	served := 0
	for _, o := range with["batch"] {
		if o.Status == trial.Answered {
			served++
		}
	}
	if served < 1900 { // .65 a second of each worker, for six minutes
		t.Errorf("%d of the batch are done", served)
	}
	t.Logf("in time %d of %d, cached %.3f, %.3f without a queue, batch %d", good, of, hitRate(with["chat"]),
		hitRate(without["chat"]), served)
}

// A key that floods the fleet costs the key beside it half of its time to first token at most.
func TestNoisyNeighbour(t *testing.T) {
	with, before := play(t, "neighbour", asItIs), play(t, "neighbour", alone)
	if q, a := p90(with["light"], 0, 300), p90(before["light"], 0, 300); q > 1.5*a {
		t.Errorf("the light key's P90 is %.2f s beside a flood; alone %.2f s, of which 1.5 times is allowed", q, a)
	} else {
		t.Logf("P90 %.2f s beside the flood, %.2f alone", q, a)
	}
}

// Equal keys get equal shares of the fleet's time, places and prefill together, whatever the length of their requests.
func TestEqualKeysGetEqualShares(t *testing.T) {
	const prefill = 1. / 10_000 // seconds a token, about
	sum, squares, keys := 0., 0., play(t, "keys", asItIs)
	for name, all := range keys {
		seconds := 0.
		for _, o := range all {
			if at := o.First.Seconds(); at > 20 && at < 120 {
				seconds += (o.Ended - o.Arrived - o.Queued).Seconds() + prefill*float64(o.Prompt-o.Cached)
			}
		}
		t.Logf("%s: %.0f s", name, seconds)
		sum, squares = sum+seconds, squares+seconds*seconds
	}
	if j := sum * sum / float64(len(keys)) / squares; j < .95 {
		t.Errorf("Jain's index is %.3f; want .95 at least", j)
	}
}

// A minute after ten minutes of more than the fleet can do, it is as before.
func TestRecovery(t *testing.T) {
	all := play(t, "burst", asItIs)["chat"]
	before, during, after := p90(all, 50, 200), p90(all, 500, 800), p90(all, 860, 1100)
	if after > 1.1*before || during < 3*before {
		t.Errorf("P90 is %.2f s before the burst, %.2f in it, %.2f from a minute after it on; want 1.1 times of that before",
			before, during, after)
	}
	t.Logf("P90 %.2f s before, %.2f in the burst, %.2f after", before, during, after)
}
