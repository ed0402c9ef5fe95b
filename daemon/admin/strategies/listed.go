package strategies

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/plugins"
)

// Strategy is one that there is.
type Strategy struct {
	Name   string    `json:"name"`
	Source string    `json:"source"` // built-in, folder, or file: the configuration names its path
	Path   string    `json:"path,omitempty"`
	SHA256 string    `json:"sha256,omitempty"` // of the module as it stands there; none: it cannot be read
	Bytes  int       `json:"bytes"`
	Serves []Service `json:"serves"`
}

// Service is what a strategy does for a pool.
type Service struct {
	Pool      string     `json:"pool"`
	As        string     `json:"as"`                    // live, filter, canary or shadow
	Activated *time.Time `json:"activated,omitempty"`   // by the admin API
	InsteadOf string     `json:"in_place_of,omitempty"` // what the configuration file names

	// Refused counts the calls since it was loaded that allow does not permit, by the entry that it lacks.
	Refused map[string]uint64 `json:"refused,omitempty"`
}

// Sources of a strategy.
const (
	builtIn = "built-in"
	folder  = "folder"
	file    = "file"
)

// What a strategy is for a pool.
const (
	asLive   = "live"
	asFilter = "filter"
	asCanary = "canary"
	asShadow = "shadow"
)

// names are those of all strategies that a pool could have: the built-ins, and those of the file and of
// server.strategies_dir.
func names(c *conf.Config) []string {
	all := slices.AppendSeq(plugins.Names(), maps.Keys(c.Strategies))
	all = slices.DeleteFunc(all, func(name string) bool { return !c.HasModule(name) })
	slices.Sort(all)
	return slices.Compact(all)
}

// listed returns what is known of a strategy that has a name of names.
func listed(c *conf.Config, name string) Strategy {
	s := Strategy{Name: name, Path: c.Strategies[name].Path, Source: file, Serves: []Service{}}
	switch {
	case s.Path == "":
		s.Source = builtIn
	case c.Server.StrategiesDir != "" && s.Path == c.Server.StoredPath(name):
		s.Source = folder
	}
	for i := range c.Pools {
		s.Serves = append(s.Serves, services(c, &c.Pools[i], name)...)
	}
	return s
}

// withModule adds the sum and size of the module.
func (s Strategy) withModule(c *conf.Config) Strategy {
	if wasm, err := bytesOf(c, s.Name, false); err == nil && wasm != nil {
		s.SHA256, s.Bytes = Sum(wasm), len(wasm)
	}
	return s
}

// services lists what a strategy does for a pool.
func services(c *conf.Config, p *conf.Pool, name string) (list []Service) {
	if p.Strategy.Orders() == name {
		live := Service{Pool: p.Name, As: asLive}
		if a, ok := c.Activated[p.Name]; ok {
			live.Activated, live.InsteadOf = &a.Since, a.InsteadOf
		}
		list = append(list, live)
	}
	if slices.Contains(p.Strategy.Filters(), name) {
		list = append(list, Service{Pool: p.Name, As: asFilter})
	}
	if slices.ContainsFunc(p.Canary, func(one conf.Canary) bool { return one.Strategy == name }) {
		list = append(list, Service{Pool: p.Name, As: asCanary})
	}
	if slices.ContainsFunc(p.Shadow, func(one conf.Shadow) bool { return one.Strategy == name }) {
		list = append(list, Service{Pool: p.Name, As: asShadow})
	}
	return list
}

// live returns the strategy that serves a pool, and the one that the configuration file names for it.
func live(c *conf.Config, pool string) (name, inFile string, err error) {
	var known []string
	for i := range c.Pools {
		p := &c.Pools[i]
		if a, activated := c.Activated[pool]; p.Name == pool && activated {
			return p.Strategy.Orders(), a.InsteadOf, nil
		} else if p.Name == pool {
			return p.Strategy.Orders(), p.Strategy.Orders(), nil
		}
		known = append(known, p.Name)
	}
	return "", "", refuse(Unknown, "there is no pool %.80q; there are %s", pool, strings.Join(known, ", "))
}
