package worker

import "testing"

func TestVersions(t *testing.T) {
	for words, want := range map[string]string{"default": "0", "": "0", "step-42": "42", "7": "7", "v007": "7", "12b": "0",
		"9223372036854775807": "9223372036854775807", "9223372036854775808": ""} {
		if got := WeightsSaid(words).String(); got != want {
			t.Errorf("an engine that says %q has %q; want %q", words, got, want)
		}
	}
	for text, want := range map[string]string{"0": "0", "12": "12", "step-12": "", "": "", "-1": "", "1.5": "", " 1": "", "fp8": ""} {
		if got := WeightsNamed(text).String(); got != want {
			t.Errorf("%q is %q; want %q", text, got, want)
		}
	}
	for want, of := range map[string][2]Weights{"": {}, "1": {2, 2}, "1-2": {2, 3}, "2": {0, 3}, "5-4": {6, 5}} {
		if got := of[0].Span(of[1]); got != want {
			t.Errorf("%v: %q; want %q", of, got, want)
		}
	}
	if v := WeightsNamed("1764453600123"); v.Of(v.Low()) != v || v.Of((v-1).Low()) != v-1 || v.Of(0) != 0 {
		t.Error("a version is not found by its low half")
	}
	if got := Weights(2).Span(0); got != "1" {
		t.Errorf("a worker that was restarted since: %q", got)
	}
}

// TestWhoSaysTheVersion: what an engine says counts when it says something new, a label until then, and a new process
// begins with its label.
func TestWhoSaysTheVersion(t *testing.T) {
	p := upPoolOf(Config{Workers: []Spec{{ID: "a", URL: "http://a", Labels: map[string]string{"weights": "5"}}}})
	at := p.fleet.began
	number := p.fleet.endpoints[0].number
	var outdated int
	p.announce.caches = hooks{outdated: func(uint32) { outdated++ }}
	f := func(what, want string, times int) {
		t.Helper()
		names, _ := p.Labels()
		s := p.Stats(at)[0]
		if s.Weights.String() != want || want != "" && (s.Labels["weights"] != want || p.fleet.labels.Bits(s.Labels) == 0) || outdated != times {
			t.Errorf("%s: version %q, labels %v of %v, outdated %d times; want %q and %d", what, s.Weights, s.Labels, names, outdated, want, times)
		}
	}
	f("its label", "5", 0)
	p.Weights(number, WeightsSaid("default"), at)
	f("an engine that nobody has told a version", "5", 0)
	p.Updated("a", WeightsNamed("6"), at)
	f("an update", "6", 0)
	p.Weights(number, WeightsSaid("default"), at)
	f("the engine says the same as before", "6", 0)
	p.Weights(number, WeightsSaid("step-8"), at)
	f("the engine says another", "8", 1)
	p.Weights(number, WeightsSaid("step-8"), at)
	p.Updated("none", WeightsNamed("9"), at)
	p.Updated("a", 0, at)
	f("nothing new", "8", 1)
	p.Updated("a", WeightsNamed("3"), at)
	f("a step back", "3", 1)
	p.Update([]Spec{{ID: "a", URL: "http://a", Labels: map[string]string{"weights": "5", "tier": "x"}}}, at)
	f("a reload with the same label", "3", 1)
	p.Update([]Spec{{ID: "a", URL: "http://a", Labels: map[string]string{"weights": "10"}}}, at)
	f("a new label", "10", 2)
	p.Dead(number, "refused", at)
	p.Healthy(number, at)
	p.Updated("a", WeightsNamed("11"), at)
	p.Dead(number, "refused", at)
	f("its process has ended", "10", 2)
	if p.HasWeights(WeightsNamed("10"), nil, "", at) {
		t.Error("HasWeights counts a worker that is down")
	}
	p.heal(0, 1)
	if !p.HasWeights(WeightsNamed("10"), nil, "", at) || p.HasWeights(WeightsNamed("11"), nil, "", at) {
		t.Error("HasWeights does not count a worker that is up, or counts one of another version")
	}
}
