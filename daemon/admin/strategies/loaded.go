package strategies

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Loaded are a pool's strategies, ready and not at work yet. Either Serving.Take or CloseAll is to be called.
type Loaded struct {
	filters  []*host.Strategy
	own      *host.Strategy
	canaries []canary
	modules  map[string]*host.Strategy // of the canaries, by name; canaries of one name share one
	shadows  []Shadow
	taken    bool // by a Serving
}

// canary says which part of a pool's requests a strategy serves.
type canary struct {
	name string       // of the strategy
	rule route.Canary // whose Strategy is not set
}

// LoadAll loads the strategies of every pool, or none. It logs which of them the admin API has activated.
func LoadAll(h *host.Host, c *conf.Config, log *slog.Logger) ([]*Loaded, error) {
	all, err := loadAll(h, c)
	if err == nil {
		logActivations(c, log)
	}
	return all, err
}

func loadAll(h *host.Host, c *conf.Config) ([]*Loaded, error) {
	var all []*Loaded
	read := modules{}
	for i := range c.Pools {
		l := &Loaded{modules: map[string]*host.Strategy{}}
		all = append(all, l)
		if err := l.load(h, c, i, read); err != nil {
			CloseAll(all)
			return nil, err
		}
	}
	return all, nil
}

// CloseAll frees what no Serving has taken.
func CloseAll(all []*Loaded) {
	for _, l := range all {
		if !l.taken {
			l.close()
		}
	}
}

func (l *Loaded) load(h *host.Host, c *conf.Config, pool int, from modules) (err error) {
	p := &c.Pools[pool]
	for i, name := range p.Strategy.Filters() {
		s, err := from.read(h, c, conf.ServedBy(p, name), false)
		if err != nil {
			return err
		}
		l.filters = append(l.filters, s)
		if !s.Wants(abi.WantFilter) {
			what := fmt.Sprintf("pool %q: %s filters nothing (it has no wp_filter), so it can only be the last", p.Name, name)
			return conf.Problems{c.Note(fmt.Sprintf("pools[%d].strategy[%d]", pool, i), what, "take it out, or have it filter")}
		}
	}
	l.own, err = from.read(h, c, p, false)
	if err != nil {
		return err
	}
	l.own.Behind(l.filters)
	for i := range p.Canary {
		one := &p.Canary[i]
		name, value := one.HeaderPair()
		rule := route.Canary{Percent: one.Percent, Header: name, Value: value, Caller: one.Key}
		l.canaries = append(l.canaries, canary{one.Strategy, rule})
		if l.modules[one.Strategy] != nil {
			continue
		}
		s, err := from.read(h, c, conf.ServedBy(p, one.Strategy), false)
		if err != nil {
			return err
		}
		s.Behind(l.filters)
		l.modules[one.Strategy] = s
	}
	for _, one := range p.Shadow {
		as := conf.ServedBy(p, one.Strategy)
		s, err := from.read(h, c, as, true)
		if err != nil {
			return err
		}
		l.shadows = append(l.shadows, Shadow{Module: s, Share: one.Share, Allow: c.StrategyOf(as).Allow})
	}
	return nil
}

// serving are the strategies that serve requests.
func (l *Loaded) serving() []*host.Strategy {
	return slices.Concat(slices.Collect(maps.Values(l.modules)), l.filters, []*host.Strategy{l.own})
}

// watching are those of the shadows.
func (l *Loaded) watching() (all []*host.Strategy) {
	for _, s := range l.shadows {
		all = append(all, s.Module)
	}
	return all
}

func (l *Loaded) close() {
	for _, s := range slices.Concat(l.serving(), l.watching()) {
		if s != nil {
			s.Close(context.Background())
		}
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
