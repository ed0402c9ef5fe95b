package strategies

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/warmpath/warmpath/conf"
)

// Activate makes a strategy serve a pool, in place of the one that the configuration file names.
func (s *Store) Activate(pool, name string) (*Strategy, error) {
	c, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer s.changing.Unlock()
	_, inFile, err := live(c, pool)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names(c), name) {
		return nil, refuse(Unknown, "there is no strategy %.80q; GET /api/v1/strategies lists them, PUT "+
			"/api/v1/strategies/NAME brings one", name)
	}
	if slices.ContainsFunc(listed(c, name).Serves, func(v Service) bool { return v.Pool == pool && v.As == asFilter }) {
		return nil, refuse(Conflict, "%s filters in pool %s already, and an activated strategy is in the place of the one "+
			"that orders; take it out of the list in the file first", name, pool)
	}
	module, err := readFor(s.host, c, pool, name)
	if err != nil {
		return nil, refuse(BadModule, "%v", err)
	}
	module.Close(context.Background())
	if name == inFile {
		return s.change(c, pool, "", name)
	}
	return s.change(c, pool, name, name)
}

// Deactivate lets the strategy that the configuration file names serve a pool again, and returns it.
func (s *Store) Deactivate(pool string) (*Strategy, error) {
	c, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer s.changing.Unlock()
	return s.change(c, pool, "", "")
}

// change writes down that the pool uses the strategy name, and reloads. If name is "", the pool uses the one that the
// configuration file names. After the reload want must serve; if it is "", any strategy may. It returns the strategy
// that serves.
func (s *Store) change(c *conf.Config, pool, name, want string) (*Strategy, error) {
	_, inFile, err := live(c, pool)
	if err != nil {
		return nil, err
	}
	dir := c.Server.StrategiesDir
	undo, err := remember(dir, pool, name, inFile)
	if err != nil {
		return nil, refuse(Broken, "the activation cannot be written down, so it would be lost at the next reload; make %s "+
			"writable for the daemon's user: %v", dir, err)
	}
	if err := s.process.Reload(); err != nil {
		text := fmt.Sprintf("nothing has changed: %v", err)
		if err := undo(); err != nil {
			text += fmt.Sprintf("; and the activation of before could not be written back: %v", err)
		}
		return nil, refuse(Conflict, "%s", text)
	}
	c = s.process.Configuration()
	serves, _, err := live(c, pool)
	if err != nil || want != "" && serves != want {
		return nil, refuse(Conflict, "the configuration file has changed meanwhile: now it names %s for pool %s, which "+
			"serves", serves, pool)
	}
	is := listed(c, serves).withModule(c)
	return &is, nil
}

// remember writes down which strategy serves a pool; undo restores the former entry.
func remember(dir, pool, name, insteadOf string) (undo func() error, err error) {
	var before conf.Activation
	var was bool
	err = conf.ChangeActivations(dir, func(all map[string]conf.Activation) {
		before, was = all[pool]
		delete(all, pool)
		if name != "" {
			all[pool] = conf.Activation{Strategy: name, InsteadOf: insteadOf, Since: time.Now().UTC().Truncate(time.Second)}
		}
	})
	return func() error {
		return conf.ChangeActivations(dir, func(all map[string]conf.Activation) {
			delete(all, pool)
			if was {
				all[pool] = before
			}
		})
	}, err
}

// logActivations logs which pools the admin API has given another strategy than the file names, and which of these
// activations are over. It deletes those that ended because the file now names another strategy.
func logActivations(c *conf.Config, log *slog.Logger) {
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
