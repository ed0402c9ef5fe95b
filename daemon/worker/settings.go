package worker

import (
	"net/http"

	"github.com/warmpath/warmpath/sdk/abi"
)

// settings is a Config in force with what is made from it. It is never changed, only replaced.
type settings struct {
	Config
	fresh    *http.Client // Client, but each request has a connection of its own
	c1, c2   float64
	replaced chan struct{} // closed when it is: whoever sleeps by an interval looks at the new one
}

func newSettings(c Config) *settings {
	s := &settings{Config: c, c1: 1 / c.PrefillTokensPerSecond, replaced: make(chan struct{})}
	s.c2 = 2 * s.c1 / abi.AttentionTokens
	s.fresh = unshared(c.Client)
	return s
}

// conf is the settings in force. What goes together is read from one of them.
func (p *Pool) conf() *settings { return p.set.Load() }

// Configure takes up new intervals, limits, budget, key, TLS and prefill speed, at once and without losing what is known of a
// worker. Workers, Log and the hooks in c are ignored: Update changes the workers, and the others are New's.
func (p *Pool) Configure(c Config) {
	p.mu.Lock()
	was := p.conf()
	if c.Client == nil && c.TLS == was.TLS {
		c.Client = was.Client
	}
	c = c.withDefaults()
	next := newSettings(c)
	// What was learnt is seconds over estimated seconds: with the estimate changed, the product stays what it was.
	p.fleet = bound(p.fleet * was.c1 / next.c1)
	p.set.Store(next)
	p.mu.Unlock()
	close(was.replaced)
	if was.Client != next.Client {
		was.Client.CloseIdleConnections()
	}
}
