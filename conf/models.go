package conf

import (
	"fmt"
	"slices"
	"strings"
)

// isModel reports whether s can be a model's name in a header, and between quotes in JSON as it is.
func isModel(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\' {
			return false
		}
	}
	return s != "" && len(s) <= 256 && !strings.Contains(s, "*")
}

func checkModels(r *report, c *Config) {
	names := map[string]string{}
	for i := range c.Models {
		m, path := &c.Models[i], elem("models", i)
		if !isModel(m.Name) {
			r.add(child(path, "name"), fmt.Sprintf("%.80q is no model's name", m.Name),
				`write up to 256 characters of ASCII without spaces, quotes, \ and *`)
		}
		r.unique(names, m.Name, child(path, "name"), "give each name one [[models]] table")
		if len(m.To) == 0 && !m.Hidden && m.Fallback == "" {
			r.add(child(path, "to"), "it is missing", `write to = [{ model = "NAME" }], or hidden = true, or a fallback`)
		}
		checkFallback(r, path, c, m)
		seen := map[string]string{}
		for j := range m.To {
			at := elem(child(path, "to"), j)
			checkTarget(r, at, c, m, &m.To[j])
			r.unique(seen, m.To[j].Model, child(at, "model"), "write each target once, with the sum of its weights")
		}
	}
}

func checkTarget(r *report, path string, c *Config, m *Model, t *Target) {
	at := child(path, "model")
	switch {
	case t.Model == m.Name:
		r.add(at, fmt.Sprintf("%q is the alias itself", t.Model), "give the alias another name than the model has")
	case !isModel(t.Model):
		r.add(at, fmt.Sprintf("%.80q is no model's name", t.Model), "write a name that a pool serves")
	case slices.ContainsFunc(c.Models, func(o Model) bool { return o.Name == t.Model && len(o.To) > 0 }):
		r.add(at, fmt.Sprintf("%q is an alias too", t.Model), "write the models to which that alias goes")
	case !slices.ContainsFunc(c.Pools, func(p Pool) bool { return p.Serves(t.Model) }):
		r.add(at, fmt.Sprintf("%q is served by no pool", t.Model), "write a name that the models of a pool fit")
	}
	if !within(t.Weight, 0.001, 1e6) {
		r.outOfRange(child(path, "weight"), t.Weight, "write a number above 0, as 9 beside 1 for nine sessions of ten")
	}
}

// maxFallbacks is how many models a request is sent to after its first one, at most.
const maxFallbacks = 3

// checkFallback checks a model's fallback and all that comes after that one.
func checkFallback(r *report, path string, c *Config, m *Model) {
	for i, why := range m.On {
		r.oneOf(elem(child(path, "on"), i), why, "down", "full", "context")
	}
	at, seen := child(path, "fallback"), []string{m.Name}
	switch {
	case m.Fallback == "" && len(m.On) > 0:
		r.add(child(path, "on"), "there is no fallback", `write fallback = "NAME" too`)
	case m.Fallback == "":
	case modelOf(c, m.Fallback) == nil && !slices.ContainsFunc(c.Pools, func(p Pool) bool { return p.Serves(m.Fallback) }):
		r.add(at, fmt.Sprintf("%.80q is no alias, and served by no pool", m.Fallback),
			"write an alias, or a name that the models of a pool fit")
	}
	for m != nil && m.Fallback != "" {
		switch {
		case slices.Contains(seen, m.Fallback):
			r.add(at, fmt.Sprintf("it leads from %q back to %q", m.Name, m.Fallback), "end it at a name without a fallback")
			return
		case len(seen) > maxFallbacks:
			r.add(at, fmt.Sprintf("more than %d fallbacks follow each other", maxFallbacks), "write fewer")
			return
		}
		seen = append(seen, m.Fallback)
		m = modelOf(c, m.Fallback)
	}
}

// Alias is a name that leads to a model. Else serves its requests while no worker has the model; "" = none does.
type Alias struct{ Name, Model, Else string }

// Leads lists the aliases that lead to models which this pool serves by name.
func (c *Config) Leads(p *Pool) (all []Alias) {
	for i := range c.Models {
		m := &c.Models[i]
		other := m.Fallback
		if len(m.On) > 0 && !slices.Contains(m.On, "down") {
			other = ""
		}
		for _, t := range m.To {
			first := slices.IndexFunc(c.Pools, func(o Pool) bool { return o.Serves(t.Model) })
			if first >= 0 && c.Pools[first].Name == p.Name {
				all = append(all, Alias{Name: m.Name, Model: t.Model, Else: other})
			}
		}
	}
	return all
}

// modelOf returns the [[models]] table of that name, or nil.
func modelOf(c *Config, name string) *Model {
	for i := range c.Models {
		if c.Models[i].Name == name {
			return &c.Models[i]
		}
	}
	return nil
}
