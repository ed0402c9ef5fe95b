package adapt

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/admin/delivery"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/plugins"
)

// maxDelivered bounds a module that the admin API takes. The sandbox would load four times that; a strategy in Go has 2
// to 3 MB.
const maxDelivered = 16 << 20

// Delivery makes the store that takes modules for the configuration in force.
func Delivery(h *host.Host, c func() *conf.Config, reload func() error) *delivery.Store {
	return &delivery.Store{
		MaxBytes: maxDelivered, MaxFiles: conf.MaxStored, IsName: conf.IsName, Read: plugins.Read, Write: conf.WriteWhole,
		Setting: func() delivery.Setting { return setting(c()) },
		Path:    func(name string) string { return c().Server.StoredPath(name) },
		Check:   func(name string, wasm []byte) error { return checkDelivered(h, c(), name, wasm) },
		CheckFor: func(pool, name string) error {
			s, err := StrategyFor(h, c(), pool, name)
			if err == nil {
				s.Close(context.Background())
			}
			return err
		},
		Reload: reload,
		Remember: func(pool, name, insteadOf string) (func() error, error) {
			return remember(c().Server.StrategiesDir, pool, name, insteadOf)
		}}
}

// setting returns the configuration's strategies and pools.
func setting(c *conf.Config) delivery.Setting {
	now := delivery.Setting{Dir: c.Server.StrategiesDir}
	for i := range c.Pools {
		now.Pools = append(now.Pools, c.Pools[i].Name)
	}
	for _, name := range Strategies(c) {
		s := delivery.Strategy{Name: name, Path: c.Strategies[name].Path, Source: delivery.File,
			Serves: []delivery.Service{}}
		switch {
		case s.Path == "":
			s.Source = delivery.BuiltIn
		case now.Dir != "" && s.Path == c.Server.StoredPath(name):
			s.Source = delivery.Folder
		}
		for i := range c.Pools {
			s.Serves = append(s.Serves, services(c, &c.Pools[i], name)...)
		}
		now.Strategies = append(now.Strategies, s)
	}
	return now
}

// services lists what a strategy does for a pool.
func services(c *conf.Config, p *conf.Pool, name string) (list []delivery.Service) {
	if p.Strategy == name {
		live := delivery.Service{Pool: p.Name, As: delivery.Live}
		if a, ok := c.Activated[p.Name]; ok {
			live.Activated, live.InsteadOf = &a.Since, a.InsteadOf
		}
		list = append(list, live)
	}
	if slices.ContainsFunc(p.Canary, func(one conf.Canary) bool { return one.Strategy == name }) {
		list = append(list, delivery.Service{Pool: p.Name, As: delivery.Canary})
	}
	if slices.ContainsFunc(p.Shadow, func(one conf.Shadow) bool { return one.Strategy == name }) {
		list = append(list, delivery.Service{Pool: p.Name, As: delivery.Shadow})
	}
	return list
}

// checkDelivered loads a module as each pool that it serves would, with the pool's options. One that serves nobody it
// loads for a pool without options.
func checkDelivered(h *host.Host, c *conf.Config, name string, wasm []byte) error {
	var as []*conf.Pool
	for i := range c.Pools {
		p := &c.Pools[i]
		for _, v := range services(c, p, name) {
			if v.As == delivery.Live {
				as = append(as, p)
			} else {
				as = append(as, conf.ServedBy(p, name))
			}
		}
	}
	if len(as) == 0 {
		p := conf.DefaultPool()
		as = append(as, conf.ServedBy(&p, name))
	}
	for _, p := range as {
		s, err := loadStrategy(h, c, p, wasm, false)
		if err != nil && p.Name != "" {
			return fmt.Errorf("pool %q: %w", p.Name, err)
		}
		if err != nil {
			return err
		}
		s.Close(context.Background())
	}
	return nil
}

// remember writes down which strategy serves a pool; undo restores the entry before.
func remember(dir, pool, name, insteadOf string) (undo func() error, err error) {
	var before map[string]conf.Activation
	err = conf.ChangeActivations(dir, func(all map[string]conf.Activation) {
		before = maps.Clone(all)
		delete(all, pool)
		if name != "" {
			all[pool] = conf.Activation{Strategy: name, InsteadOf: insteadOf, Since: time.Now().UTC().Truncate(time.Second)}
		}
	})
	return func() error {
		return conf.ChangeActivations(dir, func(all map[string]conf.Activation) {
			delete(all, pool)
			if a, ok := before[pool]; ok {
				all[pool] = a
			}
		})
	}, err
}

// TellActivations logs which pools the admin API has given another strategy than the file names, and which of these
// activations are over. It forgets those that are over because the file now names another strategy.
func TellActivations(c *conf.Config, log *slog.Logger) {
	for _, pool := range slices.Sorted(maps.Keys(c.Activated)) {
		a := c.Activated[pool]
		log.Info("a strategy serves that the admin API has activated, in the place of the one that the file names; "+
			"warmpath plugin deactivate ends that", "pool", pool, "strategy", a.Strategy, "file_names", a.InsteadOf,
			"since", a.Since)
	}
	for _, e := range c.Ended {
		if e.NoModule {
			log.Warn("an activated strategy has no module any more: the strategy that the file names serves; "+
				"push the module again, or warmpath plugin deactivate", "pool", e.Pool, "strategy", e.Strategy,
				"file_names", e.InsteadOf, "dir", c.Server.StrategiesDir)
			continue
		}
		log.Warn("an activation is over, since the file has come to name another strategy, which serves; "+
			"activate again if that was not meant", "pool", e.Pool, "strategy", e.Strategy, "file_named", e.InsteadOf)
		err := conf.ChangeActivations(c.Server.StrategiesDir, func(all map[string]conf.Activation) {
			if all[e.Pool].Since.Equal(e.Since) && all[e.Pool].Strategy == e.Strategy {
				delete(all, e.Pool)
			}
		})
		if err != nil {
			log.Warn("an activation that is over cannot be forgotten; make the folder writable, or delete the pool's "+
				"table in its activated.toml", "pool", e.Pool, "dir", c.Server.StrategiesDir, "error", err)
		}
	}
}
