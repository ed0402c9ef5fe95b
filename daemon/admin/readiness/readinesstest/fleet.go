// Package readinesstest makes pools whose workers a test puts into states.
package readinesstest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/fleet/watchtest"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// Fleet is a pool whose workers a test puts into states.
type Fleet struct {
	*readiness.Pool
	watched watchtest.Numbers
}

// NewFleet makes a pool "p" of the workers in words, as "a b:down": each is a name and its state; "" = up. The pool
// serves the model "m" alone.
func NewFleet(t *testing.T, words string) *Fleet {
	t.Helper()
	store, err := tier.New(tier.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	f := &Fleet{watched: watchtest.Numbers{}}
	c := worker.Config{Watcher: f.watched}
	for _, word := range strings.Fields(words) {
		name, _, _ := strings.Cut(word, ":")
		spec := worker.Spec{ID: name, URL: "http://" + name}
		if name == "prefiller" {
			spec.Role = worker.Prefills
		}
		c.Workers = append(c.Workers, spec)
	}
	f.Pool = &readiness.Pool{
		Pool: route.New(route.Config{Name: "p", Workers: c, Began: time.Now(),
			Sessions: session.On(store, session.Config{Pool: "p"})}),
		Models:   []string{"m"},
		Patterns: onlyModel("m"),
	}
	for _, word := range strings.Fields(words) {
		name, what, _ := strings.Cut(word, ":")
		f.Become(t, name, what)
	}
	return f
}

// Become puts a worker into the state of a word.
func (f *Fleet) Become(t *testing.T, name, what string) {
	t.Helper()
	id, now := f.watched[name], time.Now()
	if what != "starting" && what != "down" {
		f.Workers.Healthy(id, now)
	}
	switch what {
	case "", "starting":
	case "down":
		f.Workers.Dead(id, "connection refused", now)
	case "paused":
		f.Workers.Paused(name, now)
	case "draining":
		f.Workers.Drain(name, true, now)
	case "back":
		f.Workers.Drain(name, false, now)
	case "m", "other":
		f.Workers.Listed(id, []string{what}, nil)
	default:
		t.Fatalf("BUG: a worker cannot become %q", what)
	}
}

// Remove removes a worker from the configuration.
func (f *Fleet) Remove(name string) {
	specs := []worker.Spec{}
	for id := range f.Workers.InFlight() {
		if id != name {
			specs = append(specs, worker.Spec{ID: id, URL: "http://" + id})
		}
	}
	slices.SortFunc(specs, func(a, b worker.Spec) int { return strings.Compare(a.ID, b.ID) })
	f.Workers.Update(specs, time.Now())
}

// onlyModel is the pattern of one model.
type onlyModel string

func (m onlyModel) Serves(model string) bool { return model == string(m) }
func (m onlyModel) Names(model string) bool  { return model == string(m) }
