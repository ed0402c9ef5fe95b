package worker

import "github.com/warmpath/warmpath/sdk/abi"

// settings is a Config in force with what is made from it. It is never changed, only replaced.
type settings struct {
	Config
	c1, c2 float64
}

func newSettings(c Config) *settings {
	c1 := 1 / c.PrefillTokensPerSecond
	return &settings{Config: c, c1: c1, c2: 2 * c1 / abi.AttentionTokens}
}

// conf is the settings in force. What goes together is read from one of them.
func (p *Pool) conf() *settings { return p.set.Load() }

// Configure takes up new intervals, limits, budget and prefill speed, at once and without losing what is known of a
// worker. Workers and what Config says is New's are ignored.
func (p *Pool) Configure(c Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, next := p.conf(), newSettings(c.withDefaults())
	// What was learnt is seconds over estimated seconds: with the estimate changed, the product stays what it was.
	p.fleet = bound(p.fleet * was.c1 / next.c1)
	p.set.Store(next)
}
