package peers

import (
	"fmt"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/trial"
)

// Setup is what an operator would configure for a rule about the fleet that it works for.
type Setup struct {
	Seed  uint64
	Tiers float64 // KV of a worker in all tiers that are its own, in times of its GPU's; 1 = the GPU alone
}

// Variant is a rule with its constants set.
type Variant struct {
	Name string // of the rule and the constants, as "dynamo scale=64 credit=3"
	New  func(Setup) trial.Chooser
}

// Peer is a rule with the sets of constants that it is run with.
type Peer struct {
	Name     string
	Defaults []Variant // as its source has them
	Grid     []Variant // to be tuned over, the defaults' constants among them
}

// All returns every peer. Rules that keep a memory have it as their source does in Defaults; in Grid they remember
// what this project's own index would: so much as the worker holds in all its tiers, and answers too. That a rule
// forgets too early or never is a fault of its memory. The grid asks how good its choice is.
func All() []Peer {
	return []Peer{
		one("roundrobin", func(Setup) trial.Chooser { return new(RoundRobin) }),
		one("leastrequests", func(Setup) trial.Chooser { return new(LeastRequests) }),
		one("session", func(Setup) trial.Chooser { return new(Session) }),
		one("stack-prefixaware", func(s Setup) trial.Chooser { return NewStackPrefix(s.Seed) }),
		stackKVAware(), smg(), llmd(), dynamo(), aibrix(), preble(), loadAware(),
	}
}

// Find returns the variant of that name.
func Find(name string) (Variant, bool) {
	for _, p := range All() {
		for _, list := range [][]Variant{p.Defaults, p.Grid} {
			for _, v := range list {
				if v.Name == name {
					return v, true
				}
			}
		}
	}
	return Variant{}, false
}

func one(name string, make func(Setup) trial.Chooser) Peer {
	return Peer{Name: name, Defaults: []Variant{{Name: name, New: make}}}
}

// whole is the memory that a grid's variants have.
func whole(s Setup) remembering { return remember(Memory{KV: max(1, s.Tiers), Answers: true}) }

func stackKVAware() Peer {
	v := func(name string, threshold int) Variant {
		return Variant{Name: name, New: func(Setup) trial.Chooser { return &StackKVAware{Threshold: threshold} }}
	}
	p := Peer{Name: "stack-kvaware", Defaults: []Variant{v("stack-kvaware", 2000)}}
	for _, n := range []int{500, 2000, 8000, 32000} {
		p.Grid = append(p.Grid, v(fmt.Sprintf("stack-kvaware threshold=%d", n), n))
	}
	return p
}

const charactersPerToken = 4

func smg() Peer {
	v := func(name string, threshold, gap, factor float64, memory func(Setup) remembering) Variant {
		return Variant{Name: name, New: func(s Setup) trial.Chooser {
			return &SMG{remembering: memory(s), Threshold: threshold, Gap: gap, Factor: factor}
		}}
	}
	tree := func(characters int, every time.Duration) func(Setup) remembering {
		return func(Setup) remembering {
			return remember(Memory{Tokens: characters / charactersPerToken, Every: every})
		}
	}
	p := Peer{Name: "smg", Defaults: []Variant{
		v("smg library", .5, 32, 1.1, tree(10_000, 30*time.Second)),
		v("smg command", .3, 64, 1.5, tree(67_108_864, 120*time.Second)),
	}}
	for _, threshold := range []float64{.3, .5, .7} {
		for _, gap := range []float64{8, 32, 64} {
			for _, factor := range []float64{1.1, 1.5} {
				p.Grid = append(p.Grid, v(fmt.Sprintf("smg threshold=%g gap=%g factor=%g", threshold, gap, factor),
					threshold, gap, factor, whole))
			}
		}
	}
	return p
}

func llmd() Peer {
	p := Peer{Name: "llm-d", Defaults: []Variant{{Name: "llm-d", New: func(Setup) trial.Chooser {
		m := Memory{Tokens: 31_250 * 16, HeadsFirst: true}
		return &LLMD{remembering: remember(m), Prefix: 3, Queue: 2, KV: 2, Cap: 256 * 16}
	}}}}
	weights := [][3]float64{{3, 2, 2}, {2, 1, 0}, {2, 1, 1}, {4, 1, 1}, {8, 1, 1}, {12, 6, 2}, {12, 2, 6}, {24, 6, 2}}
	for _, w := range weights {
		p.Grid = append(p.Grid, Variant{Name: fmt.Sprintf("llm-d prefix=%g queue=%g kv=%g", w[0], w[1], w[2]),
			New: func(s Setup) trial.Chooser {
				return &LLMD{remembering: whole(s), Prefix: w[0], Queue: w[1], KV: w[2]}
			}})
	}
	return p
}

func dynamo() Peer {
	v := func(name string, scale, credit float64) Variant {
		return Variant{Name: name, New: func(s Setup) trial.Chooser {
			d := &Dynamo{remembering: whole(s), Scale: scale, Credit: credit}
			if s.Tiers > 1 {
				d.Host = .75 * credit
			}
			return d
		}}
	}
	p := Peer{Name: "dynamo", Defaults: []Variant{v("dynamo", 1, 1)}}
	for _, scale := range []float64{1, 4, 16, 64} {
		for _, credit := range []float64{1, 2, 3} {
			p.Grid = append(p.Grid, v(fmt.Sprintf("dynamo scale=%g credit=%g", scale, credit), scale, credit))
		}
	}
	return p
}

func aibrix() Peer {
	v := func(name string, deviations, gap float64, memory func(Setup) remembering) Variant {
		return Variant{Name: name, New: func(s Setup) trial.Chooser {
			return &AIBrix{remembering: memory(s), Deviations: deviations, Factor: 2, Gap: gap}
		}}
	}
	table := func(Setup) remembering { return remember(Memory{}) }
	p := Peer{Name: "aibrix", Defaults: []Variant{v("aibrix", 1, 8, table)}}
	for _, deviations := range []float64{1, 2, 4} {
		for _, gap := range []float64{8, 16, 32} {
			p.Grid = append(p.Grid, v(fmt.Sprintf("aibrix deviations=%g gap=%g", deviations, gap), deviations, gap, whole))
		}
	}
	return p
}

func preble() Peer {
	v := func(name string, threshold, rebalance, eviction float64, memory func(Setup) remembering) Variant {
		return Variant{Name: name, New: func(s Setup) trial.Chooser {
			return &Preble{remembering: memory(s), Threshold: threshold, Rebalance: rebalance, Eviction: eviction}
		}}
	}
	prompts := func(Setup) remembering { return remember(Memory{KV: 1}) }
	p := Peer{Name: "preble", Defaults: []Variant{v("preble", .5, 0, 0, prompts)}}
	for _, threshold := range []float64{.3, .5, .7} {
		for _, rebalance := range []float64{0, 3, 8} {
			for _, eviction := range []float64{0, 1} {
				p.Grid = append(p.Grid, v(fmt.Sprintf("preble threshold=%g rebalance=%g eviction=%g", threshold, rebalance,
					eviction), threshold, rebalance, eviction, whole))
			}
		}
	}
	return p
}

func loadAware() Peer {
	p := Peer{Name: "loadaware"}
	for _, beta := range []float64{.05, .1, .2, .3, .5, 1} {
		v := Variant{Name: fmt.Sprintf("loadaware beta=%g", beta), New: func(s Setup) trial.Chooser {
			return &LoadAware{remembering: whole(s), Beta: beta}
		}}
		p.Grid = append(p.Grid, v)
		if beta == .3 {
			p.Defaults = []Variant{v}
		}
	}
	return p
}
