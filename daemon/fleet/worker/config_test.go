package worker

import (
	"fmt"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/labels"
)

// TestConfigureKeepsWhatIsKnown: new settings are in force at once, and all learnt state stays.
func TestConfigureKeepsWhatIsKnown(t *testing.T) {
	p := upPool(t, 2)
	w := p.fleet.workers[0]
	p.fleet.speed.Value, w.speed.Rel, p.fleet.speed.Samples = 3, 2, 50
	k := p.force(w, Dispatch{PromptTokens: 100}, 1)
	before := p.Stats(p.after(2))[0]
	cost := p.Estimate(15000, 0) * before.Slow
	p.Configure(Config{PrefillTokensPerSecond: 30000, MaxInFlight: 9})
	after := p.Stats(p.after(2))[0]
	near(t, "predicted seconds of a prompt", p.Estimate(15000, 0)*after.Slow, cost, cost*1e-6)
	if after.InFlight != 1 || after.Limit != 9 || after.State != Ready || after.Sent != 1 {
		t.Errorf("after Configure: %+v", after)
	}
	if p.C1() != 1./30000 || p.C2() != 2*p.C1()/65536 {
		t.Errorf("C1 %v, C2 %v of the new speed", p.C1(), p.C2())
	}
	k.End(p.after(3), judge.Outcome{Kind: judge.Answered})
}

// TestLabelSet: names are sorted, each once, and a change of them changes the epoch.
func TestLabelSet(t *testing.T) {
	l := &labels.Set{}
	f := func(same bool, want string, labels ...map[string]string) {
		t.Helper()
		var specs []Spec
		for _, m := range labels {
			specs = append(specs, Spec{Labels: m})
		}
		next := l.After(labelsIn(specs))
		if got := fmt.Sprint(next.Names); got != want || (next == l) != same || (next.Epoch == l.Epoch) != same {
			t.Errorf("%s, epoch %d after %d; want %s, the same: %v", got, next.Epoch, l.Epoch, want, same)
		}
		l = next
	}
	type m = map[string]string
	f(true, "[]")
	f(true, "[]", m{}, nil)
	f(false, "[tier=batch]", m{"tier": "batch"}, m{"tier": "batch"})
	f(true, "[tier=batch]", nil, m{"tier": "batch"})
	f(false, "[rack=1 tier=batch tier=live]", m{"tier": "live", "rack": "1"}, m{"tier": "batch"})
	if got := l.Bits(m{"tier": "live", "rack": "1", "unknown": "x"}); got != 0b101 {
		t.Errorf("bits %b; want 101", got)
	}
	many := m{}
	for i := range 80 {
		many[fmt.Sprintf("n%02d", i)] = "v"
	}
	l = l.After([]map[string]string{many})
	if got := l.Bits(many); len(l.Names) != labels.Max || got != 1<<63-1 {
		t.Errorf("%d names, bits %b; want %d, all", len(l.Names), got, labels.Max)
	}
}

// labelsIn returns the labels of each spec.
func labelsIn(specs []Spec) (all []map[string]string) {
	for i := range specs {
		all = append(all, specs[i].Labels)
	}
	return all
}

// TestZeroConfig: zero means the default, and a pool without hooks, watcher and timer works.
func TestZeroConfig(t *testing.T) {
	c := Config{}.withDefaults()
	if c.HealthInterval != 2*time.Second || c.ScrapeInterval != 5*time.Second || c.SlowStart != 10*time.Second ||
		c.DownGrace != 20*time.Second || c.PrefillTokensPerSecond != 15000 {
		t.Errorf("defaults: %+v", c)
	}
	p := upPool(t, 1)
	p.send(0, Dispatch{Holder: quiet{}}, 1)
	p.kill(0, 2)
	p.fail(0, 1, 3, judge.Leaving)
	p.Update(nil, p.after(4))
	if n := p.InFlight()["w0"]; n != 1 {
		t.Errorf("%d in flight at the removed worker; want 1", n)
	}
}
