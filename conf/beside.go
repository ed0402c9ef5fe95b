package conf

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// HeaderPair returns the name, in lower case, and the value of Header.
func (c *Canary) HeaderPair() (name, value string) {
	name, value, _ = strings.Cut(c.Header, "=")
	return strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
}

// defaultShadow is a shadow before the file is read.
func defaultShadow() Shadow { return Shadow{Share: 1} }

// ServedBy returns the pool as if the strategy of that name ordered its workers, behind the same filters. The pool's
// own options are those of its own strategy, and stay behind.
func ServedBy(p *Pool, strategy string) *Pool {
	q := *p
	q.Strategy = append(slices.Clone(p.Strategy.Filters()), strategy)
	q.Options = nil
	return &q
}

// Bounds of what one pool may have.
const (
	maxShadows  = 8
	maxCanaries = 8
	maxChain    = 8 // each may take pick_timeout
)

// checkPlace checks that a shadow or canary is none of the pool's filters.
func checkPlace(r *report, key string, p *Pool, name string) {
	if slices.Contains(p.Strategy.Filters(), name) {
		r.add(key, fmt.Sprintf("%q filters in the pool already", name),
			"name another: a shadow or a canary is in the place of the strategy that orders, behind the same filters")
	}
}

// checkChain checks that there are the strategies of a pool, each once.
func checkChain(r *report, path string, c *Config, chain Chain) {
	if len(chain) > maxChain {
		r.add(path, fmt.Sprintf("there are %d strategies", len(chain)), fmt.Sprintf("have at most %d", maxChain))
	}
	for i, name := range chain {
		at := path
		if len(chain) > 1 {
			at = elem(path, i)
		}
		checkStrategyName(r, at, c, name)
		if slices.Index(chain, name) < i {
			r.add(at, "it names "+name+" twice", "take one out: a strategy that filters and orders does both in the last place")
		}
	}
}

func checkBeside(r *report, path string, c *Config, p *Pool) {
	if n := len(p.Shadow); n > maxShadows {
		r.add(child(path, "shadow"), fmt.Sprintf("there are %d shadows", n), fmt.Sprintf("have at most %d", maxShadows))
	}
	if n := len(p.Canary); n > maxCanaries {
		r.add(child(path, "canary"), fmt.Sprintf("there are %d canaries", n), fmt.Sprintf("have at most %d", maxCanaries))
	}
	seen := map[string]string{}
	for i, s := range p.Shadow {
		at := elem(child(path, "shadow"), i)
		checkStrategyName(r, child(at, "strategy"), c, s.Strategy)
		checkPlace(r, child(at, "strategy"), p, s.Strategy)
		r.unique(seen, s.Strategy, child(at, "strategy"), "a pool has a strategy as a shadow once")
		if !within(s.Share, 0, 1) {
			r.outOfRange(child(at, "share"), s.Share, "write a share of requests from 0 to 1, as 0.1")
		}
	}
	percent := 0.
	for i := range p.Canary {
		at := elem(child(path, "canary"), i)
		percent += p.Canary[i].Percent
		if within(p.Canary[i].Percent, 0, 100) && percent > 100 && percent-p.Canary[i].Percent <= 100 {
			r.add(child(at, "percent"), fmt.Sprintf("with it the pool's canaries have %g %% together", percent),
				"share 100 among them; what is left is the pool's own strategy's")
		}
		checkCanary(r, at, c, &p.Canary[i])
		checkPlace(r, child(at, "strategy"), p, p.Canary[i].Strategy)
		if p.Canary[i].Strategy == p.Strategy.Orders() {
			r.add(child(at, "strategy"), fmt.Sprintf("%q serves the pool already", p.Strategy.Orders()),
				"name another; the same module under a second name in [strategies] can have other options")
		}
	}
}

func checkCanary(r *report, at string, c *Config, one *Canary) {
	checkStrategyName(r, child(at, "strategy"), c, one.Strategy)
	if !within(one.Percent, 0, 100) {
		r.outOfRange(child(at, "percent"), one.Percent, "write a number from 0 to 100, as 5")
	}
	ways := 0
	for _, is := range []bool{one.Percent > 0, one.Header != "", one.Key != ""} {
		if is {
			ways++
		}
	}
	if ways > 1 {
		r.add(at, "percent, header and key are ways to say the same", "write one of them, or a canary for each")
	}
	name, value := one.HeaderPair()
	if one.Header != "" && (value == "" || !isHeaderName(name)) {
		r.add(child(at, "header"), fmt.Sprintf("%.80q names no header with a value", one.Header), `write as "x-canary=1"`)
	}
	if one.Key != "" && !slices.ContainsFunc(c.Keys, func(k Key) bool { return k.Name == one.Key }) {
		r.add(child(at, "key"), fmt.Sprintf("there is no [[keys]] of the name %.40q", one.Key), "correct it, or add the key")
	}
}

// checkStrategyName checks that there is a strategy of the name that the key holds.
func checkStrategyName(r *report, key string, c *Config, name string) {
	if !IsName(name) {
		r.name(key, name)
		return
	}
	_, own := c.Strategies[name]
	if own && !c.HasModule(name) && c.Server.StrategiesDir != "" {
		r.add(key, fmt.Sprintf("there is no %s yet", c.Server.StoredPath(name)),
			"bring the module there first, by warmpath plugin push, and then name it here")
	}
	if !own && !slices.Contains(Builtins, name) {
		known := append(slices.Clone(Builtins), slices.Sorted(maps.Keys(c.Strategies))...)
		remedy := remedyFor(name, known)
		if !strings.HasSuffix(remedy, "?") {
			remedy += "."
		}
		r.add(key, fmt.Sprintf("there is no strategy %q", name),
			remedy+" A module of your own needs [strategies.NAME] with its path, or is NAME.wasm in "+
				"server.strategies_dir")
	}
}
