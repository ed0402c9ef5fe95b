package delivery

import (
	"fmt"
	"slices"
)

// Activate makes a strategy serve a pool, in place of the one that the configuration file names.
func (s *Store) Activate(pool, name string) (*Strategy, error) {
	now, end, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer end()
	live, err := now.live(pool)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(now.Strategies, func(have Strategy) bool { return have.Name == name }) {
		return nil, refuse(Unknown, "there is no strategy %.80q; GET /api/v1/strategies lists them, PUT "+
			"/api/v1/strategies/NAME brings one", name)
	}
	if err := s.CheckFor(pool, name); err != nil {
		return nil, refuse(BadModule, "%v", err)
	}
	if name == live.named {
		err = s.change(pool, live, "", name)
	} else {
		err = s.change(pool, live, name, name)
	}
	if err != nil {
		return nil, err
	}
	is := s.strategy(name)
	return &is, nil
}

// Deactivate lets the strategy that the configuration file names serve a pool again, and returns it.
func (s *Store) Deactivate(pool string) (*Strategy, error) {
	now, end, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer end()
	live, err := now.live(pool)
	if err != nil {
		return nil, err
	}
	if err := s.change(pool, live, "", ""); err != nil {
		return nil, err
	}
	now = s.Setting()
	live, err = now.live(pool)
	if err != nil {
		return nil, err
	}
	is := s.strategy(live.name)
	return &is, nil
}

// change remembers name for a pool, "" = the one that the file names, and reloads. want must serve then, "" = any may.
func (s *Store) change(pool string, was serving, name, want string) error {
	undo, err := s.Remember(pool, name, was.named)
	if err != nil {
		return refuse(Broken, "the activation cannot be written down, so it would be lost at the next reload; make %s "+
			"writable for the daemon's user: %v", s.Setting().Dir, err)
	}
	err = s.Reload()
	if err == nil {
		now := s.Setting()
		is, err := now.live(pool)
		if err != nil || want != "" && is.name != want {
			return refuse(Conflict, "the configuration file has changed meanwhile: now it names %s for pool %s, which "+
				"serves", is.name, pool)
		}
		return nil
	}
	text := fmt.Sprintf("nothing has changed: %v", err)
	if err := undo(); err != nil {
		text += fmt.Sprintf("; and the activation of before could not be written back: %v", err)
	}
	return refuse(Conflict, "%s", text)
}
