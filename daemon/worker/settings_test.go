package worker

import "testing"

// TestConfigureKeepsWhatIsKnown: new settings are in force at once, and nothing that was learnt is lost.
func TestConfigureKeepsWhatIsKnown(t *testing.T) {
	p := upPool(t, 2)
	w := p.fleet.workers[0]
	p.fleet.speed.slowness, w.speed.rel, p.fleet.speed.samples = 3, 2, 50
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
	k.End(p.after(3), Outcome{Kind: Answered})
}
