package strategies

import (
	"context"
	"time"

	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/host"
)

// Serving are the strategies of a running pool. One goroutine at a time may call Take and Close.
type Serving struct {
	Shadows *Shadows

	canaries map[string]*host.Current
	filters  []*host.Strategy
}

// NewServing has no strategies yet. Its shadows decide while Shadows.Run runs.
func NewServing() *Serving {
	return &Serving{Shadows: newShadows(), canaries: map[string]*host.Current{}}
}

// leaving is how long a canary or filter that is gone may still be asked by requests that chose it a moment before.
const leaving = time.Second

// Take makes l serve in p, and replaces the strategies that served before. Each decision is made by one version
// alone.
func (s *Serving) Take(p *route.Pool, l *Loaded) {
	l.taken = true
	p.Owns.Share(l.serving(), l.watching())
	p.Strategy.Replace(l.own)
	gone := s.canaries
	s.canaries = map[string]*host.Current{}
	var rules []route.Canary
	for _, c := range l.canaries {
		name, rule := c.name, c.rule
		if s.canaries[name] == nil {
			now := gone[name]
			if now == nil {
				now = new(host.Current)
			}
			now.Replace(l.modules[name])
			s.canaries[name] = now
			delete(gone, name)
		}
		rule.Strategy = s.canaries[name]
		rules = append(rules, rule)
	}
	p.SetCanaries(rules)
	for _, old := range gone {
		time.AfterFunc(leaving, func() { old.Strategy().Close(context.Background()) })
	}
	for _, old := range s.filters {
		time.AfterFunc(leaving, func() { old.Close(context.Background()) })
	}
	s.filters = l.filters
	p.Watch(l.watching())
	s.Shadows.set(l.shadows)
}

// Close ends the canaries, the filters and the shadows. The pointers stay: a request that found one of them before gets
// the fallback's choice.
func (s *Serving) Close() {
	for _, c := range s.canaries {
		c.Strategy().Close(context.Background())
	}
	for _, f := range s.filters {
		f.Close(context.Background())
	}
	s.Shadows.set(nil)
}
