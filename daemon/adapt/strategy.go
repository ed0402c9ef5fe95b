package adapt

import (
	"context"
	"maps"
	"slices"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/plugins"
)

// Strategy loads one pool's strategy: the built-in of its name, or the module at its path.
func Strategy(h *host.Host, c *conf.Config, p *conf.Pool) (*host.Strategy, error) {
	sc := c.StrategyOf(p)
	wrong := func(err error) error { // with the line of the table that names the module
		return conf.Problems{c.StrategyProblem(p, err.Error())}
	}
	wasm, err := plugins.Read(p.Strategy, sc.Path)
	if err != nil {
		return nil, wrong(err)
	}
	s, err := h.Load(context.Background(), p.Strategy, wasm, host.Options{
		Values: c.OptionValues(p), Allow: sc.Allow, Fuel: sc.Fuel,
		MemoryBytes: sc.MemoryMB << 20, PickTime: sc.PickTimeout, Pool: p.Name})
	if err != nil {
		return nil, wrong(err)
	}
	return s, nil
}

// Strategies are the names of all strategies that a pool could have: the built-ins, and those of the file.
func Strategies(c *conf.Config) []string {
	return slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for _, names := range [][]string{plugins.Names(), slices.Collect(maps.Keys(c.Strategies))} {
			for _, name := range names {
				if !yield(name) {
					return
				}
			}
		}
	}))
}

// StrategyFor loads a strategy as a pool would have it if the file named it there, without the pool's own options.
func StrategyFor(h *host.Host, c *conf.Config, pool, name string) (*host.Strategy, error) {
	p := conf.DefaultPool()
	p.Name, p.Strategy = pool, name
	return Strategy(h, c, &p)
}
