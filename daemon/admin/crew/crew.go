package crew

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/adapt"
	"github.com/warmpath/warmpath/daemon/admin/shadow"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/plugins"
	"github.com/warmpath/warmpath/sdk/abi"
)

// StoreKeys and StoreBytes bound what each strategy keeps in the store.
const StoreKeys, StoreBytes = 10_000, 8 << 20

// Loaded are a pool's strategies, ready and not at work yet. Either Staff.Take or Close is to be called.
type Loaded struct {
	own      *host.Strategy
	canaries []canary
	modules  map[string]*host.Strategy // of the canaries, by name; canaries of one name share one
	shadows  []shadow.Strategy
	taken    bool // by a Staff
}

// canary is whom a strategy serves.
type canary struct {
	name string       // of the strategy
	rule route.Canary // whose Strategy is not set
}

// LoadAll loads the strategies of every pool, or none. It logs which of them the admin API has activated.
func LoadAll(h *host.Host, c *conf.Config, log *slog.Logger) ([]*Loaded, error) {
	all, err := loadAll(h, c)
	if err == nil {
		adapt.TellActivations(c, log)
	}
	return all, err
}

func loadAll(h *host.Host, c *conf.Config) ([]*Loaded, error) {
	var all []*Loaded
	for i := range c.Pools {
		l, err := loadPool(h, c, &c.Pools[i])
		if err != nil {
			CloseAll(all)
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// CloseAll frees what no Staff has taken.
func CloseAll(all []*Loaded) {
	for _, l := range all {
		if !l.taken {
			l.close()
		}
	}
}

func loadPool(h *host.Host, c *conf.Config, p *conf.Pool) (_ *Loaded, err error) {
	l := &Loaded{modules: map[string]*host.Strategy{}}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	l.own, err = adapt.Strategy(h, c, p)
	if err != nil {
		return nil, err
	}
	for i := range p.Canary {
		one := &p.Canary[i]
		name, value := one.HeaderPair()
		rule := route.Canary{Percent: one.Percent, Header: name, Value: value, Caller: one.Key}
		l.canaries = append(l.canaries, canary{one.Strategy, rule})
		if l.modules[one.Strategy] != nil {
			continue
		}
		l.modules[one.Strategy], err = adapt.Strategy(h, c, conf.ServedBy(p, one.Strategy))
		if err != nil {
			return nil, err
		}
	}
	for _, one := range p.Shadow {
		as := conf.ServedBy(p, one.Strategy)
		s, err := adapt.Shadow(h, c, as)
		if err != nil {
			return nil, err
		}
		l.shadows = append(l.shadows, shadow.Strategy{Module: s, Share: one.Share, Allow: c.StrategyOf(as).Allow})
	}
	return l, nil
}

func (l *Loaded) close() {
	for _, s := range l.modules {
		if s != nil {
			s.Close(context.Background())
		}
	}
	for _, s := range l.shadows {
		s.Module.Close(context.Background())
	}
	if l.own != nil {
		l.own.Close(context.Background())
	}
}

// Check loads every strategy that c names and throws it away: what `warmpath check` adds to conf's checks.
func Check(c *conf.Config) error {
	h, err := host.New(context.Background(), host.Config{CacheDir: c.Server.CacheDir()})
	if err != nil {
		return err
	}
	defer h.Close(context.Background())
	loaded, err := loadAll(h, c)
	CloseAll(loaded)
	return err
}

// A file names the built-in strategies, and conf, which checks it, imports nothing of ours.
func init() { conf.Builtins = plugins.Names() }

// Staff are the strategies of a running pool. One goroutine at a time may call Take and Close.
type Staff struct {
	Shadows *shadow.Pool

	canaries map[string]*host.Current
}

// NewStaff makes a staff of nobody. Its shadows decide while Shadows.Run runs.
func NewStaff() *Staff { return &Staff{Shadows: shadow.New(), canaries: map[string]*host.Current{}} }

// leaving is how long a canary that is gone may still be asked by requests that chose it a moment before.
const leaving = time.Second

// Take puts l to work in p, in the place of what was at work before. Each decision is made by one version alone.
func (s *Staff) Take(p *route.Pool, l *Loaded) {
	l.taken = true
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
	p.WatchHeld(slices.ContainsFunc(l.shadows, func(s shadow.Strategy) bool {
		return s.Module.Notices().Wants()&abi.WantHeld != 0
	}))
	s.Shadows.Set(l.shadows)
}

// Close ends the canaries and the shadows. The pointers stay: a request that found one of them before gets the
// fallback's choice.
func (s *Staff) Close() {
	for _, c := range s.canaries {
		c.Strategy().Close(context.Background())
	}
	s.Shadows.Set(nil)
}
